// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/raw_sys.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <type_traits>

#include "core/descriptors.h"

namespace uiw::core::sys {
namespace {

template <class T>
long as_long(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<long>(value);
  } else {
    return static_cast<long>(value);
  }
}

#if defined(__x86_64__)

// The kernel clobbers rcx and r11 and returns -errno: no libc, no errno.
long call(long number, long a, long b, long c, long d, long e) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                   : "rcx", "r11", "memory");
  return result;
}

#else

long call(long number, long a, long b, long c, long d, long e) {
  int saved = errno;
  long result = ::syscall(number, a, b, c, d, e);
  if (result == -1) result = -errno;
  errno = saved;
  return result;
}

#endif

template <class... Arguments>
long raw(long number, Arguments... arguments) {
  long a[5] = {as_long(arguments)...};
  return call(number, a[0], a[1], a[2], a[3], a[4]);
}

// Marks a new descriptor as the stack's own.
int own(long result) {
  const int fd = above_standard(static_cast<int>(result));
  adopt_descriptor(fd);
  return fd;
}

}  // namespace

int above_standard(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const bool close_on_exec = (raw(SYS_fcntl, fd, F_GETFD, 0) & FD_CLOEXEC) != 0;
  const int above = static_cast<int>(
      raw(SYS_fcntl, fd, close_on_exec ? F_DUPFD_CLOEXEC : F_DUPFD, STDERR_FILENO + 1));
  raw(SYS_close, fd);
  // EINVAL: the limit of descriptors is below 4.
  return above == -EINVAL ? -EMFILE : above;
}

int open(const char* path, int flags, unsigned mode) {
  return own(raw(SYS_openat, AT_FDCWD, path, flags, mode));
}
int close(int fd) {
  // Before the close: another thread may get the number at once.
  release_descriptor(fd);
  return static_cast<int>(raw(SYS_close, fd));
}
long read(int fd, void* buffer, size_t size) {
  return raw(SYS_read, fd, buffer, size);
}
long write(int fd, const void* buffer, size_t size) {
  return raw(SYS_write, fd, buffer, size);
}
long pwrite(int fd, const void* buffer, size_t size, off_t offset) {
  return raw(SYS_pwrite64, fd, buffer, size, offset);
}
int fallocate(int fd, int mode, off_t offset, off_t size) {
  return static_cast<int>(raw(SYS_fallocate, fd, mode, offset, size));
}
bool random(void* buffer, size_t size) {
  long got;
  do {
    got = raw(SYS_getrandom, buffer, size, GRND_NONBLOCK);
  } while (got == -EINTR);
  return got == static_cast<long>(size);
}
int pipe2(int fds[2], int flags) {
  int ends[2];
  if (const long result = raw(SYS_pipe2, ends, flags); result < 0) return static_cast<int>(result);
  const int reading = own(ends[0]), writing = own(ends[1]);
  if (reading < 0 || writing < 0) {
    if (reading >= 0) sys::close(reading);
    if (writing >= 0) sys::close(writing);
    return std::min(reading, writing);
  }
  fds[0] = reading;
  fds[1] = writing;
  return 0;
}
int fstat(int fd, struct stat* out) {
  return static_cast<int>(raw(SYS_fstat, fd, out));
}

int fchmod(int fd, mode_t mode) {
  return static_cast<int>(raw(SYS_fchmod, fd, mode));
}
int fcntl(int fd, int command, long argument) {
  return static_cast<int>(raw(SYS_fcntl, fd, command, argument));
}
int socket(int domain, int type, int protocol) {
  return own(raw(SYS_socket, domain, type, protocol));
}
int bind(int fd, const sockaddr* address, socklen_t size) {
  return static_cast<int>(raw(SYS_bind, fd, address, size));
}
int listen(int fd, int backlog) {
  return static_cast<int>(raw(SYS_listen, fd, backlog));
}
int connect(int fd, const sockaddr* address, socklen_t size) {
  return static_cast<int>(raw(SYS_connect, fd, address, size));
}
int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  return own(raw(SYS_accept4, fd, address, size, flags));
}
int shutdown(int fd, int how) {
  return static_cast<int>(raw(SYS_shutdown, fd, how));
}
int getsockopt(int fd, int level, int name, void* value, socklen_t* size) {
  return static_cast<int>(raw(SYS_getsockopt, fd, level, name, value, size));
}
int setsockopt(int fd, int level, int name, const void* value, socklen_t size) {
  return static_cast<int>(raw(SYS_setsockopt, fd, level, name, value, size));
}
int getsockname(int fd, sockaddr* address, socklen_t* size) {
  return static_cast<int>(raw(SYS_getsockname, fd, address, size));
}
int getpeername(int fd, sockaddr* address, socklen_t* size) {
  return static_cast<int>(raw(SYS_getpeername, fd, address, size));
}
long sendmsg(int fd, const msghdr* message, int flags) {
  return raw(SYS_sendmsg, fd, message, flags);
}
long recvmsg(int fd, msghdr* message, int flags) {
  return raw(SYS_recvmsg, fd, message, flags);
}
long sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  return raw(SYS_sendmmsg, fd, messages, count, flags);
}
long recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  return raw(SYS_recvmmsg, fd, messages, count, flags, 0L);
}
long wait_writable(int fd, long nanoseconds) {
  constexpr long kSecond = 1'000'000'000;
  pollfd waits{fd, POLLOUT, 0};
  const timespec limit{nanoseconds / kSecond, nanoseconds % kSecond};
  return raw(SYS_ppoll, &waits, 1, &limit, 0L, 0L);
}
long recv(int fd, void* buffer, size_t size, int flags) {
  // The address and its size are not wanted.
  return raw(SYS_recvfrom, fd, buffer, size, flags, 0L);
}
int eventfd(unsigned initial, int flags) {
  return own(raw(SYS_eventfd2, initial, flags));
}
int timerfd_create(int clock, int flags) {
  return own(raw(SYS_timerfd_create, clock, flags));
}
int timerfd_settime(int fd, int flags, const itimerspec* time) {
  return static_cast<int>(raw(SYS_timerfd_settime, fd, flags, time, 0));
}
int epoll_create1(int flags) {
  return own(raw(SYS_epoll_create1, flags));
}
int epoll_ctl(int epoll_fd, int operation, int fd, epoll_event* event) {
  return static_cast<int>(raw(SYS_epoll_ctl, epoll_fd, operation, fd, event));
}
int ioctl(int fd, unsigned long request, void* argument) {
  return static_cast<int>(raw(SYS_ioctl, fd, request, argument));
}
int madvise(void* start, size_t size, int advice) {
  return static_cast<int>(raw(SYS_madvise, start, size, advice));
}
int gettid() {
  return static_cast<int>(raw(SYS_gettid));
}

}  // namespace uiw::core::sys
