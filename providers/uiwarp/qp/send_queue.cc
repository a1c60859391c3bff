// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "qp/send_queue.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include "qp/opcode_rules.h"

namespace uiw::qp {

namespace {

// Conformance 3.1: up to 2^31 octets in one message, so that no signed arithmetic can overflow.
constexpr uint64_t kMaxMessage = 1ull << 31;

// What ibv_post_send can tell about a binding at once; the rest shows when it is carried out. A
// window of type 1 is unbound by binding nothing, for which no region is needed (ibv_bind_mw).
bool read_binding(const ibv_send_wr& wr, mem::Binding& out) {
  const ibv_mw* window = wr.bind_mw.mw;
  const ibv_mw_bind_info& info = wr.bind_mw.bind_info;
  if (!window || mem::index_of(window->rkey) != mem::index_of(wr.bind_mw.rkey)) return false;
  if (!info.mr && (window->type != IBV_MW_TYPE_1 || info.length > 0)) return false;
  out = {.window = window->rkey,
         .stag = wr.bind_mw.rkey,
         .region = info.mr ? info.mr->lkey : 0,
         .access = info.mw_access_flags,
         .start = info.addr,
         .length = info.length};
  return true;
}

constexpr uint32_t kAtomicSize = 8;

// RFC 7306 5.1: the target must be aligned. Refusing here keeps the connection, which the peer
// would end.
bool atomic_fits(const ibv_send_wr& wr, uint64_t length) {
  return length >= kAtomicSize && wr.wr.atomic.remote_addr % kAtomicSize == 0;
}

void keep_remote(SendRequest& slot, const ibv_send_wr& wr, Remote remote) {
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
      slot.add_or_swap = swaps ? wr.wr.atomic.swap : wr.wr.atomic.compare_add;
      slot.compare = swaps ? wr.wr.atomic.compare_add : 0;
      return;
  }
}

}  // namespace

bool SendQueue::supported(ibv_wr_opcode opcode) {
  return rule_of_any(opcode).supported;
}

std::unique_ptr<SendQueue> SendQueue::create(uint32_t depth, uint32_t max_sge,
                                             uint32_t max_inline) {
  std::unique_ptr<SendQueue> queue(new (std::nothrow) SendQueue);
  if (!queue) return nullptr;
  if (depth == 0) depth = 1;
  size_t area =
      std::max<size_t>(max_sge * sizeof(ibv_sge), (sizeof(mem::Binding) + 15) & ~size_t{15});
  if (area < max_inline) area = (max_inline + 15) & ~size_t{15};
  queue->depth_ = depth;
  const uint64_t slots = std::bit_ceil(uint64_t{depth});
  queue->mask_ = slots - 1;
  queue->max_sge_ = max_sge;
  queue->max_inline_ = max_inline;
  queue->slots_.reset(new (std::nothrow) SendRequest[slots]);
  queue->payload_.reset(new (std::nothrow) uint8_t[slots * area + 1]);
  if (!queue->slots_ || !queue->payload_) return nullptr;
  for (uint64_t i = 0; i < slots; ++i) {
    queue->slots_[i].inline_data = queue->payload_.get() + i * area;
    queue->slots_[i].sges = reinterpret_cast<ibv_sge*>(queue->slots_[i].inline_data);
  }
  return queue;
}

void SendQueue::begin() {
  lock_.lock();
}

void SendQueue::end(bool publish) {
  if (publish) {
    commit();
  } else {
    added_ = signaled_added_ = 0;
  }
  lock_.unlock();
}

void SendQueue::commit() {
  if (signaled_added_)
    signaled_posted_.store(signaled_posted_.load(std::memory_order_relaxed) + signaled_added_);
  if (added_)
    posted_.store(posted_.load(std::memory_order_relaxed) + added_, std::memory_order_release);
  added_ = signaled_added_ = 0;
}

int SendQueue::add(const ibv_send_wr& wr, bool signal_all) {
  const OpcodeRule rule = rule_of_any(wr.opcode);
  if (!rule.supported) return EINVAL;
  const int num_sge = rule.local ? 0 : wr.num_sge;
  if (num_sge < 0 || static_cast<uint32_t>(num_sge) > max_sge_) return EINVAL;
  const bool is_inline = wr.send_flags & IBV_SEND_INLINE;
  if (is_inline && !rule.may_inline) return EINVAL;
  mem::Binding binding;
  if (wr.opcode == IBV_WR_BIND_MW && !read_binding(wr, binding)) return EINVAL;
  uint64_t length = 0;
  for (int i = 0; i < num_sge; ++i) length += wr.sg_list[i].length;
  if (length > kMaxMessage) return EINVAL;
  if (is_inline && length > max_inline_) return EINVAL;
  if (rule.remote == Remote::kAtomic && !atomic_fits(wr, length)) return EINVAL;

  const uint64_t index = posted_.load(std::memory_order_relaxed) + added_;
  if (index - retired_.load(std::memory_order_acquire) >= depth_) return ENOMEM;
  SendRequest& slot = this->slot(index);
  slot.wr_id = wr.wr_id;
  slot.opcode = wr.opcode;
  slot.length = static_cast<uint32_t>(length);
  slot.signaled = signal_all || (wr.send_flags & IBV_SEND_SIGNALED);
  slot.fence = wr.send_flags & IBV_SEND_FENCE;
  slot.solicited = wr.send_flags & IBV_SEND_SOLICITED;
  slot.is_inline = is_inline;
  slot.status = IBV_WC_SUCCESS;
  slot.done.store(false, std::memory_order_relaxed);
  if (rule.immediate) slot.immediate = wr.imm_data;
  if (rule.invalidates) slot.rkey = wr.invalidate_rkey;
  keep_remote(slot, wr, rule.remote);
  if (is_inline) {
    uint8_t* to = slot.inline_data;
    for (int i = 0; i < num_sge; ++i) {
      std::memcpy(to, reinterpret_cast<const void*>(wr.sg_list[i].addr), wr.sg_list[i].length);
      to += wr.sg_list[i].length;
    }
    slot.sge_count = 0;
  } else if (wr.opcode == IBV_WR_BIND_MW) {
    std::memcpy(slot.inline_data, &binding, sizeof binding);
    slot.sge_count = 0;
  } else {
    slot.sge_count = static_cast<uint16_t>(num_sge);
    if (num_sge) std::memcpy(slot.sges, wr.sg_list, static_cast<size_t>(num_sge) * sizeof(ibv_sge));
  }
  if (slot.signaled) ++signaled_added_;
  ++added_;
  return 0;
}

}  // namespace uiw::qp
