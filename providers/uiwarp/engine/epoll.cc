// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/epoll.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "core/assert.h"
#include "core/raw_sys.h"

namespace uiw::engine {
namespace {

namespace sys = core::sys;

// Event data of our own descriptors; others carry their fd.
constexpr uint64_t kWake = UINT64_MAX;
constexpr uint64_t kAlarm = UINT64_MAX - 1;

}  // namespace

core::Result<std::unique_ptr<Backend>> Epoll::open() {
  std::unique_ptr<Epoll> epoll(new (std::nothrow) Epoll);
  if (!epoll) return core::Errno{ENOMEM};
  if (int error = epoll->start(); error != 0) return core::Errno{error};
  return std::unique_ptr<Backend>(std::move(epoll));
}

int Epoll::start() {
  buffer_ = core::allocate_pages(kBufferSize);
  if (!buffer_) return ENOMEM;
  epoll_fd_ = sys::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd_ < 0) return -epoll_fd_;
  wake_fd_ = sys::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) return -wake_fd_;
  alarm_fd_ = sys::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (alarm_fd_ < 0) return -alarm_fd_;
  for (const auto& [fd, name] : {std::pair(wake_fd_, kWake), std::pair(alarm_fd_, kAlarm)}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = name;
    if (int result = sys::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event); result < 0)
      return -result;
  }
  return 0;
}

Epoll::~Epoll() {
  if (wake_fd_ >= 0) sys::close(wake_fd_);
  if (alarm_fd_ >= 0) sys::close(alarm_fd_);
  if (epoll_fd_ >= 0) sys::close(epoll_fd_);
}

Epoll::Waiting* Epoll::waiting_on(int fd) {
  const int block = fd / kPerBlock;
  if (block >= kBlocks) return nullptr;
  if (!blocks_[block]) blocks_[block].reset(new (std::nothrow) Waiting[kPerBlock]);
  return blocks_[block] ? &blocks_[block][fd % kPerBlock] : nullptr;
}

// Makes `op`, which was started, wait until its descriptor is ready.
void Epoll::wait_on(Op& op, int fd) {
  if (fd < 0) {
    end_later(op, -EBADF);
    return;
  }
  Waiting* waiting = waiting_on(fd);
  if (!waiting) {
    end_later(op, -ENOMEM);
    return;
  }
  const bool in = kind_of(op) != Kind::kWritable;
  Op*& place = in ? waiting->in : waiting->out;
  UIW_ASSERT(!place);
  place = &op;
  queue(fd, *waiting);
}

void Epoll::queue(int fd, Waiting& waiting) {
  if (waiting.queued) return;
  waiting.queued = true;
  waiting.next_queued = first_queued_;
  first_queued_ = fd;
}

// Stops `op` from waiting. False when it was not waiting.
bool Epoll::forget(Op& op) {
  const int fd = fd_of(op);
  Waiting* waiting = fd >= 0 ? waiting_on(fd) : nullptr;
  if (!waiting) return false;
  if (waiting->in == &op) {
    waiting->in = nullptr;
  } else if (waiting->out == &op) {
    waiting->out = nullptr;
  } else {
    return false;
  }
  return true;
}

void Epoll::receive(Op& op, int fd, uint32_t most) {
  begin(op, Kind::kReceive, fd);
  set_most(op, most);
  wait_on(op, fd);
}

void Epoll::poll_readable(Op& op, int fd) {
  begin(op, Kind::kReadable, fd);
  wait_on(op, fd);
}

void Epoll::poll_writable(Op& op, int fd) {
  begin(op, Kind::kWritable, fd);
  wait_on(op, fd);
}

void Epoll::cancel(Op& op) {
  if (!mark_cancelling(op) || !forget(op)) return;  // not waiting: its result is pending
  // Unregister now, since the owner may close the descriptor before the next wait().
  const int fd = fd_of(op);
  const Waiting& waiting = *waiting_on(fd);
  if (!waiting.in && !waiting.out) control(EPOLL_CTL_DEL, fd, 0);
  end_later(op, -ECANCELED);
}

int Epoll::control(int operation, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events | EPOLLONESHOT;
  event.data.u64 = static_cast<uint64_t>(fd);
  return -sys::epoll_ctl(epoll_fd_, operation, fd, &event);
}

