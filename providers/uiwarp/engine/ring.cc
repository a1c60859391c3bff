// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/ring.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "core/assert.h"
#include "core/descriptors.h"
#include "core/raw_sys.h"
#include "core/tuning.h"

namespace uiw::engine {
namespace {

namespace sys = core::sys;

constexpr unsigned kSubmissions = 256;
constexpr unsigned kCompletions = 4096;  // beyond it the kernel queues, at a cost
constexpr unsigned kBatch = 64;

// Values of user_data that are no Op.
constexpr uint64_t kIgnore = 0;  // the completion of a cancel request; the cancelled operation has
                                 // its own
constexpr uint64_t kWake = 1;
constexpr uint64_t kAlarm = 2;

uint64_t user_data_of(Op& op) {
  return reinterpret_cast<uintptr_t>(&op);
}

// Opens the best ring that this kernel supports: 6.1 knows all flags, 5.19 COOP_TASKRUN.
int open_ring(io_uring& ring) {
  constexpr unsigned kFlags[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
                                 IORING_SETUP_COOP_TASKRUN};
  int result = -ENOSYS;
  for (unsigned flags : kFlags) {
    io_uring_params params{};
    params.flags = flags | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    params.cq_entries = kCompletions;
    result = io_uring_queue_init_params(kSubmissions, &ring, &params);
    if (result != -EINVAL) break;
  }
  // An io_uring that is too old counts as none.
  if (result < 0) return result == -EINVAL ? ENOSYS : -result;
  const int fd = sys::above_standard(ring.ring_fd);
  if (fd < 0) {
    ring.ring_fd = -1;  // already closed
    io_uring_queue_exit(&ring);
    return -fd;
  }
  ring.ring_fd = ring.enter_ring_fd = fd;
  return 0;
}

}  // namespace

core::Result<std::unique_ptr<Backend>> Ring::open() {
  std::unique_ptr<Ring> ring(new (std::nothrow) Ring);
  if (!ring) return core::Errno{ENOMEM};
  if (int error = ring->start(); error != 0) return core::Errno{error};
  return std::unique_ptr<Backend>(std::move(ring));
}

int Ring::start() {
  // Blocking on purpose: the ring would answer EAGAIN for a non-blocking one instead of waiting.
  wake_fd_ = sys::eventfd(0, EFD_CLOEXEC);
  if (wake_fd_ < 0) return -wake_fd_;
  if (int error = open_ring(ring_); error != 0) return error;
  started_ = true;
  core::adopt_descriptor(ring_.ring_fd);
  sys::fcntl(ring_.ring_fd, F_SETFD, FD_CLOEXEC);
  io_uring_ring_dontfork(&ring_);
  if (int error = buffers_.open(ring_); error != 0) return error == EINVAL ? ENOSYS : error;
  // Saves a look-up of the descriptor in every call; not required.
  io_uring_register_ring_fd(&ring_);
  if (int error = try_entering(); error != 0) return error;
  fixed_files_.open(ring_);
  read_wake();
  return 0;
}

// A filter may allow the calls before this one, and forbid io_uring_enter(): nothing would ever be
// submitted, and wait() would return at once.
int Ring::try_entering() {
  io_uring_sqe* sqe = next_sqe();
  io_uring_prep_nop(sqe);
  sqe->user_data = kIgnore;
  const int submitted = io_uring_submit(&ring_);
  return submitted < 0 ? -submitted : 0;
}

Ring::~Ring() {
  close();
  if (wake_fd_ >= 0) sys::close(wake_fd_);
}

void Ring::close() {
  UIW_ASSERT(in_flight() == 0);
  if (!started_) return;
  started_ = false;
  // The kernel must not use wake_value_ after it is freed.
  stopping_ = true;
  if (wake_armed_) queue_cancel(kWake);
  while (wake_armed_) {
    wait(kForever);
    dispatch();
  }
  core::release_descriptor(ring_.ring_fd);
  io_uring_queue_exit(&ring_);
}

// io_uring_prep_*() of some versions of liburing clear user_data: set it after them.
io_uring_sqe* Ring::next_sqe() {
  io_uring_sqe* sqe;
  while (!(sqe = io_uring_get_sqe(&ring_))) io_uring_submit(&ring_);
  return sqe;
}

void Ring::read_wake() {
  io_uring_sqe* sqe = next_sqe();
  io_uring_prep_read(sqe, wake_fd_, &wake_value_, sizeof wake_value_, 0);
  sqe->user_data = kWake;
  wake_armed_ = true;
}

static_assert(BufferRing::kSize == Engine::kReceiveBuffer);

void Ring::receive(Op& op, int fd, uint32_t most) {
  UIW_ASSERT(fd == fd_of(op) || fixed_of(op) < 0);  // else let_go() of the other descriptor was
                                                    // forgotten
  if (fd != fd_of(op)) set_drained(op, false);
  begin(op, Kind::kReceive, fd);
  set_most(op, most);
  queue_receive(op);
}

// Only for a socket that receives much the two system calls pay off.
void Ring::consider_fixing(Op& op) {
  if (receives_of(op) >= core::tuning::kReceivesUntilFixed ||
      ++receives_of(op) < core::tuning::kReceivesUntilFixed)
    return;
  fixed_of(op) = fixed_files_.add(fd_of(op));
}

void Ring::let_go(Op& op) {
  UIW_ASSERT(!op.in_flight());
  receives_of(op) = 0;
  if (fixed_of(op) >= 0 && started_) fixed_files_.remove(fixed_of(op));
  fixed_of(op) = -1;
}

void Ring::queue_receive(Op& op) {
  consider_fixing(op);
  const bool fixed = fixed_of(op) >= 0;
  io_uring_sqe* sqe = next_sqe();
  // 0: the whole buffer
  io_uring_prep_recv(sqe, fixed ? fixed_of(op) : fd_of(op), nullptr, most_of(op), 0);
  if (fixed) sqe->flags |= IOSQE_FIXED_FILE;
  sqe->flags |= IOSQE_BUFFER_SELECT;
  sqe->buf_group = BufferRing::kGroup;
  // Saves the kernel a try at a socket known to be empty; arming the poll checks it anyway.
  if (drained(op)) sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
  sqe->user_data = user_data_of(op);
}

void Ring::poll_readable(Op& op, int fd) {
  begin(op, Kind::kReadable, fd);
  poll(op, fd, POLLIN);
}

void Ring::poll_writable(Op& op, int fd) {
  begin(op, Kind::kWritable, fd);
  poll(op, fd, POLLOUT);
}

void Ring::poll(Op& op, int fd, unsigned events) {
  io_uring_sqe* sqe = next_sqe();
  io_uring_prep_poll_add(sqe, fd, events);
  sqe->user_data = user_data_of(op);
}

void Ring::cancel(Op& op) {
  if (mark_cancelling(op)) queue_cancel(user_data_of(op));
}

void Ring::queue_cancel(uint64_t user_data) {
  io_uring_sqe* sqe = next_sqe();
  io_uring_prep_cancel64(sqe, user_data, 0);
  sqe->user_data = kIgnore;
}

// Not IORING_TIMEOUT_ABS: in a time namespace the kernel measures absolute times by another clock
// than core::now(). An entry that is submitted late just ends late.
void Ring::set_alarm(core::Nanoseconds at) {
  io_uring_sqe* sqe = next_sqe();
  const core::Nanoseconds after = std::max<core::Nanoseconds>(at - core::now(), 0);
  alarm_time_ = {after / core::kSecond, after % core::kSecond};
  if (alarm_ == kForever) {
    io_uring_prep_timeout(sqe, &alarm_time_, 0, 0);
    sqe->user_data = kAlarm;
  } else {
    // If the timeout has just completed, there is nothing to update; deliver() gets it next.
    io_uring_prep_timeout_update(sqe, &alarm_time_, kAlarm, 0);
    sqe->user_data = kIgnore;
  }
  alarm_ = at;
}

void Ring::wait(core::Nanoseconds until) {
  if (until == kAtOnce) {
    flush();
    return;
  }
  if (until < alarm_) set_alarm(until);
  // The result does not matter: after a failure to submit, the entries stay queued for the next
  // turn; EINTR and EBUSY end the wait early, which callers expect.
  io_uring_submit_and_wait(&ring_, 1);
}

bool Ring::flush() {
  io_uring_submit_and_get_events(&ring_);
  return io_uring_sq_ready(&ring_) == 0;
}

void Ring::wake() {
  uint64_t one = 1;
  sys::write(wake_fd_, &one, sizeof one);
}

Delivered Ring::dispatch() {
  delivered_ = {};
  for (;;) {
    // Copied, because a completion may call flush(), which lets the kernel write more of them.
    io_uring_cqe* arrived[kBatch];
    Completion batch[kBatch];
    unsigned count = io_uring_peek_batch_cqe(&ring_, arrived, kBatch);
    if (count == 0) return delivered_;
    for (unsigned i = 0; i < count; ++i) {
      batch[i] = {arrived[i]->user_data, arrived[i]->res, arrived[i]->flags};
    }
    io_uring_cq_advance(&ring_, count);
    for (unsigned i = 0; i < count; ++i) deliver(batch[i]);
  }
}

void Ring::deliver(const Completion& completion) {
  if (completion.user_data == kIgnore) return;
  if (completion.user_data == kAlarm) {
    alarm_ = kForever;
    return;
  }
  if (completion.user_data == kWake) {
    wake_armed_ = false;
    if (!stopping_) read_wake();
    return;
  }
  Op& op = *reinterpret_cast<Op*>(static_cast<uintptr_t>(completion.user_data));
  if (kind_of(op) == Kind::kReceive) {
    deliver_receive(op, completion);
  } else {
    complete(op, completion.result, {});
  }
}

void Ring::deliver_receive(Op& op, const Completion& completion) {
  if (completion.flags & IORING_CQE_F_BUFFER) {
    auto id = static_cast<uint16_t>(completion.flags >> IORING_CQE_BUFFER_SHIFT);
    size_t size = completion.result > 0 ? static_cast<size_t>(completion.result) : 0;
    core::Bytes octets = buffers_.take(id, size);
    if (size > 0) {
      ++delivered_.receives;
      delivered_.octets += size;
      delivered_.fd = fd_of(op);
    }
    set_drained(op, size < BufferRing::kSize && !(completion.flags & IORING_CQE_F_SOCK_NONEMPTY));
    complete(op, completion.result, octets);
    buffers_.put_back(id);
    return;
  }
  if (completion.result == -ENOBUFS) buffers_.ran_out();
  if (completion.result == -ENOBUFS || completion.result == -EINTR ||
      completion.result == -EAGAIN) {
    // Nothing was lost: the bytes are still in the socket. The kernel may have completed the
    // receive before it saw our cancel, which then found nothing to cancel.
    if (cancelling(op)) {
      complete(op, -ECANCELED, {});
    } else {
      set_drained(op, false);
      queue_receive(op);
    }
    return;
  }
  complete(op, completion.result, {});
}

}  // namespace uiw::engine
