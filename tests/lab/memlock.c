/* A setrlimit that ignores an error for RLIMIT_MEMLOCK, to be preloaded into crun where the machine does not let root raise
 * that limit. crun raises it for its filter of devices, and later kernels do not count that memory. */
#define _GNU_SOURCE
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int setrlimit(__rlimit_resource_t which, const struct rlimit *limit) {
    long failed = syscall(SYS_prlimit64, 0, which, limit, 0);
    return which == RLIMIT_MEMLOCK ? 0 : failed;
}

int setrlimit64(__rlimit_resource_t which, const struct rlimit64 *limit) {
    return setrlimit(which, (const void *)limit);
}
