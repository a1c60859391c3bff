// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "qp/send_queue.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/verbs_names.h"
#include "qp/opcode_rules.h"

namespace uiw::qp {

namespace {

// Conformance 3.1: up to 2^31 bytes in one message, so that no signed arithmetic can overflow.
constexpr uint64_t kMaxMessage = 1ull << 31;

// The checks of a binding that ibv_post_send can make; others are made when it is carried out. A
// window of type 1 is unbound by binding zero bytes, which needs no region (ibv_bind_mw).
bool may_bind(const ibv_send_wr& wr) {
  const ibv_mw* window = wr.bind_mw.mw;
  const ibv_mw_bind_info& info = wr.bind_mw.bind_info;
  return window && (info.mr || (window->type == IBV_MW_TYPE_1 && info.length == 0));
}

mem::Binding binding_of(const ibv_send_wr& wr) {
  const ibv_mw_bind_info& info = wr.bind_mw.bind_info;
  const uint32_t window = wr.bind_mw.mw->rkey;
  // The program chooses only the last byte of the key; the other bytes are ignored (as by mlx5 and
  // irdma).
  return {.window = window,
          .stag = (window & ~mem::kKeyMask) | (wr.bind_mw.rkey & mem::kKeyMask),
          .region = info.mr ? info.mr->lkey : 0,
          .access = info.mw_access_flags,
          .start = info.addr,
          .length = info.length};
}

constexpr uint32_t kAtomicSize = 8;
constexpr size_t kCacheLine = 64;

void keep_remote(SendWqe& slot, const ibv_send_wr& wr, Remote remote) {
  switch (remote) {
    case Remote::kNone:
      return;
    case Remote::kRdma:
      slot.remote_addr = wr.wr.rdma.remote_addr;
      slot.rkey = wr.wr.rdma.rkey;
      return;
    case Remote::kAtomic:
      slot.remote_addr = wr.wr.atomic.remote_addr;
      slot.rkey = wr.wr.atomic.rkey;
      slot.length = kAtomicSize;
      const bool swaps = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
      slot.operands = {swaps ? wr.wr.atomic.swap : wr.wr.atomic.compare_add,
                       swaps ? wr.wr.atomic.compare_add : 0};
      return;
  }
}

}  // namespace

std::unique_ptr<SendQueue> SendQueue::create(uint32_t depth, uint32_t max_sge,
                                             uint32_t max_inline) {
  std::unique_ptr<SendQueue> queue(new (std::nothrow) SendQueue);
  if (!queue) return nullptr;
  if (depth == 0) depth = 1;
  size_t area =
      std::max<size_t>(max_sge * sizeof(ibv_sge), (sizeof(mem::Binding) + 15) & ~size_t{15});
  if (area < max_inline) area = (max_inline + 15) & ~size_t{15};
  // An odd number of cache lines, so that the first lines of the areas do not all map to a few
  // cache sets.
  if (area > kCacheLine) area = ((area + kCacheLine - 1) / kCacheLine | 1) * kCacheLine;
  queue->depth_ = depth;
  const uint64_t slots = std::bit_ceil(uint64_t{depth});
  queue->mask_ = slots - 1;
  queue->max_sge_ = max_sge;
  queue->max_inline_ = max_inline;
  queue->slots_.reset(new (std::nothrow) SendWqe[slots]);
  queue->payload_.reset(new (std::nothrow) uint8_t[slots * area + 1]);
  if (!queue->slots_ || !queue->payload_) return nullptr;
  for (uint64_t i = 0; i < slots; ++i)
    queue->slots_[i].inline_data = queue->payload_.get() + i * area;
  return queue;
}

void SendQueue::begin() {
  lock_.lock();
}

SendQueue::Added SendQueue::end(bool publish) {
  const uint32_t signaled = std::exchange(signaled_added_, 0);
  Added added = std::exchange(added_, {});
  if (!publish) added = {};
  if (publish && signaled)
    signaled_posted_.store(signaled_posted_.load(std::memory_order_relaxed) + signaled);
  if (added.requests) {
    posts_->add(added.requests);
    posted_.store(posted_.load(std::memory_order_relaxed) + added.requests,
                  std::memory_order_release);
  }
  lock_.unlock();
  return added;
}

uint64_t SendQueue::clear() {
  const uint64_t forgotten = posted_.load(std::memory_order_relaxed) - retired();
  for (std::atomic<uint64_t>* const count :
       {&posted_, &freed_, &retired_, &signaled_posted_, &signaled_retired_})
    count->store(0, std::memory_order_relaxed);
  started_ = 0;
  refused_ = {};
  return forgotten;
}

// Called once per full queue: programs that post until the queue is full do so often, and it may be
// deep.
uint32_t SendQueue::count_unsignaled() {
  uint32_t count = 0;
  const uint64_t end = posted_.load(std::memory_order_relaxed) + added_.requests;
  for (uint64_t i = freed_.load(std::memory_order_acquire); i < end; ++i)
    count += !slot(i).signaled;
  return count;
}

int SendQueue::add(const ibv_send_wr& wr, bool signal_all) {
  using queue::PostRule;
  const OpcodeRule& rule = rule_of_any(wr.opcode);
  if (!rule.supported || !(opcodes_ >> wr.opcode & 1))
    return refused_.note(PostRule::kOpcode, wr, core::value_of(wr.opcode), 0);
  // A negative count becomes a large one.
  const uint32_t num_sge = rule.local ? 0 : static_cast<uint32_t>(wr.num_sge);
  if (num_sge > max_sge_) return refused_.note(PostRule::kSges, wr, num_sge, max_sge_);
  const unsigned flags = wr.send_flags;
  const bool is_inline = flags & IBV_SEND_INLINE;
  uint64_t length = 0;
  for (uint32_t i = 0; i < num_sge; ++i) length += wr.sg_list[i].length;
  if (length > kMaxMessage) return refused_.note(PostRule::kMessage, wr, length, kMaxMessage);
  if (is_inline && !rule.may_inline) return refused_.note(PostRule::kNoInline, wr, wr.opcode, 0);
  if (is_inline && length > max_inline_)
    return refused_.note(PostRule::kInline, wr, length, max_inline_);
  if (rule.remote == Remote::kAtomic) {
    // RFC 7306 5.1: the target must be aligned. The peer would end the connection; refusing here
    // keeps it.
    if (length < kAtomicSize) return refused_.note(PostRule::kAtomicSize, wr, length, kAtomicSize);
    if (wr.wr.atomic.remote_addr % kAtomicSize != 0)
      return refused_.note(PostRule::kAtomicAddress, wr, wr.wr.atomic.remote_addr, kAtomicSize);
  }
  if (wr.opcode == IBV_WR_BIND_MW && !may_bind(wr))
    return refused_.note(PostRule::kBinding, wr, 0, 0);

  const uint64_t index = posted_.load(std::memory_order_relaxed) + added_.requests;
  if (index - freed_.load(std::memory_order_acquire) >= depth_)
    return refused_.note_full(
        wr, depth_, [&] { return count_unsignaled(); },
        retired() - freed_.load(std::memory_order_relaxed));
  SendWqe& slot = this->slot(index);
  slot.wr_id = wr.wr_id;
  slot.opcode = wr.opcode;
  slot.length = static_cast<uint32_t>(length);
  slot.signaled = signal_all || (flags & IBV_SEND_SIGNALED);
  slot.fence = flags & IBV_SEND_FENCE;
  slot.solicited = flags & IBV_SEND_SOLICITED;
  slot.is_inline = is_inline;
  slot.sge_count = 0;
  slot.status = IBV_WC_SUCCESS;
  slot.done.store(false, std::memory_order_relaxed);
  if (rule.immediate) slot.immediate = wr.imm_data;
  if (rule.invalidates) slot.rkey = wr.invalidate_rkey;
  keep_remote(slot, wr, rule.remote);
  if (is_inline) {
    uint8_t* to = slot.inline_data;
    for (uint32_t i = 0; i < num_sge; ++i) {
      if (wr.sg_list[i].length == 0) continue;  // its address may be null
      std::memcpy(to, reinterpret_cast<const void*>(wr.sg_list[i].addr), wr.sg_list[i].length);
      to += wr.sg_list[i].length;
    }
  } else if (wr.opcode == IBV_WR_BIND_MW) {
    const mem::Binding binding = binding_of(wr);
    std::memcpy(slot.inline_data, &binding, sizeof binding);
  } else {
    slot.sge_count = static_cast<uint8_t>(num_sge);
    ibv_sge* const sges = slot.sges();
    for (uint32_t i = 0; i < num_sge; ++i) sges[i] = wr.sg_list[i];
  }
  signaled_added_ += slot.signaled;
  ++added_.requests;
  added_.bytes += length;
  return 0;
}

}  // namespace uiw::qp
