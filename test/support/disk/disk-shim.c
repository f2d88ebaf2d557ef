// Records the calls on a disk, and can make its syncs fail, hang or take longer. Loaded into a server before libc
// (LD_PRELOAD), and thereby into every process that the server starts.
//
// DISK_FOLDER   only calls below this folder are recorded and disturbed
// DISK_TRACE    one line for each call: PROCESS THREAD WORD PATH [SECOND PATH]
// DISK_CONTROL  read at each sync; if it exists, it has HOW TIMES PATTERN: a sync of a path that matches PATTERN fails with
//               EIO (HOW is `fail`) or takes so many milliseconds longer (HOW is a number). TIMES is `always` or `once`:
//               then the disturbed sync removes the file, so that only one sync of all processes is disturbed.
//
// A line is one write to a file opened for appending: the kernel orders the lines of all processes. So that
// the order of two lines proves the order of the calls, each call is recorded either before or after it, whichever proves less:
// - `sync?` before a sync and `sync` after one that succeeded: the sync covers the calls before its first line, and is
//   complete for the calls after its second. `sync!`: it failed, and covers nothing.
// - `open`, `write`, `empty` (cut to nothing), `rename`, `link` and `mkdir` after the call: only a sync that
//   begins later certainly covers it.
// - `unlink` before the call: calls recorded later were not made in time. `unlinked` after it.
// - `answer` before the bytes of an answer 201 go to the network.
// A write to a file opened with O_DSYNC is recorded, and disturbed, as what the kernel makes of it: a write and a sync.
//
// System calls are made directly, as looking up the replaced functions would take more lines.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// The functions are those of 64-bit systems, where a file's length fits a long. Their twins for long files are the same.
_Static_assert(sizeof(long) == 8, "64-bit systems alone");
#undef open64
#undef openat64
#undef creat64
#undef pwrite64
#undef pwritev64
#undef ftruncate64
#define TWIN(name, of) __attribute__((alias(#of)))

enum { PATH_BYTES = 4096, LINE_BYTES = 3 * PATH_BYTES, WORD_BYTES = 16, NS_PER_MS = 1000000, MS_PER_S = 1000 };
static const char ANSWER[] = "HTTP/1.1 201";

static const char *folder, *control;
static int trace = -1;

