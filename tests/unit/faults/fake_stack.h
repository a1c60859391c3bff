// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A table of verbs functions to stand behind --faults: work requests complete when the test says
// so, and in ERR they flush. Thread: any.
#pragma once

#include <cerrno>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "core/log.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::faults::fake {

struct Cq {
  std::deque<ibv_wc> completions;
  int overruns = 0;
};

struct Qp {
  Cq* send_cq;
  Cq* recv_cq;
  uint32_t number;
  ibv_qp_state state = IBV_QPS_RTS;
  std::deque<ibv_send_wr> posted;  // and not completed
  std::vector<ibv_wr_opcode> seen;
  std::vector<ibv_send_wr> batch;
  std::string inlined;               // inline data of the last request that had any
  uint32_t bound = 0;                // lkey of the region of the last window that was bound
  int breaks = 0;                    // how often its connection was reset
  bool deaf = false;                 // nothing of its peer arrives
  std::vector<uint64_t> receives{};  // that were posted
};

inline std::mutex mutex;
inline uint32_t last_number = 0;
inline int arms = 0;
inline int wakes = 0;
inline int64_t patience = 0;  // of all queue pairs
inline int refusal = 0;       // what posting to a send queue, and the end of a batch, fail with

inline void push(Cq& cq, const Qp& qp, uint64_t wr_id, ibv_wc_status status, ibv_wc_opcode opcode) {
  ibv_wc wc{};
  wc.wr_id = wr_id;
  wc.status = status;
  wc.opcode = opcode;
  wc.qp_num = qp.number;
  cq.completions.push_back(wc);
}

inline void flush(Qp& qp) {
  for (const uint64_t wr_id : qp.receives)
    push(*qp.recv_cq, qp, wr_id, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV);
  qp.receives.clear();
  for (const ibv_send_wr& wr : qp.posted)
    push(*qp.send_cq, qp, wr.wr_id, IBV_WC_WR_FLUSH_ERR, IBV_WC_SEND);
  qp.posted.clear();
}

// What happened to devices, in order.
inline std::vector<std::string> happenings;
inline int happened(const char* device, const std::string& what) {
  const std::lock_guard lock(mutex);
  happenings.push_back(std::string(device) + " " + what);
  return 0;
}
inline std::vector<std::string> all_that_happened() {
  const std::lock_guard lock(mutex);
  return happenings;
}

inline Qp& of(uiwarp_qp* handle) {
  return *reinterpret_cast<Qp*>(handle);
}
inline Cq& of(uiwarp_cq* handle) {
  return *reinterpret_cast<Cq*>(handle);
}

// All that was posted is carried out.
inline void complete_sends(Qp& qp) {
  const std::lock_guard lock(mutex);
  for (const ibv_send_wr& wr : qp.posted)
    if (wr.send_flags & IBV_SEND_SIGNALED)
      push(*qp.send_cq, qp, wr.wr_id, IBV_WC_SUCCESS,
           wr.opcode == IBV_WR_RDMA_WRITE ? IBV_WC_RDMA_WRITE : IBV_WC_SEND);
  qp.posted.clear();
}

// What was posted first has not been answered in time.
inline void time_out(Qp& qp) {
  const std::lock_guard lock(mutex);
  push(*qp.send_cq, qp, qp.posted.front().wr_id, IBV_WC_RETRY_EXC_ERR, IBV_WC_SEND);
  qp.posted.pop_front();
  qp.state = IBV_QPS_ERR;
  flush(qp);
}

inline void receive(Qp& qp, uint64_t wr_id) {
  const std::lock_guard lock(mutex);
  push(*qp.recv_cq, qp, wr_id, IBV_WC_SUCCESS, IBV_WC_RECV);
}

inline ibv_qp_state state_of(Qp& qp) {
  const std::lock_guard lock(mutex);
  return qp.state;
}

inline void take(Qp& qp, const ibv_send_wr& wr) {
  qp.posted.push_back(wr);
  qp.seen.push_back(wr.opcode);
  if (wr.send_flags & IBV_SEND_INLINE)
    qp.inlined.assign(reinterpret_cast<const char*>(wr.sg_list->addr), wr.sg_list->length);
  if (wr.opcode == IBV_WR_BIND_MW) qp.bound = wr.bind_mw.bind_info.mr->lkey;
  if (qp.state == IBV_QPS_ERR) flush(qp);
}

