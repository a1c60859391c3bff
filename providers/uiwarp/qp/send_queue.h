// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The send queue of one QP: work requests from ibv_post_send until their completion.
//
// Four indices walk over the slots, and only forward:
//   posted   application threads, under a short lock
//   started  the sender (holder of the QP's sender role): WRs handed to the transmit machine
//   retired  the sender: WRs completed towards the application, strictly in posting order
//            (RFC 5040 5.5(15): "MUST complete in the order submitted")
//   freed    a poll of a completion: the slots before it are free (queue/completion_source.h)
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

#include "core/spinlock.h"
#include "counters/slot.h"
#include "mem/table.h"
#include "qp/opcode_rules.h"
#include "queue/post_refusal.h"

namespace uiw::qp {

// A work queue element of a send queue: the queue's copy of an ibv_send_wr. It is one cache line,
// because a small message touches little else.
struct alignas(64) SendWqe {
  uint64_t wr_id = 0;
  uint64_t remote_addr = 0;
  struct Operands {
    uint64_t add_or_swap, compare;
  };
  union {
    Operands operands{};  // atomics, in host order
    ibv_sge only_sge;     // others, if they have one
  };
  uint8_t* inline_data = nullptr;  // or the SGEs, or a mem::Binding
  uint32_t rkey = 0;               // or the STag to invalidate, the peer's or a local one
  uint32_t length = 0;  // sum of the SGEs, or of the inline bytes; atomics: of the answer
  uint32_t msn = 0;     // set when started; says which WR a Terminate blames
  union {
    uint32_t immediate = 0;  // with immediate: network byte order
    uint32_t cookie;         // Read: names the sink on the wire; atomics: the Request Identifier
  };
  ibv_wr_opcode opcode : 8 = IBV_WR_SEND;
  uint8_t sge_count = 0;
  bool signaled = false;
  bool fence = false;
  bool solicited = false;
  bool is_inline = false;
  // Written by the sender (Send, Write: TCP has taken the last byte) or by the receiver (Read,
  // atomics: the response is complete); read by the sender.
  std::atomic<bool> done{false};
  ibv_wc_status status : 8 = IBV_WC_SUCCESS;  // sender only

  ibv_sge* sges() {
    const bool here = sge_count == 1 && rule_of(opcode).remote != Remote::kAtomic;
    return here ? &only_sge : reinterpret_cast<ibv_sge*>(inline_data);
  }
  const ibv_sge* sges() const { return const_cast<SendWqe*>(this)->sges(); }
  mem::Binding binding() const {
    mem::Binding out;
    std::memcpy(&out, inline_data, sizeof out);
    return out;
  }
};
static_assert(sizeof(SendWqe) == 64);

inline constexpr uint64_t kNoSlot = ~0ull;
// The slot that is the oldest outstanding one when the end is handled.
inline constexpr uint64_t kOldestSlot = kNoSlot - 1;

class SendQueue {
 public:
  // Holds exactly `depth` work requests (at least 1); each keeps its slot until its completion, or
  // a later one, was polled. Null when out of memory.
  static std::unique_ptr<SendQueue> create(uint32_t depth, uint32_t max_sge, uint32_t max_inline);

  // Which opcodes may be added (opcodes_of()). The default is those of reliable service, without
  // Sends with immediate. Call it before the first add().
  void allow(uint32_t opcodes) { opcodes_ = opcodes; }

  // The counters of posted and completed requests. Each is incremented before the post or
  // completion has any visible effect: a reader that reads one and then the other never finds more
  // in flight than there was. Must outlive the queue. Call it before the first add().
  void count_in(counters::Count& posts, counters::Count& completions) {
    posts_ = &posts;
    completions_ = &completions;
  }

  uint32_t depth() const { return depth_; }
  std::atomic<uint64_t>& freed() { return freed_; }

  // WRs are added between begin() and end(), which post them together. Between the two no other
  // thread can post. The sender does not see these WRs before end(true), which returns their
  // totals. end(false) discards them. With ibv_wr_start() the application's own code runs between
  // the two, for as long as it likes; another thread that posts meanwhile yields the CPU. Thread:
  // any.
  void begin();
  // Copies the WR, inline bytes included. EINVAL: opcode not supported on this QP type, num_sge or
  // inline size over what the QP was created with, message over 2^31 bytes; a binding without a
  // window or a region; an atomic whose remote address is no multiple of 8, or whose SGEs have no
  // room for 8 bytes. ENOMEM: queue full.
  int add(const ibv_send_wr& wr, bool signal_all);
  struct Added {
    uint32_t requests = 0;
    uint64_t bytes = 0;
  };
  Added end(bool publish);
  // Between begin() and end(), without an add(): drops everything posted without completion, and
  // resets the queue. Returns how many WRs had not completed. No thread may hold the sender role,
  // and no completion may refer to this queue (purge()).
  uint64_t clear();
  // Between begin() and end(): why the last add() refused, once.
  queue::PostRefusal take_refusal() { return refused_.take(); }

  // Whether a posted signaled WR has not completed yet. Thread: any.
  bool completion_due() const { return signaled_posted_.load() != signaled_retired_.load(); }

  // --- Thread: the sender ---
  bool has_unstarted() const { return started_ != posted_.load(std::memory_order_acquire); }
  SendWqe& first_unstarted() { return slot(started_); }
  uint64_t start() { return started_++; }
  bool has_unretired() const { return retired_.load(std::memory_order_relaxed) != started_; }
  SendWqe& first_unretired() { return slot(retired_.load(std::memory_order_relaxed)); }
  void retire() {
    if (first_unretired().signaled)
      signaled_retired_.store(signaled_retired_.load(std::memory_order_relaxed) + 1);
    completions_->add(1);
    retired_.store(retired_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  // Sets the status with which a WR will complete, if it is posted. `index` may be kOldestSlot.
  void fail(uint64_t index, ibv_wc_status status) {
    if (index == kOldestSlot) index = retired();
    if (index < posted()) slot(index).status = status;
  }
  uint64_t posted() const { return posted_.load(std::memory_order_acquire); }
  uint64_t started() const { return started_; }
  uint64_t retired() const { return retired_.load(std::memory_order_relaxed); }
  // Thread: the sender; also the receiver, for a started WR.
  SendWqe& slot(uint64_t index) { return slots_[index & mask_]; }

 private:
  SendQueue() = default;
  uint32_t count_unsignaled();
  core::Spinlock lock_;  // producers
  uint32_t depth_ = 0, max_sge_ = 0, max_inline_ = 0;
  uint32_t opcodes_ = opcodes_of(core::Service::kReliable, false);
  uint64_t mask_ = 0;  // number of slots, a power of two, minus 1
  std::unique_ptr<SendWqe[]> slots_;
  std::unique_ptr<uint8_t[]> payload_;  // SGEs or inline bytes, one area per slot
  Added added_;  // slots after posted_ that are filled and not posted yet; under lock_
  uint32_t signaled_added_ = 0;                                 // how many of those are signaled
  queue::LastRefusal refused_;                                  // under lock_
  counters::Count* posts_ = &counters::g_nowhere.posted_sends;  // under lock_
  alignas(64) std::atomic<uint64_t> posted_{0};
  alignas(64) std::atomic<uint64_t> freed_{0};
  alignas(64) std::atomic<uint64_t> retired_{0};
  uint64_t started_ = 0;
  counters::Count* completions_ = &counters::g_nowhere.completed_sends;  // the sender's
  std::atomic<uint64_t> signaled_posted_{0};                             // producers
  std::atomic<uint64_t> signaled_retired_{0};                            // the sender
};

}  // namespace uiw::qp
