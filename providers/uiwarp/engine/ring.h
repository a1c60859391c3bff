// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The engine's backend on io_uring. Needs Linux 5.19 (buffer rings); from 6.1 on the ring runs with
// SINGLE_ISSUER | DEFER_TASKRUN, where the kernel works for us only while we wait for it.
#pragma once

#include <liburing.h>

#include <memory>

#include "core/result.h"
#include "engine/backend.h"
#include "engine/buffer_ring.h"
#include "engine/fixed_files.h"

namespace uiw::engine {

// Thread: engine (the one that opens it is the ring's single issuer), except wake().
class Ring final : public Backend {
 public:
  // errno: ENOSYS no io_uring or too old, EPERM or EACCES refused by policy, EMFILE, ENOMEM.
  static core::Result<std::unique_ptr<Backend>> open();
  ~Ring() override;

  void receive(Op& op, int fd, uint32_t most) override;
  void poll_readable(Op& op, int fd) override;
  void poll_writable(Op& op, int fd) override;
  void cancel(Op& op) override;
  void let_go(Op& op) override;
  void wait(core::Nanoseconds until) override;
  Delivered dispatch() override;
  bool flush() override;
  void wake() override;
  void close() override;
  const char* name() const override { return "io_uring"; }

 private:
  struct Completion {  // a copy of an io_uring_cqe
    uint64_t user_data;
    int result;
    uint32_t flags;
  };

  Ring() = default;
  int start();
  int try_entering();
  io_uring_sqe* next_sqe();
  void queue_cancel(uint64_t user_data);
  void read_wake();
  void poll(Op& op, int fd, unsigned events);
  void set_alarm(core::Nanoseconds at);
  void queue_receive(Op& op);
  void consider_fixing(Op& op);
  void deliver(const Completion& completion);
  void deliver_receive(Op& op, const Completion& completion);

  BufferRing buffers_;  // must outlive the ring
  io_uring ring_{};
  FixedFiles fixed_files_;
  bool started_ = false;
  bool stopping_ = false;
  bool wake_armed_ = false;
  int wake_fd_ = -1;
  uint64_t wake_value_ = 0;             // where the kernel stores the eventfd's value, which is not
                                        // used
  core::Nanoseconds alarm_ = kForever;  // when the timeout operation in the kernel completes
  __kernel_timespec alarm_time_{};      // the kernel reads this at submission
  Delivered delivered_;
};

}  // namespace uiw::engine
