// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datagram/send_queue.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include "core/verbs_names.h"

namespace uiw::datagram {

std::unique_ptr<SendQueue> SendQueue::create(uint32_t depth, uint32_t max_sge,
                                             uint32_t max_inline) {
  std::unique_ptr<SendQueue> queue(new (std::nothrow) SendQueue);
  if (!queue) return nullptr;
  const uint64_t slots = std::bit_ceil(uint64_t{std::max(depth, 1u)});
  const size_t area = (std::max<size_t>(max_sge * sizeof(ibv_sge), max_inline) + 15) & ~size_t{15};
  queue->depth_ = depth;
  queue->mask_ = slots - 1;
  queue->max_sge_ = max_sge;
  queue->max_inline_ = max_inline;
  // The areas are not cleared, so that a deep queue costs memory only as far as it is used.
  queue->slots_.reset(new (std::nothrow) SendRequest[slots]);
  queue->areas_.reset(new (std::nothrow) uint8_t[slots * area + 1]);
  if (!queue->slots_ || !queue->areas_) return nullptr;
  for (uint64_t i = 0; i < slots; ++i) queue->slots_[i].area = queue->areas_.get() + i * area;
  return queue;
}

bool SendQueue::supports(const ibv_wr_opcode& opcode) {
  const uint32_t value = core::value_of(opcode);
  return value == IBV_WR_SEND || value == IBV_WR_SEND_WITH_IMM;
}

uint32_t SendQueue::count_unsignaled() {
  uint32_t count = 0;
  for (uint64_t i = freed_.load(std::memory_order_acquire); i < added_; ++i)
    count += !slot(i).signaled;
  return count;
}

int SendQueue::add(const ibv_send_wr& wr, const AddressHandle* ah, bool signal_all) {
  using queue::PostRule;
  if (!supports(wr.opcode))
    return refused_.note(PostRule::kOpcode, wr, core::value_of(wr.opcode), 0);
  // A negative count is a large one.
  const auto num_sge = static_cast<uint32_t>(wr.num_sge);
  if (num_sge > max_sge_) return refused_.note(PostRule::kSges, wr, num_sge, max_sge_);
  uint64_t length = 0;
  for (uint32_t i = 0; i < num_sge; ++i) length += wr.sg_list[i].length;
  const bool is_inline = wr.send_flags & IBV_SEND_INLINE;
  if (is_inline && length > max_inline_)
    return refused_.note(PostRule::kInline, wr, length, max_inline_);
  if (added_ - freed_.load(std::memory_order_acquire) >= depth_)
    return refused_.note_full(
        wr, depth_, [&] { return count_unsignaled(); },
        taken_ - freed_.load(std::memory_order_relaxed));
  SendRequest& slot = this->slot(added_);
  slot.wr_id = wr.wr_id;
  slot.ah = ah;
  slot.remote_qpn = wr.wr.ud.remote_qpn;
  slot.remote_qkey = wr.wr.ud.remote_qkey;
  slot.has_immediate = wr.opcode == IBV_WR_SEND_WITH_IMM;
  slot.immediate = slot.has_immediate ? wr.imm_data : 0;
  slot.length = static_cast<uint32_t>(std::min<uint64_t>(length, UINT32_MAX));
  slot.signaled = signal_all || (wr.send_flags & IBV_SEND_SIGNALED);
  slot.solicited = wr.send_flags & IBV_SEND_SOLICITED;
  slot.is_inline = is_inline;
  slot.sge_count = is_inline ? 0 : static_cast<uint8_t>(num_sge);
  if (is_inline) {
    uint8_t* to = slot.area;
    for (uint32_t i = 0; i < num_sge; ++i) {
      if (wr.sg_list[i].length == 0) continue;  // its address may be null
      std::memcpy(to, reinterpret_cast<const void*>(wr.sg_list[i].addr), wr.sg_list[i].length);
      to += wr.sg_list[i].length;
    }
  } else if (num_sge > 0) {
    std::memcpy(slot.area, wr.sg_list, num_sge * sizeof *wr.sg_list);
  }
  ++added_;
  return 0;
}

int SendQueue::set_address(const AddressHandle* ah, uint32_t remote_qpn, uint32_t remote_qkey) {
  if (!has_added()) return EINVAL;
  SendRequest& last = slot(added_ - 1);
  last.ah = ah;
  last.remote_qpn = remote_qpn;
  last.remote_qkey = remote_qkey;
  return 0;
}

bool SendQueue::are_addressed(uint32_t pd) const {
  for (uint64_t i = taken_; i != added_; ++i)
    if (!slot(i).ah || slot(i).ah->pd != pd) return false;
  return true;
}

void SendQueue::clear() {
  added_ = taken_;
  freed_.store(taken_, std::memory_order_release);
}

}  // namespace uiw::datagram
