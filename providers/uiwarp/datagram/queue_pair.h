// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A UD queue pair: what it is posted goes to the kernel inside the post, what comes for it a
// receiver of its port (door.h), or of a multicast group (groups.h), puts into its receives.
// doc/decisions/025 says why so.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "core/cause.h"
#include "counters/published_state.h"
#include "datagram/late.h"
#include "datagram/send_queue.h"
#include "datagram/socket.h"
#include "device/device.h"
#include "engine/engine.h"
#include "mem/last_region.h"
#include "queue/dropped_receives.h"
#include "queue/queue_pair_options.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::datagram {

class Door;

struct QueuePairOptions : queue::QueuePairOptions {
  FindAddressHandle find_address_handle = nullptr;
  const device::Device* device = nullptr;
};

class QueuePair final : private engine::Task, private Receiver {
 public:
  // Null when out of memory. It sends and receives through `door`, which stays open, and where it
  // is to be announced (Door::add()); `engine` is the door's. Begins in RESET. Thread: any.
  static std::unique_ptr<QueuePair> create(engine::Engine& engine, Door& door,
                                           const QueuePairOptions& options);
  // Not in a fork's child; and the engine has to have run what fail() may have left it. Outstanding
  // work requests vanish without completion. Thread: any, once the door and all groups have let it
  // go.
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  uint32_t qp_num() const { return options_.qp_num; }

  // ibv_post_send, ibv_post_recv: 0 or errno, *bad set on error. Thread: any.
  // EINVAL: bad opcode, too many SGEs, inline too large, no address handle or one of another
  // protection domain, a state that does not send. ENOMEM: queue full. ENODEV: a fork of the
  // process that made it; so do all others.
  // A datagram that finds no room in the socket waits for kFullSocketWait, then it is lost. What is
  // larger than the port's MTU, or names memory that it may not, completes with an error and takes
  // the queue pair to ERR; InfiniBand's state would be SQE (10.3.1), which no driver leaves either
  // without being told.
  int post_send(ibv_send_wr* wr, ibv_send_wr** bad);
  int post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad);

  // ibv_wr_start() and its family: posted together or not at all. From begin to end other posts
  // wait. set_batch_address() is for the last one added. Thread: any, the same for all.
  void begin_batch();
  int add_to_batch(const ibv_send_wr& wr);
  int set_batch_address(const ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey);
  int end_batch(bool publish);

  // ibv_modify_qp, ibv_query_qp. 0 or errno: states.h; ENOMEM. Thread: any.
  int modify(const ibv_qp_attr& attr, int mask);
  int query(ibv_qp_attr& attr, ibv_qp_init_attr& init) const;

  // Something that it needs is broken: ERR, with IBV_EVENT_QP_FATAL, when the engine comes to it.
  // Thread: any, whatever it has locked.
  void fail();

  // What came for it, if it is in a state to receive: with the right Q_Key it takes a receive.
  // Thread: any that keeps it from being destroyed.
  void deliver(const Arrival& arrival);
  // What is late never comes. Behind the last deliver(), before it is destroyed. Thread: engine.
  void end_late() { late_.end(); }

  // Whose pollers are interested in what it receives.
  queue::CompletionQueue& recv_cq() const { return *options_.recv_cq; }

 private:
  QueuePair(engine::Engine& engine, Door& door, const QueuePairOptions& options)
      : engine_(engine), door_(door), options_(options) {}
  bool create_queues();
  [[nodiscard]] queue::DroppedReceives purge_completions();
  // The largest payload now, in bytes: it follows the interface.
  uint32_t mtu() const { return options_.device->path_mtu.load(std::memory_order_relaxed); }
  int refuse_post(ibv_qp_state now) const;
  void enter_error(std::unique_lock<std::mutex>& receiving, core::Cause cause);
  void flush_receives();
  int reset();
  int begin_anew(queue::DroppedReceives& dropped);
  void run() override;

  // sending.cc, under posting_
  class Burst;
  int add_addressed(const ibv_send_wr& wr, queue::PostRefusal& refused);
  void send_added();
  void complete(const SendRequest& request, uint64_t frees, ibv_wc_status status,
                core::Cause cause = core::Cause::kNone);
  core::Cause explain_memory(const SendRequest& request);

  // receiving.cc
  void take_in(const Arrival& arrival);
  void meet(const uiwarp_verbs& asked, const Arrival& arrival);
  void put_off(const Arrival& arrival, core::Nanoseconds delay);
  bool hold(const Arrival& arrival);
  void on_arrival(const Arrival& arrival) override { take_in(arrival); }  // of one that was late
  // under receiving_
  bool place(const queue::Receive& receive, const Arrival& arrival);
  core::Cause explain(const queue::Receive& receive, const Arrival& arrival);
  void drop_too_long(const queue::Receive& receive, const Arrival& arrival);
  void complete_receive(const queue::Receive& receive, const ibv_wc& result, bool solicited);

  engine::Engine& engine_;
  Door& door_;
  const QueuePairOptions options_;
  counters::PublishedState state_{*options_.counters, IBV_QPS_RESET};
  std::atomic<uint32_t> qkey_{0};
  std::atomic<uint32_t> sq_psn_{0};  // for ibv_query_qp
  std::atomic<bool> failing_{false};
  mutable core::Told told_;
  std::atomic<core::Cause> end_{core::Cause::kNone};  // why it is in ERR: vendor_err

  queue::CompletionSources sources_;  // under posting_ that of sends, under receiving_ the other

  // Posts, and what they send and complete. Held across sendmsg(), so that datagrams and their
  // completions have one order.
  std::mutex posting_;  // before receiving_
  std::unique_ptr<SendQueue> send_queue_;

  // What takes from the receive queue, and completes it: datagrams and flushes.
  alignas(64) std::mutex receiving_;
  std::unique_ptr<queue::ReceiveQueue> own_receives_;  // null with an SRQ
  queue::ReceiveQueue* receives_ = nullptr;
  mem::LastRegion regions_{mem::Side::kReceive};
  std::optional<Kept> held_;  // the next one overtakes it, since an instrument wants it so

  Late late_{engine_, *this};
};

}  // namespace uiw::datagram
