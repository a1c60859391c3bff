// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The send queue of a UD queue pair: work requests that were posted and have not been handed to the
// kernel yet, which lasts as long as the post, and the places of those whose completion was not
// polled yet. Pure, and not for several threads at once.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "datagram/destination.h"
#include "queue/post_refusal.h"

namespace uiw::datagram {

struct SendRequest {
  uint64_t wr_id;
  const AddressHandle* ah;  // null: not named yet
  uint32_t remote_qpn;
  uint32_t remote_qkey;
  uint32_t immediate;  // network byte order
  uint32_t length;     // sum of the SGEs, or of the inline bytes; UINT32_MAX: at least so many
  uint8_t sge_count;   // 0 of an inline one
  bool signaled;
  bool solicited;
  bool has_immediate;
  bool is_inline;
  uint8_t* area;  // inline bytes, or SGEs

  ibv_sge* sges() const { return reinterpret_cast<ibv_sge*>(area); }
};

// From what work requests name to what that is: libibverbs' structure is the provider's.
using FindAddressHandle = const AddressHandle* (*)(const ibv_ah*);

class SendQueue {
 public:
  // Takes exactly `depth` work requests whose completion, or a later one's, was not polled yet.
  // Null when out of memory.
  static std::unique_ptr<SendQueue> create(uint32_t depth, uint32_t max_sge, uint32_t max_inline);

  std::atomic<uint64_t>& freed() { return freed_; }

  // Copies the WR, inline bytes included. EINVAL: opcode, num_sge or inline size. ENOMEM: full.
  // A work request without an address handle may get one by set_address().
  int add(const ibv_send_wr& wr, const AddressHandle* ah, bool signal_all);
  // Of the last one added. EINVAL: there is none.
  int set_address(const AddressHandle* ah, uint32_t remote_qpn, uint32_t remote_qkey);
  bool has_added() const { return added_ != taken_; }
  // Whether each that was added has an address handle, of that protection domain.
  bool are_addressed(uint32_t pd) const;
  // What the last add() has refused, once.
  queue::PostRefusal take_refusal() { return refused_.take(); }
  // Takes back what was added and not taken.
  void forget_added() { added_ = taken_; }

  // The oldest that was added; null: there is none. Valid until all its places are free.
  SendRequest* take() { return has_added() ? &slot(taken_++) : nullptr; }
  // What the completion of the one taken last frees.
  uint64_t frees() const { return taken_; }

  // ibv_modify_qp to RESET: all places are free.
  void clear();

  // Of what an application wrote, which may be no opcode at all.
  static bool supports(const ibv_wr_opcode& opcode);

 private:
  SendQueue() = default;
  SendRequest& slot(uint64_t index) { return slots_[index & mask_]; }
  const SendRequest& slot(uint64_t index) const { return slots_[index & mask_]; }
  uint32_t count_unsignaled();

  uint32_t depth_ = 0, max_sge_ = 0, max_inline_ = 0;
  uint64_t mask_ = 0;
  std::unique_ptr<SendRequest[]> slots_;
  std::unique_ptr<uint8_t[]> areas_;
  uint64_t added_ = 0, taken_ = 0;
  queue::LastRefusal refused_;
  alignas(64) std::atomic<uint64_t> freed_{0};  // polls
};

}  // namespace uiw::datagram
