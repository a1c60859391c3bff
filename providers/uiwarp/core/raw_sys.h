// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// System calls that go straight to the kernel. uiwarp uses these (or io_uring) for itself, never
// libc's open/write/close/socket: libuiwarp-preload.so and librspreload.so interpose those, so they
// would re-enter us. These are also no cancellation points, as no verb is one. All return the value
// of the call, or -errno; errno itself is not changed. A descriptor made by one of these is the
// stack's own until close() (core/descriptors.h), and is never 0, 1 or 2.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

struct epoll_event;
struct itimerspec;
struct mmsghdr;
struct stat;

namespace uiw::core::sys {

// Moves a descriptor that was made in another way above 2: returns it as it is or, if it is 0, 1 or
// 2, closes it and returns a copy. A program may run with these closed (2>&-) and still write to
// them: its output must not go into a connection or a file of ours. -errno when no higher number is
// free; an error passed in is returned. Keeps CLOEXEC.
int above_standard(int fd);
// For paths below /proc use thread-self: self refers to the main thread, which may have ended
// before the others.
int open(const char* path, int flags, unsigned mode = 0);
int close(int fd);
long read(int fd, void* buffer, size_t size);
long write(int fd, const void* buffer, size_t size);
long pwrite(int fd, const void* buffer, size_t size, off_t offset);
int fallocate(int fd, int mode, off_t offset, off_t size);
// Fills `buffer`, of at most 256 bytes, from the kernel's generator. False while that has no
// entropy yet, in the first seconds after a boot.
bool random(void* buffer, size_t size);
int pipe2(int fds[2], int flags);
int fstat(int fd, struct stat* out);
int fchmod(int fd, mode_t mode);
int fcntl(int fd, int command, long argument = 0);
int socket(int domain, int type, int protocol);
int bind(int fd, const sockaddr* address, socklen_t size);
int listen(int fd, int backlog);
int connect(int fd, const sockaddr* address, socklen_t size);
int accept4(int fd, sockaddr* address, socklen_t* size, int flags);
int shutdown(int fd, int how);
int getsockopt(int fd, int level, int name, void* value, socklen_t* size);
int setsockopt(int fd, int level, int name, const void* value, socklen_t size);
int getsockname(int fd, sockaddr* address, socklen_t* size);
int getpeername(int fd, sockaddr* address, socklen_t* size);
long sendmsg(int fd, const msghdr* message, int flags);
long recvmsg(int fd, msghdr* message, int flags);
// Without a time-out.
long sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags);
long recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags);
// Positive: there is room; 0: there was none within `nanoseconds`.
long wait_writable(int fd, long nanoseconds);
long recv(int fd, void* buffer, size_t size, int flags);
int eventfd(unsigned initial, int flags);
int timerfd_create(int clock, int flags);
int timerfd_settime(int fd, int flags, const itimerspec* time);
int epoll_create1(int flags);
int epoll_ctl(int epoll_fd, int operation, int fd, epoll_event* event);
int ioctl(int fd, unsigned long request, void* argument);
int madvise(void* start, size_t size, int advice);
int gettid();

}  // namespace uiw::core::sys