void Epoll::register_queued() {
  while (first_queued_ >= 0) {
    const int fd = first_queued_;
    Waiting& waiting = *waiting_on(fd);
    first_queued_ = waiting.next_queued;
    waiting.queued = false;
    uint32_t events = 0;
    if (waiting.in) events |= EPOLLIN | EPOLLRDHUP;
    if (waiting.out) events |= EPOLLOUT;
    if (events == 0) continue;
    int error = control(EPOLL_CTL_MOD, fd, events);
    if (error == ENOENT) error = control(EPOLL_CTL_ADD, fd, events);
    if (error == 0) continue;
    for (Op* op : {waiting.in, waiting.out}) {
      if (op) end_later(*op, -error);
    }
    waiting.in = waiting.out = nullptr;
  }
}

void Epoll::set_alarm(core::Nanoseconds at) {
  const itimerspec when{{}, {at / core::kSecond, at % core::kSecond}};
  if (syscall(SYS_timerfd_settime, alarm_fd_, TFD_TIMER_ABSTIME, &when, nullptr) == 0) alarm_ = at;
}

void Epoll::wait(core::Nanoseconds until) {
  register_queued();
  const bool sleep = until != kAtOnce && !any_ended();
  if (sleep && until < alarm_) set_alarm(until);
  // epoll_pwait: epoll_wait does not exist on every architecture.
  const long count =
      syscall(SYS_epoll_pwait, epoll_fd_, events_, kBatch, sleep ? -1 : 0, nullptr, 0);
  event_count_ = count > 0 ? static_cast<int>(count) : 0;
}

void Epoll::wake() {
  const uint64_t one = 1;
  sys::write(wake_fd_, &one, sizeof one);
}

Delivered Epoll::dispatch() {
  delivered_ = {};
  complete_ended();
  const int count = event_count_;
  event_count_ = 0;
  for (int i = 0; i < count; ++i) {
    if (events_[i].data.u64 == kWake) {
      uint64_t value;
      sys::read(wake_fd_, &value, sizeof value);
    } else if (events_[i].data.u64 == kAlarm) {
      uint64_t value;
      sys::read(alarm_fd_, &value, sizeof value);
      alarm_ = kForever;
    } else {
      ready(static_cast<int>(events_[i].data.u64), events_[i].events);
    }
  }
  return delivered_;
}

// An event may be older than the operation that it is delivered to: an earlier completion of this
// batch may have closed the descriptor and opened another file with its number. So an operation
// that receives tries it, and goes on waiting if there is nothing. One that waits to write makes
// its owner try again anyway.
void Epoll::ready(int fd, uint32_t events) {
  Waiting& waiting = *waiting_on(fd);
  constexpr uint32_t kBroken = EPOLLHUP | EPOLLERR;
  if (waiting.in && (events & (EPOLLIN | EPOLLRDHUP | kBroken))) ready_in(*waiting.in, fd, events);
  if (waiting.out && (events & (EPOLLOUT | kBroken))) ready_out(*waiting.out, events);
  // The event has ended the registration for both.
  if (waiting.in || waiting.out) queue(fd, waiting);
}

void Epoll::ready_in(Op& op, int fd, uint32_t events) {
  if (kind_of(op) == Kind::kReadable) {
    forget(op);
    complete(op, static_cast<int>(events), {});
  } else {
    receive_once(op, fd);
  }
}

void Epoll::receive_once(Op& op, int fd) {
  const size_t most = most_of(op) > 0 ? std::min<size_t>(most_of(op), kBufferSize) : kBufferSize;
  const long result = sys::recv(fd, buffer_.get(), most, MSG_DONTWAIT);
  if (result == -EAGAIN || result == -EINTR) return;
  forget(op);
  const size_t size = result > 0 ? static_cast<size_t>(result) : 0;
  if (size > 0) {
    ++delivered_.receives;
    delivered_.octets += size;
    delivered_.fd = fd;
  }
  complete(op, static_cast<int>(result), {buffer_.get(), size});
}

void Epoll::ready_out(Op& op, uint32_t events) {
  forget(op);
  complete(op, static_cast<int>(events), {});
}

}  // namespace uiw::engine