inline uiwarp_verbs table() {
  uiwarp_verbs verbs{};
  verbs.pd_alloc = [](uiwarp_context*, uiwarp_pd**) { return 0; };
  verbs.cq_create = [](uiwarp_context*, int, int, int, uiwarp_pd*, void*, uiwarp_cq** cq, int*) {
    *cq = reinterpret_cast<uiwarp_cq*>(new Cq);
    return 0;
  };
  verbs.cq_destroy = [](uiwarp_cq* cq, uint32_t*, uint32_t*) {
    delete &of(cq);
    return 0;
  };
  verbs.cq_poll = [](uiwarp_cq* cq, int count, ibv_wc* wc) {
    const std::lock_guard lock(mutex);
    int taken = 0;
    for (auto& list = of(cq).completions; taken < count && !list.empty(); list.pop_front())
      wc[taken++] = list.front();
    return taken;
  };
  verbs.cq_arm = [](uiwarp_cq*, int) {
    const std::lock_guard lock(mutex);
    ++arms;
    return 0;
  };
  verbs.qp_create = [](uiwarp_pd*, uiwarp_qp_init* init, uiwarp_qp** qp, uint32_t* number) {
    *number = ++last_number;
    *qp = reinterpret_cast<uiwarp_qp*>(new Qp{&of(init->send_cq),
                                              &of(init->recv_cq),
                                              *number,
                                              IBV_QPS_RTS,
                                              {},
                                              {},
                                              {},
                                              {},
                                              0,
                                              0,
                                              false,
                                              {}});
    return 0;
  };
  verbs.qp_destroy = [](uiwarp_qp* qp, uint32_t*) {
    delete &of(qp);
    return 0;
  };
  verbs.qp_modify = [](uiwarp_qp* qp, const ibv_qp_attr* attr, int) {
    const std::lock_guard lock(mutex);
    of(qp).state = attr->qp_state;
    if (attr->qp_state == IBV_QPS_ERR) flush(of(qp));
    if (attr->qp_state == IBV_QPS_RESET) of(qp).posted.clear();
    return 0;
  };
  verbs.qp_post_send = [](uiwarp_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
    const std::lock_guard lock(mutex);
    *bad = wr;
    if (refusal) return refusal;
    if (wr->opcode != IBV_WR_LOCAL_INV && static_cast<uint32_t>(wr->num_sge) > 1) return EINVAL;
    for (; wr; wr = wr->next) take(of(qp), *wr);
    return 0;
  };
  verbs.qp_deafen = [](uiwarp_qp* qp, int deaf) {
    const std::lock_guard lock(mutex);
    of(qp).deaf = deaf != 0;
  };
  verbs.qp_patience = [](uiwarp_qp*) {
    const std::lock_guard lock(mutex);
    return patience;
  };
  verbs.datagram_arriving = [](uint32_t, uint64_t*) { return UIWARP_DATAGRAM_ARRIVES; };
  verbs.cm_accepting = [](const sockaddr_storage*, const sockaddr_storage*) {
    return UIWARP_CONNECT_GOES_ON;
  };
  verbs.qp_batch_address = [](uiwarp_qp* qp, const ibv_ah*, uint32_t, uint32_t qkey) {
    of(qp).batch.back().wr.ud.remote_qkey = qkey;
    return 0;
  };
  verbs.qp_break = [](uiwarp_qp* qp) {
    const std::lock_guard lock(mutex);
    core::log(core::LogLevel::kWarn, "the stack: a connection is reset");
    ++of(qp).breaks;
    of(qp).state = IBV_QPS_ERR;
    flush(of(qp));
  };
  verbs.context_open = [](const uiwarp_device*, uint64_t, uiwarp_context**, int*) { return 0; };
  verbs.connected = [](uint32_t, const sockaddr_storage*, const sockaddr_storage*) {};
  verbs.pd_device = [](uiwarp_pd*) { return "uiw_fake"; };
  verbs.cq_wake = [](uiwarp_cq*) {
    const std::lock_guard lock(mutex);
    ++wakes;
  };
  verbs.cq_waiting = [](uiwarp_cq* cq, uint32_t*) {
    const std::lock_guard lock(mutex);
    return static_cast<uint32_t>(of(cq).completions.size());
  };
  verbs.cq_has_overflowed = [](uiwarp_cq* cq) {
    const std::lock_guard lock(mutex);
    return of(cq).overruns > 0 ? int{UIWARP_OVERFLOWED} : 0;
  };
  verbs.cq_overrun = [](uiwarp_cq* cq) {
    core::log(core::LogLevel::kWarn, "the stack: a queue is full");
    const std::lock_guard lock(mutex);
    ++of(cq).overruns;
  };
  verbs.device_find = [](const char* name) {
    static const char device = 0;
    const bool is_there = std::string(name) == "uiw_fake";
    return is_there ? reinterpret_cast<const uiwarp_device*>(&device) : nullptr;
  };
  verbs.device_hold_down = [](const char* name, int down) {
    return happened(name, down ? "down" : "up");
  };
  verbs.device_pretend = [](const char* name, ibv_event_type event) {
    return happened(name, std::to_string(event));
  };
  verbs.device_shift_gids = [](const char* name) { return happened(name, "shift"); };
  verbs.cm_connecting = [](uint16_t, uint32_t) { return UIWARP_CONNECT_GOES_ON; };
  verbs.qp_post_recv = [](uiwarp_qp* qp, ibv_recv_wr* wr, ibv_recv_wr**) {
    const std::lock_guard lock(mutex);
    of(qp).receives.push_back(wr->wr_id);
    return 0;
  };
  verbs.qp_batch_begin = [](uiwarp_qp* qp) { of(qp).batch.clear(); };
  verbs.qp_batch_add = [](uiwarp_qp* qp, const ibv_send_wr* wr) {
    of(qp).batch.push_back(*wr);
    return 0;
  };
  verbs.qp_batch_end = [](uiwarp_qp* qp, int publish) {
    const std::lock_guard lock(mutex);
    if (publish && refusal) return refusal;
    if (publish)
      for (const ibv_send_wr& wr : of(qp).batch) take(of(qp), wr);
    return 0;
  };
  return verbs;
}

}  // namespace uiw::faults::fake
