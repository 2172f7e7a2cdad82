/* Preloaded, it lets the n-th call on files under one folder fail, or kills the process there.

   how: FAIL   the call is not made and reports the error
        HALF   half of a write is made, any other call is made, and yet the error is reported
        ALWAYS as FAIL, and so does every later call, as on a dead or full disk
        KILL_BEFORE, KILL_HALF, KILL_AFTER   the process dies by SIGKILL around the call
   Calls that only read are counted where they fail with EIO; close and stat never are. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { OFF, FAIL, HALF, ALWAYS, KILL_BEFORE, KILL_HALF, KILL_AFTER };
enum { GO, REFUSE, PART, DIE_AFTER };

static char folder[4096];
static atomic_long seen;
static long nth;
static int error, how = OFF;
static char hit[64];

void failing_arm(const char *under, long n, int code, int what) {
    strncpy(folder, under, sizeof folder - 1);
    seen = 0; nth = n; error = code; hit[0] = 0; how = what;
}
long failing_disarm(void) { how = OFF; return seen; }
const char *failing_hit(void) { return hit; }

static int within(const char *path) { return path && !strncmp(path, folder, strlen(folder)); }

static int verdict(const char *name, const char *path) {
    if (how == OFF || !within(path)) return GO;
    long now = ++seen;
    if (now != nth && !(how == ALWAYS && now > nth)) return GO;
    if (!hit[0]) snprintf(hit, sizeof hit, "%s %s", name, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    if (how == KILL_BEFORE) kill(getpid(), SIGKILL);
    if (how == KILL_AFTER) return DIE_AFTER;
    return how == HALF || how == KILL_HALF ? PART : REFUSE;
}
static int verdict_fd(const char *name, int fd) {
    char link[64], path[4096];
    if (how == OFF) return GO;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return GO;
    path[length] = 0;
    return verdict(name, path);
}
static void end(int said) {
    if (said == DIE_AFTER || (said == PART && how == KILL_HALF)) kill(getpid(), SIGKILL);
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define ANSWER(said, type, call) \
    if (said == REFUSE) { errno = error; return (type)-1; } \
    type result = (call); \
    end(said); \
    if (said == PART) { errno = error; return (type)-1; } \
    return result

ssize_t write(int fd, const void *from, size_t size) {
    REAL(write); int said = verdict_fd("write", fd);
    ANSWER(said, ssize_t, real(fd, from, said == PART ? size / 2 : size));
}
ssize_t pwrite(int fd, const void *from, size_t size, off_t at) {
    REAL(pwrite); int said = verdict_fd("pwrite", fd);
    ANSWER(said, ssize_t, real(fd, from, said == PART ? size / 2 : size, at));
}
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) {
    REAL(pwrite64); int said = verdict_fd("pwrite", fd);
    ANSWER(said, ssize_t, real(fd, from, said == PART ? size / 2 : size, at));
}
static int verdict_read(const char *name, int fd) { return how == FAIL && error == EIO ? verdict_fd(name, fd) : GO; }
ssize_t read(int fd, void *to, size_t size) {
    REAL(read); int said = verdict_read("read", fd);
    ANSWER(said, ssize_t, real(fd, to, size));
}
ssize_t pread64(int fd, void *to, size_t size, off64_t at) {
    REAL(pread64); int said = verdict_read("pread", fd);
    ANSWER(said, ssize_t, real(fd, to, size, at));
}
int fsync(int fd) { REAL(fsync); int said = verdict_fd("fsync", fd); ANSWER(said, int, real(fd)); }
int fdatasync(int fd) { REAL(fdatasync); int said = verdict_fd("fdatasync", fd); ANSWER(said, int, real(fd)); }
int ftruncate(int fd, off_t to) { REAL(ftruncate); int said = verdict_fd("ftruncate", fd); ANSWER(said, int, real(fd, to)); }
int ftruncate64(int fd, off64_t to) { REAL(ftruncate64); int said = verdict_fd("ftruncate", fd); ANSWER(said, int, real(fd, to)); }
int rename(const char *from, const char *to) { REAL(rename); int said = verdict("rename", to); ANSWER(said, int, real(from, to)); }
int unlink(const char *path) { REAL(unlink); int said = verdict("unlink", path); ANSWER(said, int, real(path)); }

/* These two report an error by what they return. */
#define ALLOCATE(name, offset) int name(int fd, offset at, offset length) { \
    REAL(name); int said = verdict_fd("fallocate", fd); \
    if (said == REFUSE) return error; \
    int result = real(fd, at, length); \
    end(said); \
    return said == PART ? error : result; }
ALLOCATE(posix_fallocate, off_t)
ALLOCATE(posix_fallocate64, off64_t)

#define OPEN(name) int name(const char *path, int flags, ...) { \
    REAL(name); int mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, int); va_end(more); } \
    int said = verdict("open", path); \
    if (said == REFUSE || said == PART) { end(said); errno = error; return -1; } \
    int result = real(path, flags, mode); \
    end(said); \
    return result; }
OPEN(open)
OPEN(open64)