__attribute__((constructor)) static void begin(void) {
  folder = getenv("DISK_FOLDER");
  control = getenv("DISK_CONTROL");
  const char *path = getenv("DISK_TRACE");
  if (path != NULL) trace = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int is_ours(const char *path) {
  size_t length = folder == NULL ? 0 : strlen(folder);
  return length > 0 && strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static void tell(const char *word, const char *path, const char *to) {
  int error = errno;
  char line[LINE_BYTES];
  int length = snprintf(line, sizeof line, "%d %ld %s %s%s%s\n", getpid(), syscall(SYS_gettid), word, path,
                        to == NULL ? "" : " ", to == NULL ? "" : to);
  if (length > 0 && length < LINE_BYTES) syscall(SYS_write, trace, line, length);
  errno = error;
}

// The current path of an open descriptor; empty if it is not below the watched folder.
static void path_of(int fd, char *path) {
  int error = errno;
  char self[32];
  snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
  ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, self, path, PATH_BYTES - 1);
  path[length < 0 ? 0 : length] = '\0';
  if (!is_ours(path)) path[0] = '\0';
  errno = error;
}

// The full path of a name that can be relative to an open folder; empty if it is not below the watched folder.
static void whole(int at, const char *name, char *path) {
  path[0] = '\0';
  if (name[0] != '/') {
    path_of(at, path);
    size_t length = strlen(path);
    if (length > 0) snprintf(path + length, PATH_BYTES - length, "/%s", name);
  } else if (is_ours(name)) snprintf(path, PATH_BYTES, "%s", name);
}

static long told(const char *word, int fd, long result) {
  char path[PATH_BYTES];
  if (result < 0) return result;
  path_of(fd, path);
  if (path[0] != '\0') tell(word, path, NULL);
  return result;
}

static long told_at(const char *word, int at, const char *name, long result) {
  char path[PATH_BYTES];
  if (result < 0) return result;
  whole(at, name, path);
  if (path[0] != '\0') tell(word, path, NULL);
  return result;
}

static long told_both(const char *word, int at, const char *name, int to_at, const char *to_name, long result) {
  char path[PATH_BYTES], to[PATH_BYTES];
  if (result < 0) return result;
  whole(at, name, path);
  whole(to_at, to_name, to);
  if (path[0] != '\0' && to[0] != '\0') tell(word, path, to);
  return result;
}

// Returns whether a sync of the path is to fail. If it is to take longer, waits that long before it returns.
static int is_disturbed(const char *path) {
  char text[PATH_BYTES], how[WORD_BYTES], times[WORD_BYTES], pattern[PATH_BYTES];
  int fd = control == NULL ? -1 : syscall(SYS_openat, AT_FDCWD, control, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t length = syscall(SYS_read, fd, text, sizeof text - 1);
  syscall(SYS_close, fd);
  text[length < 0 ? 0 : length] = '\0';
  if (sscanf(text, "%15s %15s %4095s", how, times, pattern) != 3 || fnmatch(pattern, path, 0) != 0) return 0;
  if (strcmp(times, "once") == 0 && syscall(SYS_unlinkat, AT_FDCWD, control, 0) != 0) return 0;
  if (strcmp(how, "fail") == 0) return 1;
  long ms = atol(how);
  struct timespec left = {ms / MS_PER_S, ms % MS_PER_S * NS_PER_MS};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
  return 0;
}

static int synced(long call, int fd) {
  char path[PATH_BYTES];
  path_of(fd, path);
  if (path[0] == '\0') return syscall(call, fd);
  tell("sync?", path, NULL);
  int result = -1;
  if (is_disturbed(path)) errno = EIO;
  else result = syscall(call, fd);
  tell(result == 0 ? "sync" : "sync!", path, NULL);
  return result;
}

int fsync(int fd) { return synced(SYS_fsync, fd); }
int fdatasync(int fd) { return synced(SYS_fdatasync, fd); }

static int opened(int at, const char *name, int flags, mode_t mode) {
  int fd = syscall(SYS_openat, at, name, flags, mode);
  if ((flags & (O_CREAT | O_WRONLY | O_RDWR)) == 0) return fd;
  told("open", fd, fd);
  // Its content is removed, which has to reach the disk like a write.
  if ((flags & O_TRUNC) != 0) told("empty", fd, fd);
  return fd;
}

static mode_t mode_of(int flags, va_list more) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0;
}

int open(const char *name, int flags, ...) {
  va_list more;
  va_start(more, flags);
  mode_t mode = mode_of(flags, more);
  va_end(more);
  return opened(AT_FDCWD, name, flags, mode);
}

int openat(int at, const char *name, int flags, ...) {
  va_list more;
  va_start(more, flags);
  mode_t mode = mode_of(flags, more);
  va_end(more);
  return opened(at, name, flags, mode);
}

int creat(const char *name, mode_t mode) { return opened(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int open64(const char *name, int flags, ...) TWIN(open64, open);
int openat64(int at, const char *name, int flags, ...) TWIN(openat64, openat);
int creat64(const char *name, mode_t mode) TWIN(creat64, creat);

// Of a file opened with O_DSYNC, the write has synced what it wrote; the sync that is recorded and disturbed finds nothing left to do.
static long written(int fd, long result) {
  told("write", fd, result);
  if (result < 0 || (syscall(SYS_fcntl, fd, F_GETFL) & O_DSYNC) == 0) return result;
  return synced(SYS_fdatasync, fd) == 0 ? result : -1;
}

ssize_t write(int fd, const void *bytes, size_t count) { return written(fd, syscall(SYS_write, fd, bytes, count)); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
  return written(fd, syscall(SYS_writev, fd, parts, count));
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  return written(fd, syscall(SYS_pwrite64, fd, bytes, count, offset));
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
  return written(fd, syscall(SYS_pwritev, fd, parts, count, offset, 0L));
}

int ftruncate(int fd, off_t length) {
  return told(length == 0 ? "empty" : "write", fd, syscall(SYS_ftruncate, fd, length));
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t offset) TWIN(pwrite64, pwrite);
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t offset) TWIN(pwritev64, pwritev);
int ftruncate64(int fd, off_t length) TWIN(ftruncate64, ftruncate);

int renameat(int at, const char *name, int to_at, const char *to) {
  return told_both("rename", at, name, to_at, to, syscall(SYS_renameat2, at, name, to_at, to, 0));
}

int rename(const char *name, const char *to) { return renameat(AT_FDCWD, name, AT_FDCWD, to); }

int linkat(int at, const char *name, int to_at, const char *to, int flags) {
  return told_both("link", at, name, to_at, to, syscall(SYS_linkat, at, name, to_at, to, flags));
}

int link(const char *name, const char *to) { return linkat(AT_FDCWD, name, AT_FDCWD, to, 0); }

int mkdirat(int at, const char *name, mode_t mode) {
  return told_at("mkdir", at, name, syscall(SYS_mkdirat, at, name, mode));
}

int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

int unlinkat(int at, const char *name, int flags) {
  told_at("unlink", at, name, 0);
  return told_at("unlinked", at, name, syscall(SYS_unlinkat, at, name, flags));
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }
int remove(const char *name) {
  int result = unlinkat(AT_FDCWD, name, 0);
  return result != 0 && (errno == EISDIR || errno == EPERM) ? rmdir(name) : result;
}

ssize_t send(int fd, const void *bytes, size_t count, int flags) {
  if (count >= sizeof ANSWER - 1 && memcmp(bytes, ANSWER, sizeof ANSWER - 1) == 0) tell("answer", "201", NULL);
  return syscall(SYS_sendto, fd, bytes, count, flags, NULL, 0);
}
