// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// One end of a connection: a session::QueuePair, over whatever carries its bytes.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "engine/engine.h"
#include "session/queue_pair.h"
#include "session/state.h"
#include "sim/world.h"

namespace uiw::session {

class InsideQueuePair {
 public:
  static State& state(QueuePair& qp) { return *qp.state_; }
  static qp::Shared& shared(QueuePair& qp) { return state(qp).connection->shared; }
};

}  // namespace uiw::session

namespace uiw::test {

class QueuePairEnd : public End,
                     public session::ConnectionObserver,
                     public queue::QueuePairEvents,
                     public queue::SrqEvents {
 public:
  // `engine` serves the queue pair, `making` makes its connection.
  QueuePairEnd(engine::Engine& engine, engine::Engine& making, mem::Table& table, uint32_t number,
               const EndOptions& wanted)
      : End(table, number, wanted), making_(making) {
    session::QueuePairOptions o;
    o.qp_num = number;
    o.service = wanted.service;
    o.pd = o.srq_pd = kPd;
    o.memory = &table;
    o.send_cq = send_cq.get();
    o.recv_cq = recv_cq.get();
    o.srq = wanted.srq;
    o.events = this;
    o.srq_events = this;
    o.cap = {.max_send_wr = wanted.depth,
             .max_recv_wr = wanted.receives,
             .max_send_sge = queue::kMaxSge,
             .max_recv_sge = queue::kMaxSge,
             .max_inline_data = 512};
    o.send_with_immediate = wanted.immediates;
    qp_ = session::QueuePair::create(engine, o);
    session::InsideQueuePair::shared(*qp_).acknowledged = wanted.acknowledged;
    if (wanted.service == core::Service::kReliable) return;
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(qp_->expect_peer(), 0);
    EXPECT_EQ(qp_->modify(attr, IBV_QP_STATE), 0);
  }

  // Full operation on a connected socket.
  void attach(int fd, const mpa::Agreement& agreed, core::Bytes leftover = {}) {
    fd_ = fd;
    agreement = agreed;
    transport::StreamPtr stream = transport::TcpStream::adopt(making_, fd);
    int result = -1;
    making_.run_sync([&] { result = qp_->attach(std::move(stream), agreed, leftover, this); });
    EXPECT_EQ(result, 0);
  }

  int post_send(ibv_send_wr* wr, ibv_send_wr** bad) override { return qp_->post_send(wr, bad); }
  int post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad) override { return qp_->post_recv(wr, bad); }
  void disconnect() override {
    making_.run_sync([&] { qp_->disconnect(); });
  }
  void to_error() override {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    EXPECT_EQ(qp_->modify(attr, IBV_QP_STATE), 0);
  }
  void destroy() override {
    if (qp_) making_.run_sync([&] { qp_->forget_observer(); });
    qp_.reset();
  }
  void return_lease() override {
    if (qp_) session::InsideQueuePair::state(*qp_).ring(session::kReturn);
  }

  uint64_t lost(qp::Loss why) override {
    return session::InsideQueuePair::shared(*qp_).losses.of(why);
  }

  void on_first_fpdu() override { notice({.kind = Notice::kFirstFpdu}); }
  void on_connection_ended(int error) override { notice({.kind = Notice::kEnded, .error = error}); }
  void on_async_event(ibv_event_type type) override {
    notice({.kind = Notice::kAsync, .event = type});
  }
  void on_srq_limit() override { notice({.kind = Notice::kSrqLimit}); }

 protected:
  engine::Engine& making_;
  std::unique_ptr<session::QueuePair> qp_;
  int fd_ = -1;
};

}  // namespace uiw::test
