// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// State that the transmit and the receive machine of one connection share. Each member is constant
// during the connection, or has one writer and one reader, or is atomic as stated.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/cause.h"
#include "core/explain.h"
#include "core/service.h"
#include "counters/slot.h"
#include "ddp/header.h"
#include "mem/table.h"
#include "mpa/negotiator.h"
#include "qp/losses.h"
#include "qp/peer_hints.h"
#include "qp/place.h"
#include "qp/send_queue.h"
#include "qp/sends_first.h"
#include "queue/completion_queue.h"
#include "queue/receive_queue.h"
#include "queue/spsc_ring.h"
#include "rdmap/atomic.h"
#include "rdmap/header.h"

namespace uiw::qp {

// A Read or Atomic Request of ours that waits for its response. Responses come in request order
// (RFC 5040 5.5(20), RFC 7306 section 7), so the oldest is always the one being answered.
struct OutstandingRequest {
  uint64_t slot = kNoSlot;  // in the send queue; kNoSlot for an RTR frame
  uint32_t cookie = 0;  // sink STag or Request Identifier as we sent it; the response must echo it
  uint32_t length = 0;
  bool atomic = false;
  uint64_t behind = 0;           // every WR of the send queue before this slot was sent before it
  bool asks_immediates = false;  // tx_immediates.cc
};

// Whether the peer takes immediate hints (qp/peer_hints.h).
enum class PeerImmediates : uint8_t {
  kUnknown,  // it has not said
  kTaken,    // it has said so
  kRefused,  // it has answered our question, and has not said that it takes them
};

// The STag that empty Reads and Writes of this stack, as opposed to a program's, name (RFC 5040
// 5.2: it is not checked). Not 0, as siw and some hardware treat STag 0 specially.
inline constexpr uint32_t kRtrStag = 1;

// An RTR frame, or a question to the peer: an empty Read. Linux siw answers with as many bytes as
// it sent last (siw_activate_tx() leaves the length as it is); these are discarded.
inline bool asks_nothing(const OutstandingRequest& request) {
  return request.slot == kNoSlot;
}

// A Read or Atomic Request of the peer that we still have to answer.
struct InboundRequest {
  bool atomic = false;
  rdmap::ReadRequest read{};
  uint8_t ddp_header[ddp::kUntaggedHeaderSize] = {};  // Read: echoed if a Terminate is needed
  rdmap::AtomicResponse answer{};                     // atomic: executed when it arrived
  ArrivalHint arrivals;  // had arrived before it: its answer acknowledges that

  bool is_empty_read() const { return !atomic && read.size == 0; }
};

struct Shared {
  // Constant while connected.
  uint32_t qp_num = 0;
  core::Service service = core::Service::kReliable;
  uint32_t pd = 0;          // of the QP: for its own SGEs and for memory that the peer may use
  uint32_t receive_pd = 0;  // for receive SGEs: the SRQ's if there is one
  mem::Table* memory = nullptr;
  SendQueue* send_queue = nullptr;
  queue::ReceiveQueue* receive_queue = nullptr;
  queue::CompletionQueue* send_cq = nullptr;
  queue::CompletionQueue* recv_cq = nullptr;
  SendsFirst* sends_first = nullptr;  // null: one thread is receiver and sender
  queue::CompletionSource* send_source = nullptr;
  queue::CompletionSource* recv_source = nullptr;
  counters::Slot* counters = &counters::g_nowhere;
  mpa::Agreement agreement;
  // RFC 5041 4.3: the first MSN of each queue in each direction. Only a test of its wrap sets
  // another.
  uint32_t first_msn = 1;
  Place place = qp::place;    // copies Writes; under --shake also Sends and Read Responses
  bool long_fpdus = false;    // long FPDUs are wanted: qp/long_fpdus.h
  bool stagger = false;       // staggering is wanted if the peer is a uiwarp: qp/stagger.h
  bool acknowledged = false;  // wanted: Sends and Writes complete when the peer has received them
                              // (tx_acknowledgements.cc)

  bool immediates = false;  // we take immediate hints, and SEND_WITH_IMM may be posted

  // As set by ibv_modify_qp with IBV_QP_ACCESS_FLAGS. Any thread may change it.
  std::atomic<uint32_t> remote_rights{~0u};
  // The stream that STags named by the peer must belong to (RFC 5041 8.2), and the peer's rights.
  mem::Stream stream() const { return {pd, qp_num, remote_rights.load(std::memory_order_relaxed)}; }

  // RFC 7306 5.2: Reads and atomics share ORD and IRD.
  queue::SpscRing<OutstandingRequest>
      outstanding_requests;  // transmit -> receive; its size counts against ORD
  queue::SpscRing<InboundRequest> inbound_requests;  // receive -> transmit; room for IRD of them
  // Set by receive at the first valid FPDU. RFC 5044 7.1.2(4): until then a responder sends
  // nothing.
  std::atomic<bool> first_fpdu{false};
  // The peer has received every WR of the send queue before this slot. Set by receive at each
  // answer, if `acknowledged`; by transmit, when nothing is received any more, according to the
  // peer's Terminate.
  std::atomic<uint64_t> arrived{0};
  // Which Sends (by the MSN of the next one) and how many Writes with payload have arrived. Set by
  // receive. `here`: what has arrived from the peer; set before the program or the peer can learn
  // of it. `at_peer`: what has arrived there, by its arrival hint (qp/peer_hints.h); if
  // `acknowledged`.
  struct Arrivals {
    std::atomic<uint32_t> next_send{0}, writes{0};
    ArrivalHint load() const {
      return {next_send.load(std::memory_order_acquire), writes.load(std::memory_order_acquire)};
    }
  };
  Arrivals here, at_peer;
  // Set by receive. `unasked`: the peer has sent something, and has not asked since whether it has
  // arrived. `peer_asks`: the peer is a uiwarp that asks.
  std::atomic<bool> unasked{false}, peer_asks{false};
  // Whether the peer's completions are acknowledged, as far as is known here. Thread: any.
  bool peer_acknowledges() const {
    return acknowledged || peer_asks.load(std::memory_order_relaxed);
  }
  // Whether the peer will still ask whether what it sent has arrived. Thread: any.
  bool expects_question() const {
    return unasked.load(std::memory_order_acquire) && peer_acknowledges();
  }
  // Set by receive at the capability hint (qp/peer_hints.h), never where long_fpdus is false.
  std::atomic<bool> peer_takes_long_fpdus{false};
  Losses losses;
  core::Told told;  // which messages were logged for this queue pair; any thread
  // Why it is in ERR: the vendor_err of what fails or is flushed. Set before the state is visible.
  std::atomic<core::Cause> end{core::Cause::kNone};
  // Set by receive, never where `immediates` is false.
  std::atomic<PeerImmediates> peer_immediates{PeerImmediates::kUnknown};
};

}  // namespace uiw::qp
