// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The engine's backend where io_uring is refused (container profiles do that) or too old.
//
// A descriptor is registered for one event at a time (EPOLLONESHOT), and again for the next. That
// costs one system call per message more than a permanent registration. But so nothing is assumed
// about a descriptor that its owner may have closed and reopened as another file meanwhile.
#pragma once

#include <sys/epoll.h>

#include <memory>

#include "core/pages.h"
#include "core/result.h"
#include "engine/backend.h"

namespace uiw::engine {

// Thread: engine, except wake().
class Epoll final : public Backend {
 public:
  // errno: EMFILE, ENFILE, ENOMEM.
  static core::Result<std::unique_ptr<Backend>> open();
  ~Epoll() override;

  void receive(Op& op, int fd, uint32_t most) override;
  void poll_readable(Op& op, int fd) override;
  void poll_writable(Op& op, int fd) override;
  void cancel(Op& op) override;
  void wait(core::Nanoseconds until) override;
  Delivered dispatch() override;
  bool flush() override { return true; }  // the kernel never holds a descriptor for us
  void wake() override;
  void close() override {}
  const char* name() const override { return "epoll"; }

 private:
  // The operations that wait on one descriptor.
  struct Waiting {
    Op* in = nullptr;   // receive or readable
    Op* out = nullptr;  // writable
    bool queued = false;
    int next_queued = -1;
  };
  static constexpr int kPerBlock = 1024;
  static constexpr int kBlocks = 1024;
  static constexpr int kBatch = 64;
  static constexpr size_t kBufferSize = Engine::kReceiveBuffer;

  Epoll() = default;
  int start();
  Waiting* waiting_on(int fd);  // null when out of memory or fd is beyond all limits
  void wait_on(Op& op, int fd);
  void queue(int fd, Waiting& waiting);
  bool forget(Op& op);
  int control(int operation, int fd, uint32_t events);
  void register_queued();
  void set_alarm(core::Nanoseconds at);
  void ready(int fd, uint32_t events);
  void ready_in(Op& op, int fd, uint32_t events);
  void ready_out(Op& op, uint32_t events);
  void receive_once(Op& op, int fd);

  int epoll_fd_ = -1;
  int wake_fd_ = -1;
  int alarm_fd_ = -1;                   // a timerfd
  core::Nanoseconds alarm_ = kForever;  // when it becomes readable
  // One buffer serves all sockets: its bytes are processed before the next receive.
  core::Pages buffer_;
  std::unique_ptr<Waiting[]> blocks_[kBlocks];
  int first_queued_ = -1;  // list of descriptors to register before the next sleep
  epoll_event events_[kBatch];
  int event_count_ = 0;
  Delivered delivered_;
};

}  // namespace uiw::engine
