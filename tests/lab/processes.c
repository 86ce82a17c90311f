/* Starts processes that are hard to end, for the kill tests; the static program of the lab's images.
 *
 *   processes KIND...
 *
 * Each kind starts processes that ignore SIGHUP and SIGTERM. `fg` and `hold` do not return. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Set in the environment of the copy in memory. */
#define IS_COPY "PROCESSES_COPY"

static void sleep_for_ever(void) {
    for (;;) sleep(3600);
}

/* Without the standard streams: nobody who waits for their end waits for this process. */
static void stay(void) {
    int null = open("/dev/null", O_RDWR);
    for (int stream = 0; null >= 0 && stream < 3; stream++) dup2(null, stream);
    sleep_for_ever();
}

static void background(void) {
    if (fork() == 0) stay();
}

static void session(void) {
    if (fork() == 0) {
        setsid();
        stay();
    }
}

static void double_fork(void) {
    pid_t middle = fork();
    if (middle == 0) {
        setsid();
        if (fork() != 0) _exit(0);
        stay();
    }
    waitpid(middle, NULL, 0);
}

/* 200 processes; every second has a session of its own, every third was forked twice. */
static void storm(void) {
    for (int count = 0; count < 200; count++) {
        if (fork() != 0) continue;
        if (count % 2) setsid();
        if (count % 3 == 0 && fork() != 0) _exit(0);
        stay();
    }
}

/* Forks again and again; each process lives 2 ms. */
static void chain(void) {
    if (fork() != 0) return;
    for (;;) {
        if (fork() != 0) _exit(0);
        usleep(2000);
    }
}

/* A program that is in no file system. */
static void memory(void) {
    if (fork() != 0) return;
    int copy = memfd_create("copy", 0), self = open("/proc/self/exe", O_RDONLY);
    char part[65536];
    ssize_t length;
    while ((length = read(self, part, sizeof part)) > 0)
        if (write(copy, part, length) != length) _exit(1);
    char *arguments[] = {"copy", NULL}, path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", copy);
    putenv(IS_COPY "=1");
    execve(path, arguments, environ);
    _exit(1);
}

/* The name of a thread of the kernel, and no arguments. */
static void renamed(int count, char **arguments) {
    if (fork() != 0) return;
    prctl(PR_SET_NAME, "kworker/9:9");
    for (int index = 0; index < count; index++) memset(arguments[index], 0, strlen(arguments[index]));
    stay();
}

int main(int count, char **arguments) {
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    if (getenv(IS_COPY)) stay();
    for (int index = 1; index < count; index++) {
        const char *kind = arguments[index];
        if (!strcmp(kind, "fg")) stay();
        else if (!strcmp(kind, "hold")) sleep_for_ever();
        else if (!strcmp(kind, "bg")) background();
        else if (!strcmp(kind, "setsid")) session();
        else if (!strcmp(kind, "double")) double_fork();
        else if (!strcmp(kind, "storm")) storm();
        else if (!strcmp(kind, "chain")) chain();
        else if (!strcmp(kind, "memory")) memory();
        else if (!strcmp(kind, "renamed")) renamed(count, arguments);
        else {
            fprintf(stderr, "processes: unknown kind %s\n", kind);
            return 2;
        }
    }
    return 7;
}
