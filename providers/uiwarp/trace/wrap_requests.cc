// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Work requests and their completions. A post is recorded when it has succeeded, with the time when
// it began: its completion may have been polled, and recorded, by then.
#include <span>
#include <utility>

#include "core/clock.h"
#include "core/request_sges.h"
#include "core/verbs_names.h"
#include "trace/wraps.h"

namespace uiw::trace {
namespace {

Record of_send(const Qp& qp, const ibv_send_wr& wr, core::Nanoseconds time) {
  Record record = record_of(Kind::kSend, qp.number, time);
  record.opcode = static_cast<uint8_t>(core::value_of(wr.opcode));
  if (qp.signal_all || (wr.send_flags & IBV_SEND_SIGNALED)) record.flags = kSignaled;
  record.work.wr_id = wr.wr_id;
  record.work.bytes = core::bytes_of(core::sges_of(wr));
  return record;
}

Record of_receive(uint32_t qp, uint64_t queue, const ibv_recv_wr& wr, core::Nanoseconds time) {
  Record record = record_of(Kind::kReceive, qp, time);
  record.flags = kSignaled;
  record.work.wr_id = wr.wr_id;
  record.work.bytes = core::bytes_of(std::span(wr.sg_list, static_cast<size_t>(wr.num_sge)));
  record.work.queue = queue;
  return record;
}

void refused(uint32_t qp, int error, uint64_t wr_id, core::Nanoseconds time) {
  Record record = record_of(Kind::kRefused, qp, time);
  record.work.wr_id = wr_id;
  record.work.error = static_cast<uint32_t>(error);
  write(record);
}

// Records those of a list that were posted: all, or with `error` those before `bad`.
template <class Wr, class Make>
void record_list(const Wr* wr, const Wr* bad, int error, uint32_t qp, core::Nanoseconds time,
                 Make make) {
  for (; wr && !(error && wr == bad); wr = wr->next) write(make(*wr));
  if (error) refused(qp, error, wr ? wr->wr_id : 0, time);
}

}  // namespace

namespace wrap {

int qp_post_send(uiwarp_qp* handle, ibv_send_wr* wr, ibv_send_wr** bad) {
  const Qp& qp = of(handle);
  const core::Nanoseconds time = core::now();
  ibv_send_wr* first_refused = wr;
  const int error = next->qp_post_send(qp.next, wr, &first_refused);
  record_list(wr, first_refused, error, qp.number, time,
              [&](const ibv_send_wr& each) { return of_send(qp, each, time); });
  if (error && bad) *bad = first_refused;
  return error;
}

int qp_post_recv(uiwarp_qp* handle, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const Qp& qp = of(handle);
  const core::Nanoseconds time = core::now();
  ibv_recv_wr* first_refused = wr;
  const int error = next->qp_post_recv(qp.next, wr, &first_refused);
  record_list(wr, first_refused, error, qp.number, time,
              [&](const ibv_recv_wr& each) { return of_receive(qp.number, 0, each, time); });
  if (error && bad) *bad = first_refused;
  return error;
}

int srq_post_recv(uiwarp_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const core::Nanoseconds time = core::now();
  ibv_recv_wr* first_refused = wr;
  const int error = next->srq_post_recv(srq, wr, &first_refused);
  record_list(wr, first_refused, error, 0, time, [&](const ibv_recv_wr& each) {
    return of_receive(0, reinterpret_cast<uintptr_t>(srq), each, time);
  });
  if (error && bad) *bad = first_refused;
  return error;
}

void qp_batch_begin(uiwarp_qp* handle) {
  Qp& qp = of(handle);
  next->qp_batch_begin(qp.next);
  qp.batch.clear();
}

int qp_batch_add(uiwarp_qp* handle, const ibv_send_wr* wr) {
  Qp& qp = of(handle);
  const core::Nanoseconds time = core::now();
  const int error = next->qp_batch_add(qp.next, wr);
  if (error)
    refused(qp.number, error, wr->wr_id, time);
  else
    qp.batch.push_back(of_send(qp, *wr, time));
  return error;
}

int qp_batch_address(uiwarp_qp* qp, const ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey) {
  return next->qp_batch_address(of(qp).next, ah, remote_qpn, remote_qkey);
}

int qp_batch_end(uiwarp_qp* handle, int publish) {
  Qp& qp = of(handle);
  // Once it has ended another thread may begin.
  static thread_local std::vector<Record> batch;
  batch.clear();
  batch.swap(qp.batch);
  const core::Nanoseconds time = core::now();
  const int error = next->qp_batch_end(qp.next, publish);
  if (!publish) return error;
  if (error) {
    refused(qp.number, error, batch.empty() ? 0 : batch.front().work.wr_id, time);
    return error;
  }
  for (Record record : batch) {
    record.time = time;
    write(record);
  }
  return error;
}

int cq_poll(uiwarp_cq* cq, int count, ibv_wc* wc) {
  const int taken = next->cq_poll(cq, count, wc);
  if (taken <= 0) return taken;
  const core::Nanoseconds time = core::now();
  for (ibv_wc* each = wc; each < wc + taken; ++each) {
    Record record = record_of(Kind::kCompletion, each->qp_num, time);
    record.opcode = static_cast<uint8_t>(each->opcode & 0x7f);
    record.status = static_cast<uint8_t>(each->status);
    if (each->opcode & IBV_WC_RECV)
      record.flags = kHasReceived;
    else
      record.work.place = std::exchange(each->src_qp, 0);
    record.work.wr_id = each->wr_id;
    // The manual defines it of receives and Reads only.
    record.work.bytes = each->status == IBV_WC_SUCCESS ? each->byte_len : 0;
    record.work.vendor_err = each->vendor_err;
    write(record);
  }
  return taken;
}

}  // namespace wrap
}  // namespace uiw::trace
