// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// States and queues of a UD queue pair; sending.cc and receiving.cc are the rest.
#include "datagram/queue_pair.h"

#include <cerrno>
#include <new>
#include <utility>

#include "datagram/states.h"

namespace uiw::datagram {

std::unique_ptr<QueuePair> QueuePair::create(engine::Engine& engine, Door& door,
                                             const QueuePairOptions& options) {
  std::unique_ptr<QueuePair> made(new (std::nothrow) QueuePair(engine, door, options));
  return made && made->create_queues() ? std::move(made) : nullptr;
}

bool QueuePair::create_queues() {
  const ibv_qp_cap& cap = options_.cap;
  send_queue_ = SendQueue::create(cap.max_send_wr, cap.max_send_sge, cap.max_inline_data);
  if (!options_.srq) own_receives_ = queue::ReceiveQueue::create(cap.max_recv_wr, cap.max_recv_sge);
  receives_ = options_.srq ? options_.srq : own_receives_.get();
  if (!send_queue_ || !receives_) return false;
  if (own_receives_) own_receives_->count_in(options_.counters->posted_receives);
  sources_ = queue::make_sources(send_queue_->freed(), receives_->freed(), options_.srq);
  return bool{sources_};
}

QueuePair::~QueuePair() {
  if (sources_) purge_completions().tell(options_.qp_num);
}

queue::DroppedReceives QueuePair::purge_completions() {
  options_.send_cq->purge(std::move(sources_.sends));
  return queue::DroppedReceives::purge(*options_.recv_cq, std::move(sources_.receives));
}

int QueuePair::post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad) {
  int error = 0;
  if (engine_.in_child()) error = core::refuse_in_child();
  if (error == 0)
    error = queue::check_post_recv(told_, options_.qp_num, state_.load(std::memory_order_acquire),
                                   options_.srq);
  if (error == 0 && (error = own_receives_->post(wr)))
    queue::explain(told_, options_.qp_num, *own_receives_, *wr, error);
  if (error != ENODEV && state_.load(std::memory_order_acquire) == IBV_QPS_ERR) {
    const std::lock_guard lock(receiving_);
    flush_receives();
  }
  if (error && bad) *bad = wr;
  return error;
}

int QueuePair::modify(const ibv_qp_attr& attr, int mask) {
  if (engine_.in_child()) return core::refuse_in_child();
  const bool moves = mask & IBV_QP_STATE;
  if (moves && attr.qp_state == IBV_QPS_RESET) {
    if (const int error = check_modify(told_, state_.load(std::memory_order_acquire), attr, mask))
      return error;
    return reset();
  }
  std::unique_lock receiving(receiving_);
  const ibv_qp_state now = state_.load(std::memory_order_relaxed);
  if (const int error = check_modify(told_, now, attr, mask)) return error;
  if (mask & IBV_QP_QKEY) qkey_.store(attr.qkey, std::memory_order_relaxed);
  if (mask & IBV_QP_SQ_PSN) sq_psn_.store(attr.sq_psn & 0xffffff, std::memory_order_relaxed);
  if (!moves || attr.qp_state == now) return 0;
  if (attr.qp_state == IBV_QPS_ERR) {
    enter_error(receiving, core::Cause::kModifiedToError);
  } else {
    state_.store(attr.qp_state);
  }
  return 0;
}

// Under receiving_: whose order is that of the flushed receives.
void QueuePair::enter_error(std::unique_lock<std::mutex>& receiving, core::Cause cause) {
  if (state_.load(std::memory_order_relaxed) != IBV_QPS_ERR)
    end_.store(cause, std::memory_order_relaxed);
  if (state_.exchange(IBV_QPS_ERR) == IBV_QPS_ERR) return;
  // Who posts meanwhile sees the state, or what it has posted is seen here.
  if (own_receives_) own_receives_->await_posts();
  flush_receives();
  receiving.unlock();
  if (options_.srq) options_.events->on_async_event(IBV_EVENT_QP_LAST_WQE_REACHED);
}

// Shared receives stay for the other queue pairs.
void QueuePair::flush_receives() {
  if (options_.srq || state_.load(std::memory_order_relaxed) != IBV_QPS_ERR) return;
  queue::Receive receive;
  bool below_limit;
  ibv_wc wc{};
  wc.status = IBV_WC_WR_FLUSH_ERR;
  wc.vendor_err = static_cast<uint32_t>(end_.load(std::memory_order_relaxed));
  while (receives_->take(receive, below_limit)) complete_receive(receive, wc, true);
}

int QueuePair::reset() {
  queue::DroppedReceives dropped;
  const int error = begin_anew(dropped);
  dropped.tell(options_.qp_num);
  return error;
}

int QueuePair::begin_anew(queue::DroppedReceives& dropped) {
  const std::scoped_lock locks(posting_, receiving_);
  auto sources = queue::make_sources(send_queue_->freed(), receives_->freed(), options_.srq);
  if (!sources) return ENOMEM;
  state_.store(IBV_QPS_RESET);
  dropped = purge_completions();
  sources_ = std::move(sources);
  send_queue_->clear();
  if (own_receives_) own_receives_->clear();
  held_.reset();
  late_.clear();
  qkey_.store(0, std::memory_order_relaxed);
  sq_psn_.store(0, std::memory_order_relaxed);
  return 0;
}

int QueuePair::query(ibv_qp_attr& attr, ibv_qp_init_attr& init) const {
  attr = {};
  attr.qp_state = attr.cur_qp_state = state_.load(std::memory_order_acquire);
  attr.path_mtu = IBV_MTU_4096;
  attr.qkey = qkey_.load(std::memory_order_relaxed);
  attr.sq_psn = sq_psn_.load(std::memory_order_relaxed);
  attr.port_num = 1;
  attr.cap = options_.cap;
  init = {};
  init.cap = options_.cap;
  init.qp_type = IBV_QPT_UD;
  init.sq_sig_all = options_.signal_all;
  return 0;
}

void QueuePair::fail() {
  if (!failing_.exchange(true, std::memory_order_acq_rel)) engine_.post(*this);
}

// What fail() has left.
void QueuePair::run() {
  failing_.store(false, std::memory_order_release);
  {
    std::unique_lock receiving(receiving_);
    if (state_.load(std::memory_order_relaxed) == IBV_QPS_ERR) return;
    enter_error(receiving, core::Cause::kQueueOverflow);
  }
  options_.events->on_async_event(IBV_EVENT_QP_FATAL);
}

}  // namespace uiw::datagram
