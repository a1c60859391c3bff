// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "sim/sim_kernel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/raw_sys.h"

namespace uiw::test {

namespace {

Kernel* g_current = nullptr;

}  // namespace

Kernel::Kernel(uint32_t seed) : random_(seed) {
  g_current = this;
}

Kernel::~Kernel() {
  EXPECT_TRUE(sockets_.empty()) << sockets_.size() << " sockets were never closed";
  g_current = nullptr;
}

Kernel& Kernel::current() {
  return *g_current;
}

const Kernel::Socket* Kernel::find(int fd) const {
  const auto it = sockets_.find(fd);
  return it == sockets_.end() ? nullptr : &it->second;
}

std::pair<int, int> Kernel::connect(size_t window) {
  constexpr size_t kWindows[] = {200, 4096, 20000, 65536, 1 << 20};
  const auto one = std::make_shared<Pipe>(), other = std::make_shared<Pipe>();
  one->window = std::max(window, kWindows[random() % 5]);
  other->window = std::max(window, kWindows[random() % 5]);
  const int first = next_fd_++, second = next_fd_++;
  sockets_[first] = {.in = one, .out = other};
  sockets_[second] = {.in = other, .out = one};
  return {first, second};
}

void Kernel::reset(int fd) {
  Socket* const socket = find(fd);
  if (!socket) return;
  socket->in->reset = socket->out->reset = true;
  ++events_;
}

void Kernel::half_close(int fd) {
  Socket* const socket = find(fd);
  if (!socket) return;
  socket->out->fin = true;
  ++events_;
}

void Kernel::corrupt_incoming(int fd) {
  Socket* const socket = find(fd);
  if (!socket || socket->in->bytes.empty()) return;
  std::deque<uint8_t>& bytes = socket->in->bytes;
  bytes[random() % bytes.size()] ^= static_cast<uint8_t>(1 << random() % 8);
}

void Kernel::let_others_run() {
  if (meanwhile && by_chance(8)) meanwhile();
}

size_t Kernel::piece() {
  constexpr uint32_t kChoices[] = {1, 3, 100, 1460, 10000, 100000};
  return 1 + random() % kChoices[random() % 6];
}

long Kernel::send(int fd, std::span<const iovec> pieces) {
  if (before_send) before_send();
  let_others_run();
  Socket* socket = find(fd);
  if (!socket) return -EBADF;
  Pipe& out = *socket->out;
  if (socket->in->reset && !socket->told_reset) {
    socket->told_reset = true;
    return -ECONNRESET;
  }
  if (out.fin || out.reset || socket->in->reset) return -EPIPE;
  size_t room = out.window - std::min(out.window, out.bytes.size());
  if (by_chance(4)) room = std::min(room, piece());
  if (room == 0) return -EAGAIN;
  size_t taken = 0;
  for (const iovec& part : pieces) {
    const size_t size = std::min(room - taken, part.iov_len);
    const auto* from = static_cast<const uint8_t*>(part.iov_base);
    out.bytes.insert(out.bytes.end(), from, from + size);
    taken += size;
  }
  ++events_;
  // Nobody is there to read it.
  if (socket->out.use_count() == 1) {
    out.bytes.clear();
    socket->in->reset = true;
  }
  let_others_run();
  return static_cast<long>(taken);
}

long Kernel::receive(int fd, std::span<const iovec> pieces) {
  let_others_run();
  Socket* socket = find(fd);
  if (!socket) return -EBADF;
  Pipe& in = *socket->in;
  if (in.bytes.empty()) {
    if (in.reset && !socket->told_reset) {
      socket->told_reset = true;
      ++events_;
      return -ECONNRESET;
    }
    return in.reset || in.fin ? 0 : -EAGAIN;
  }
  size_t left = std::min(in.bytes.size(), piece()), taken = 0;
  for (const iovec& part : pieces) {
    const size_t size = std::min(left, part.iov_len);
    const auto end = in.bytes.begin() + static_cast<std::ptrdiff_t>(size);
    std::copy(in.bytes.begin(), end, static_cast<uint8_t*>(part.iov_base));
    in.bytes.erase(in.bytes.begin(), end);
    left -= size;
    taken += size;
  }
  ++events_;
  let_others_run();
  return static_cast<long>(taken);
}

int Kernel::close(int fd) {
  if (timers_.erase(fd) > 0) return 0;
  const auto it = sockets_.find(fd);
  if (it == sockets_.end()) return -EBADF;
  Socket& socket = it->second;
  // As Linux does: input that nobody has read is answered by RST.
  if (socket.abortive || !socket.in->bytes.empty()) {
    socket.out->reset = true;
    socket.in->bytes.clear();
  } else {
    socket.out->fin = true;
  }
  sockets_.erase(it);
  ++events_;
  return 0;
}

int Kernel::make_timer() {
  timers_[next_fd_] = kNever;
  return next_fd_++;
}

void Kernel::set_timer(int fd, core::Nanoseconds at) {
  timers_[fd] = at;
}

long Kernel::read_timer(int fd) {
  if (timers_[fd] > now_) return -EAGAIN;
  timers_[fd] = kNever;
  return sizeof(uint64_t);
}

uint32_t Kernel::emss() {
  constexpr uint32_t kChoices[] = {100, 1460, 8948, 65483};
  return kChoices[random() % 4];
}

bool Kernel::has_unread(int fd) const {
  const Socket* const socket = find(fd);
  return socket && !socket->in->bytes.empty();
}

uint8_t Kernel::tcp_state(int fd) const {
  const Socket* const socket = find(fd);
  if (!socket || socket->in->reset || socket->out->reset) return TCP_CLOSE;
  if (socket->in->fin) return socket->out->fin ? TCP_CLOSE : TCP_CLOSE_WAIT;
  return socket->out->fin ? TCP_FIN_WAIT2 : TCP_ESTABLISHED;
}

void Kernel::make_abortive(int fd) {
  if (Socket* const socket = find(fd)) socket->abortive = true;
}

bool Kernel::is_readable(int fd) const {
  if (const auto timer = timers_.find(fd); timer != timers_.end()) return timer->second <= now_;
  const Socket* const socket = find(fd);
  return !socket || !socket->in->bytes.empty() || socket->in->fin || socket->in->reset;
}

bool Kernel::is_writable(int fd) const {
  const Socket* const socket = find(fd);
  if (!socket) return true;
  const Pipe& out = *socket->out;
  return out.bytes.size() < out.window || out.fin || out.reset || socket->in->reset;
}

core::Nanoseconds Kernel::next_timer() const {
  core::Nanoseconds next = kNever;
  for (const auto& [fd, at] : timers_) next = std::min(next, at);
  return next;
}

}  // namespace uiw::test

