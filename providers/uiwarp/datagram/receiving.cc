// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What comes for a UD queue pair.
#include <cinttypes>
#include <utility>

#include "core/instrumented.h"
#include "datagram/drops.h"
#include "datagram/queue_pair.h"
#include "datagram/states.h"
#include "queue/memory_trouble.h"
#include "queue/scatter.h"

namespace uiw::datagram {

bool QueuePair::place(const queue::Receive& receive, const Arrival& arrival) {
  const Grh grh = make_grh(arrival.envelope, arrival.header.gid_type,
                           static_cast<uint32_t>(arrival.payload.size()));
  const auto put = [&](uint64_t offset, core::Bytes bytes) {
    return queue::scatter(regions_, *options_.memory, options_.srq ? options_.srq_pd : options_.pd,
                          receive.sges, receive.sge_count, offset, bytes);
  };
  const bool placed = put(0, grh) && put(kGrhSize, arrival.payload);
  regions_.release();
  return placed;
}

core::Cause QueuePair::explain(const queue::Receive& receive, const Arrival& arrival) {
  return queue::explain_sges(told_, *options_.memory,
                             {.qp_num = options_.qp_num,
                              .wr_id = receive.wr_id,
                              .what = "receive",
                              .pd = options_.srq ? options_.srq_pd : options_.pd,
                              .rights = mem::kLocalWrite},
                             receive.sges, receive.sge_count, kGrhSize + arrival.payload.size());
}

// InfiniBand 9.9.3.1, class D: what is longer than its receive is dropped, and the receive stays.
// Anybody who knows number and Q_Key could end the queue pair otherwise.
void QueuePair::drop_too_long(const queue::Receive& receive, const Arrival& arrival) {
  drops().count(Drop::kTooLong);
  const uiwarp_verbs* const told = core::instrumented.load(std::memory_order_acquire);
  if (told && told->datagram_too_long(options_.qp_num, receive.wr_id,
                                      kGrhSize + arrival.payload.size()) != 0)
    return;
  core::explain(
      told_,
      "queue pair 0x%06x: wr_id 0x%" PRIx64 ": the receive has %" PRIu64
      " bytes, and the datagram needs %zu: %zu for the GRH, which comes first, and %zu of "
      "its own. It is lost, and its sender hears nothing: "
      "post receives that are %zu bytes longer than the messages",
      options_.qp_num, receive.wr_id, receive.length, kGrhSize + arrival.payload.size(),
      size_t{kGrhSize}, arrival.payload.size(), size_t{kGrhSize});
}

// One that nobody has the Q_Key for has come to nobody, for instruments, too.
void QueuePair::deliver(const Arrival& arrival) {
  const uiwarp_verbs* const asked = core::instrumented.load(std::memory_order_acquire);
  if (asked && arrival.header.qkey == qkey_.load(std::memory_order_relaxed)) [[unlikely]]
    return meet(*asked, arrival);
  take_in(arrival);
}

// What the network may do to it, an instrument does.
void QueuePair::meet(const uiwarp_verbs& asked, const Arrival& arrival) {
  uint64_t delay = 0;
  const uiwarp_datagram_fate fate = asked.datagram_arriving(options_.qp_num, &delay);
  if (fate == UIWARP_DATAGRAM_LOST) return;
  if (fate == UIWARP_DATAGRAM_LATE) return put_off(arrival, static_cast<core::Nanoseconds>(delay));
  if (fate == UIWARP_DATAGRAM_OVERTAKEN && hold(arrival)) return;
  take_in(arrival);
  if (fate == UIWARP_DATAGRAM_TWICE) take_in(arrival);
  std::optional<Kept> overtaken;
  {
    const std::lock_guard receiving(receiving_);
    overtaken.swap(held_);
  }
  if (overtaken) take_in(overtaken->arrival());
}

void QueuePair::put_off(const Arrival& arrival, core::Nanoseconds delay) {
  if (late_.add(arrival, delay)) return;
  drops().count(Drop::kTooManyLate);
  core::explain(told_,
                "queue pair 0x%06x: as many datagrams are late as may be, %zu, or memory is short: "
                "one that was to come late is lost, and so are others while it is so",
                options_.qp_num, Late::kMost);
}

// False: one is held already, or memory is short.
bool QueuePair::hold(const Arrival& arrival) {
  const std::lock_guard receiving(receiving_);
  if (!held_) return (held_ = Kept::copy(arrival)).has_value();
  return false;
}

void QueuePair::take_in(const Arrival& arrival) {
  std::unique_lock receiving(receiving_);
  if (!can_receive(state_.load(std::memory_order_relaxed)))
    return drops().count(Drop::kNotReceiving);
  if (arrival.header.qkey != qkey_.load(std::memory_order_relaxed))
    return drops().count(Drop::kQkey);
  if (arrival.payload.size() > mtu()) return drops().count(Drop::kMalformed);
  queue::Receive receive;
  bool below_limit;
  if (!receives_->take(receive, below_limit, kGrhSize + arrival.payload.size())) {
    if (receives_->empty()) return drops().count(Drop::kNoReceive);
    receiving.unlock();
    return drop_too_long(receive, arrival);
  }
  ibv_wc wc{};
  const bool good = place(receive, arrival);
  wc.status = good ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
  if (good) {
    wc.byte_len = static_cast<uint32_t>(kGrhSize + arrival.payload.size());
    options_.counters->bytes_received.add(kHeaderSize + arrival.payload.size());
    wc.src_qp = arrival.header.from;
    wc.wc_flags = IBV_WC_GRH;
    wc.sl = header_kind(arrival.envelope, arrival.header.gid_type);
    if (arrival.header.has_immediate) {
      wc.wc_flags |= IBV_WC_WITH_IMM;
      wc.imm_data = arrival.header.immediate;
    }
  }
  const core::Cause cause = good ? core::Cause::kNone : explain(receive, arrival);
  wc.vendor_err = static_cast<uint32_t>(cause);
  complete_receive(receive, wc, !good || arrival.header.solicited);
  if (!good) enter_error(receiving, cause);
  if (below_limit) options_.srq_events->on_srq_limit();
}

void QueuePair::complete_receive(const queue::Receive& receive, const ibv_wc& result,
                                 bool solicited) {
  ibv_wc wc = result;
  wc.wr_id = receive.wr_id;
  wc.opcode = IBV_WC_RECV;
  wc.qp_num = options_.qp_num;
  options_.counters->completed_receives.add(1);
  if (wc.status != IBV_WC_SUCCESS) options_.counters->failed_receives.add(1);
  options_.recv_cq->push({wc, sources_.receives.get(), receive.frees}, solicited);
}

}  // namespace uiw::datagram
