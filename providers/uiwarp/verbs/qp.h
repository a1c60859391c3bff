// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A queue pair of any type as verbs sees it: number, queues, events. session/ or datagram/ handles
// its work requests.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "counters/file.h"
#include "datagram/door.h"
#include "datagram/queue_pair.h"
#include "rendezvous/peer_search.h"
#include "session/queue_pair.h"
#include "uiwarp/uiwarp-abi.h"
#include "verbs/cq.h"
#include "verbs/pd.h"
#include "verbs/peer_address.h"
#include "verbs/registry.h"
#include "verbs/srq.h"

struct uiwarp_qp final : uiw::queue::QueuePairEvents, uiw::verbs::CqMember {
  uiwarp_pd* pd = nullptr;
  uiwarp_cq* send_cq = nullptr;
  uiwarp_cq* recv_cq = nullptr;
  uiwarp_srq* srq = nullptr;
  ibv_qp_type qp_type = IBV_QPT_RC;
  uiw::verbs::EventSource events;  // carries the ibv_qp
  std::atomic<uint32_t> async_events{0};
  uiw::core::Told told;  // for ibv_modify_qp
  uiw::verbs::Registration registration;
  std::optional<uiw::counters::Lent> counters;  // set once it has a number

  // One of the two, by its type.
  std::unique_ptr<uiw::session::QueuePair> session;
  std::unique_ptr<uiw::datagram::QueuePair> datagrams;

  // For a session.
  uiw::verbs::Senders::Member sending;
  std::unique_ptr<uiw::rendezvous::PeerSearch> peer_search;  // thread: engine
  uiw::verbs::KeptAttributes kept;

  // For datagrams.
  uiw::datagram::Door* door = nullptr;
  uiw::verbs::Users users;  // groups that it is attached to

  // A CqMember can be in one list only, so the receive CQ gets a second one.
  struct ReceiveMember final : uiw::verbs::CqMember {
    explicit ReceiveMember(uiwarp_qp& qp) : owner(qp) {}
    void on_cq_error() override { owner.on_cq_error(); }
    uiwarp_qp& owner;
  } receive_member{*this};

  void on_async_event(ibv_event_type type) override {
    async_events.fetch_add(1, std::memory_order_relaxed);
    pd->context->async.send(events, type);
  }
  void on_cq_error() override { session ? session->fail() : datagrams->fail(); }
};

namespace uiw::verbs {

// Fills in the options common to all types. `qp` must have its number and queues; it gets its
// counters here.
void fill(queue::QueuePairOptions& options, uiwarp_qp& qp, const uiwarp_qp_init& init);

}  // namespace uiw::verbs