// What the layers call.
namespace uiw::core {

Nanoseconds now() {
  return test::Kernel::current().now();
}
uint64_t ticks_in(Nanoseconds time) {
  return static_cast<uint64_t>(time);
}
Nanoseconds time_of(uint64_t ticks) {
  return static_cast<Nanoseconds>(ticks);
}

namespace sys {

using test::Kernel;

long sendmsg(int fd, const msghdr* message, int) {
  return Kernel::current().send(fd, {message->msg_iov, message->msg_iovlen});
}
long recvmsg(int fd, msghdr* message, int) {
  return Kernel::current().receive(fd, {message->msg_iov, message->msg_iovlen});
}
long recv(int fd, void* buffer, size_t size, int) {
  const iovec whole{buffer, size};
  return Kernel::current().receive(fd, {&whole, 1});
}
int shutdown(int fd, int) {
  Kernel::current().half_close(fd);
  return 0;
}
// Files are the system's.
int open(const char* path, int flags, unsigned mode) {
  return ::open(path, flags, mode);
}
int close(int fd) {
  return fd < Kernel::kFirstFd ? ::close(fd) : Kernel::current().close(fd);
}
long read(int fd, void* buffer, size_t size) {
  return fd < Kernel::kFirstFd ? ::read(fd, buffer, size) : Kernel::current().read_timer(fd);
}
long write(int fd, const void* buffer, size_t size) {
  return ::write(fd, buffer, size);
}
int fallocate(int fd, int mode, off_t offset, off_t size) {
  return ::fallocate(fd, mode, offset, size) == 0 ? 0 : -errno;
}
bool random(void* buffer, size_t size) {
  return ::getrandom(buffer, size, 0) == static_cast<ssize_t>(size);
}
long wait_writable(int, long) {
  return 1;  // standard error
}
int timerfd_create(int, int) {
  return Kernel::current().make_timer();
}
int timerfd_settime(int fd, int, const itimerspec* time) {
  Kernel::current().set_timer(fd, time->it_value.tv_sec * kSecond + time->it_value.tv_nsec);
  return 0;
}
int ioctl(int fd, unsigned long request, void* out) {
  if (fd < Kernel::kFirstFd) return ::ioctl(fd, request, out) < 0 ? -errno : 0;
  *static_cast<int*>(out) = Kernel::current().has_unread(fd);
  return 0;
}
int getsockopt(int fd, int level, int name, void* value, socklen_t* size) {
  if (level == IPPROTO_TCP && name == TCP_INFO) {
    std::memset(value, 0, *size);
    *static_cast<uint8_t*>(value) = Kernel::current().tcp_state(fd);  // tcpi_state comes first
    return 0;
  }
  if (level != IPPROTO_TCP || name != TCP_MAXSEG) return -ENOPROTOOPT;
  *static_cast<int*>(value) = static_cast<int>(Kernel::current().emss());
  return 0;
}
int setsockopt(int fd, int level, int name, const void*, socklen_t) {
  if (level == SOL_SOCKET && name == SO_LINGER) Kernel::current().make_abortive(fd);
  return 0;
}
// Every peer is another host, of which this one knows nothing.
int getsockname(int, sockaddr*, socklen_t*) {
  return -ENOTCONN;
}
int getpeername(int, sockaddr*, socklen_t*) {
  return -ENOTCONN;
}
int socket(int, int, int) {
  return -EAFNOSUPPORT;
}
int bind(int, const sockaddr*, socklen_t) {
  return -EADDRNOTAVAIL;
}
// Only to nobody, TcpStream::cut().
int connect(int fd, const sockaddr*, socklen_t) {
  Kernel::current().reset(fd);
  return 0;
}
int gettid() {
  return 1;
}

}  // namespace sys
}  // namespace uiw::core
