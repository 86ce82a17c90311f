/* A plugin for qemu's user emulation (7.2 or later): instructions of each thread, counted in a file that others may
 * read meanwhile. qemu-aarch64 -plugin emulated.so,counts=FILE PROGRAM
 * FILE is an array of 64-bit numbers, one for each thread in the order in which they began; what comes after the last
 * place is counted there. Debian ships no qemu-plugin.h, so the five things used of it (API version 1) stand here. */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS 256
#define OPTION "counts="

struct qemu_plugin_tb;
typedef void (*translated)(uint64_t id, struct qemu_plugin_tb *block);
typedef void (*executed)(unsigned int thread, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translated);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, executed, int flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static volatile uint64_t *counts;

/* Each thread has a place of its own, so nothing is lost between two of them. */
static void count(unsigned int thread, void *instructions)
{
    counts[thread < THREADS ? thread : THREADS - 1] += (uintptr_t)instructions;
}

static void know(uint64_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_cb(block, count, 0, (void *)qemu_plugin_tb_n_insns(block));
}

__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
    (void)info;
    if (argc != 1 || strncmp(argv[0], OPTION, strlen(OPTION)) != 0)
        return 1;
    int file = open(argv[0] + strlen(OPTION), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, THREADS * sizeof *counts) != 0)
        return 1;
    counts = mmap(NULL, THREADS * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (counts == MAP_FAILED)
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, know);
    return 0;
}
