// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the transmit and the receive machine of one connection know of each other. Everything here
// is either constant during the connection or made for exactly one writer and one reader.
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
  uint64_t behind = 0;           // all of the send queue before this slot was sent before it
  bool asks_immediates = false;  // tx_immediates.cc
};

// Whether the peer takes immediate hints (qp/peer_hints.h).
enum class PeerImmediates : uint8_t {
  kUnknown,  // it has not said
  kTaken,    // it has said so
  kRefused,  // it has answered what was sent behind our saying so, and has not said so itself
};

// RFC 5040 5.2: what Reads of no bytes name, which are no program's; siw and some hardware treat
// STag 0 specially.
inline constexpr uint32_t kRtrStag = 1;

// An RTR frame, or a question to the peer: a Read of no bytes. Linux siw answers with as
// many bytes as it sent last (siw_activate_tx() leaves the length as it is): they go nowhere.
inline bool asks_nothing(const OutstandingRequest& request) {
  return request.slot == kNoSlot;
}

// A Read or Atomic Request of the peer that we still have to answer.
struct InboundRequest {
  bool atomic = false;
  rdmap::ReadRequest read{};
  uint8_t ddp_header[ddp::kUntaggedHeaderSize] = {};  // Read: echoed should a Terminate be needed
  rdmap::AtomicResponse answer{};                     // atomic: it was executed when it came

  // Its answer acknowledges what came before it (tx_acknowledgements.cc).
  bool is_empty_read() const { return !atomic && read.size == 0; }
};

struct Shared {
  // Constant while connected.
  uint32_t qp_num = 0;
  core::Service service = core::Service::kReliable;
  uint32_t pd = 0;          // of the QP: own SGEs and what the peer may reach
  uint32_t receive_pd = 0;  // of the receive SGEs: the SRQ's when there is one
  mem::Table* memory = nullptr;
  SendQueue* send_queue = nullptr;
  queue::ReceiveQueue* receive_queue = nullptr;
  queue::CompletionQueue* send_cq = nullptr;
  queue::CompletionQueue* recv_cq = nullptr;
  SendsFirst* sends_first = nullptr;  // null: the receiver is the sender as well
  queue::CompletionSource* send_source = nullptr;
  queue::CompletionSource* recv_source = nullptr;
  counters::Slot* counters = &counters::g_nowhere;
  mpa::Agreement agreement;
  // RFC 5041 4.3: of each queue in each direction. Only a test of the wrap begins elsewhere.
  uint32_t first_msn = 1;
  Place place = qp::place;    // of Writes; another one (--shake) also of Sends and Reads
  bool long_fpdus = false;    // wanted: qp/long_fpdus.h
  bool stagger = false;       // the same, where the peer is a uiwarp: qp/stagger.h
  bool acknowledged = false;  // wanted: Sends and Writes complete when the peer has them
                              // (tx_acknowledgements.cc)

  bool immediates = false;  // immediate hints are taken, and SEND_WITH_IMM may be posted

  // ibv_modify_qp with IBV_QP_ACCESS_FLAGS; any thread may change it.
  std::atomic<uint32_t> remote_rights{~0u};
  // What the peer's STags have to belong to (RFC 5041 8.2), and which rights it has on them.
  mem::Stream stream() const { return {pd, qp_num, remote_rights.load(std::memory_order_relaxed)}; }

  // RFC 7306 5.2: Reads and atomics share ORD and IRD.
  queue::SpscRing<OutstandingRequest>
      outstanding_requests;  // transmit -> receive; its size counts against ORD
  queue::SpscRing<InboundRequest> inbound_requests;  // receive -> transmit; room for IRD of them
  // Set by receive at the first valid FPDU. RFC 5044 7.1.2(4): until then a responder sends
  // nothing.
  std::atomic<bool> first_fpdu{false};
  // The peer has all of the send queue before this slot. Set by receive at each answer, where
  // `acknowledged`; by transmit, when nothing is received any more, for what a Terminate names.
  std::atomic<uint64_t> arrived{0};
  // Sends that have come, by the MSN of the next one, and Writes of some bytes. Set by receive,
  // before anybody can know it otherwise; what the peer has sent us, and by its arrival hint
  // (qp/peer_hints.h), where `acknowledged`, what it has got of ours.
  struct Arrivals {
    std::atomic<uint32_t> next_send{0}, writes{0};
    ArrivalHint load() const {
      return {next_send.load(std::memory_order_acquire), writes.load(std::memory_order_acquire)};
    }
  };
  Arrivals here, at_peer;
  // Set by receive: the peer has sent something, and nothing behind it that asks whether it has
  // arrived. And: it is a uiwarp that asks.
  std::atomic<bool> unasked{false}, peer_asks{false};
  // Whether the peer is still to ask for what it has sent. Thread: any.
  bool expects_question() const {
    return unasked.load(std::memory_order_acquire) &&
           (acknowledged || peer_asks.load(std::memory_order_relaxed));
  }
  // Set by receive at the capability hint (qp/peer_hints.h), never where long_fpdus is false.
  std::atomic<bool> peer_takes_long_fpdus{false};
  Losses losses;
  core::Told told;  // what was said of this queue pair; any thread
  // Why it is in ERR: the vendor_err of what fails or is flushed. Set before anybody can see that
  // it is.
  std::atomic<core::Cause> end{core::Cause::kNone};
  // Set by receive, never where `immediates` is false.
  std::atomic<PeerImmediates> peer_immediates{PeerImmediates::kUnknown};
};

}  // namespace uiw::qp
