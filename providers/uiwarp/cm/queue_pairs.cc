// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/queue_pairs.h"

#include <cerrno>
#include <utility>

#include "verbs/peer_address.h"
#include "verbs/registry.h"

namespace uiw::cm {
namespace {

constexpr uint8_t kRetries = 7;  // the default of rdma_conn_param

class VerbsQueuePairs final : public QueuePairs {
 public:
  bool exists(uint32_t qp_num) override { return verbs::find_queue_pair(qp_num) != nullptr; }

  int claim(uint32_t qp_num) override { return verbs::claim_queue_pair(qp_num); }

  void abandon(uint32_t qp_num) override {
    if (session::QueuePair* qp = verbs::find_queue_pair(qp_num)) qp->abandon();
  }

  int attach(uint32_t qp_num, StreamPtr&& stream, const mpa::Agreement& agreement,
             core::Bytes leftover, session::ConnectionObserver* observer) override {
    session::QueuePair* qp = verbs::find_queue_pair(qp_num);
    if (qp == nullptr) return EINVAL;
    return qp->attach(std::move(stream), agreement, leftover, observer,
                      session::QueuePair::Receiving::kLater);
  }

  void receive(uint32_t qp_num) override {
    if (session::QueuePair* qp = verbs::find_queue_pair(qp_num)) qp->receive();
  }

  void set_ack_timeout(uint32_t qp_num, uint8_t ack_timeout) override {
    session::QueuePair* qp = verbs::find_queue_pair(qp_num);
    if (qp == nullptr) return;
    ibv_qp_attr attr{};
    attr.timeout = ack_timeout;
    attr.retry_cnt = kRetries;
    qp->set_ack_timeout(verbs::peer_time_limit(attr), ack_timeout);
  }

  void await_receives(uint32_t qp_num, bool for_ever) override {
    if (session::QueuePair* qp = verbs::find_queue_pair(qp_num)) qp->await_receives(for_ever);
  }

  void disconnect(uint32_t qp_num) override {
    if (session::QueuePair* qp = verbs::find_queue_pair(qp_num)) qp->disconnect();
  }

  bool forget_observer(uint32_t qp_num) override {
    session::QueuePair* qp = verbs::find_queue_pair(qp_num);
    if (qp == nullptr) return false;
    qp->forget_observer();
    return true;
  }
};

constinit VerbsQueuePairs g_queue_pairs;

}  // namespace

QueuePairs& verbs_queue_pairs() {
  return g_queue_pairs;
}

}  // namespace uiw::cm
