// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "end.h"

#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/clock.h"
#include "server_process.h"

namespace uiw::bench {
namespace {

constexpr int kTimeoutMs = 5000;
constexpr int kWarmUp = 200;

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = port;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void check(const rdma_cm_event& event, rdma_cm_event_type expected) {
  if (event.event == expected) return;
  errno = event.status < 0 ? -event.status : EPROTO;
  die(rdma_event_str(event.event));
}

}  // namespace

int64_t End::resident() {
  FILE* file = fopen("/proc/self/statm", "re");
  long all = 0, here = 0;
  if (!file || fscanf(file, "%ld %ld", &all, &here) != 2) die("/proc/self/statm");
  fclose(file);
  return here * sysconf(_SC_PAGESIZE);
}

End::End() : channel_(rdma_create_event_channel()) {
  if (!channel_) die("rdma_create_event_channel");
}

uint16_t End::listen() {
  sockaddr_in address = loopback(0);
  if (rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_TCP) != 0) die("rdma_create_id");
  if (rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&address)) != 0) die("rdma_bind_addr");
  if (rdma_listen(listener_, 64) != 0) die("rdma_listen");
  return rdma_get_src_port(listener_);
}

rdma_cm_event* End::next_event() {
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel_, &event) != 0) die("rdma_get_cm_event");
  return event;
}

void End::take(rdma_cm_event_type type) {
  rdma_cm_event* event = next_event();
  check(*event, type);
  rdma_ack_cm_event(event);
}

void End::add(rdma_cm_id* id) {
  if (!pd_) {
    pd_ = ibv_alloc_pd(id->verbs);
    cq_ = ibv_create_cq(id->verbs, 64, nullptr, nullptr, 0);
    if (!pd_ || !cq_) die("ibv_create_cq");
    // Both buffers lie in this object.
    const int access = IBV_ACCESS_LOCAL_WRITE;
    mr_ = ibv_reg_mr(pd_, this, sizeof *this, access);
    if (!mr_) die("ibv_reg_mr");
  }
  ibv_qp_init_attr attr = {};
  attr.send_cq = attr.recv_cq = cq_;
  attr.cap.max_send_wr = attr.cap.max_recv_wr = 2;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  attr.qp_type = IBV_QPT_RC;
  attr.sq_sig_all = 1;
  if (rdma_create_qp(id, pd_, &attr) != 0) die("rdma_create_qp");
  ids_.push_back(id);
  if (ids_.size() == 1) post_receive();
}

// A request may come before word that the connection before it stands.
void End::accept_one() {
  for (bool established = false; !established;) {
    rdma_cm_event* event = next_event();
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
      add(event->id);
      if (rdma_accept(event->id, nullptr) != 0) die("rdma_accept");
    } else {
      check(*event, RDMA_CM_EVENT_ESTABLISHED);
      established = true;
    }
    rdma_ack_cm_event(event);
  }
}

void End::connect_one(uint16_t port) {
  sockaddr_in address = loopback(port);
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP) != 0) die("rdma_create_id");
  if (rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&address), kTimeoutMs) != 0)
    die("rdma_resolve_addr");
  take(RDMA_CM_EVENT_ADDR_RESOLVED);
  if (rdma_resolve_route(id, kTimeoutMs) != 0) die("rdma_resolve_route");
  take(RDMA_CM_EVENT_ROUTE_RESOLVED);
  add(id);
  rdma_conn_param parameters = {};
  if (rdma_connect(id, &parameters) != 0) die("rdma_connect");
  take(RDMA_CM_EVENT_ESTABLISHED);
}

void End::post_receive() {
  ibv_sge sge = {reinterpret_cast<uintptr_t>(in_), kSize, mr_->lkey};
  ibv_recv_wr request = {}, *bad = nullptr;
  request.sg_list = &sge;
  request.num_sge = 1;
  if ((errno = ibv_post_recv(ids_.front()->qp, &request, &bad)) != 0) die("ibv_post_recv");
}

void End::send() {
  ibv_sge sge = {reinterpret_cast<uintptr_t>(out_), kSize, mr_->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.opcode = IBV_WR_SEND;
  request.sg_list = &sge;
  request.num_sge = 1;
  if ((errno = ibv_post_send(ids_.front()->qp, &request, &bad)) != 0) die("ibv_post_send");
}

// A round has two completions on either end, of its Send and of its receive, in any order.
void End::await(int completions) {
  while (completions > 0) {
    ibv_wc wc;
    const int polled = ibv_poll_cq(cq_, 1, &wc);
    if (polled < 0) die("ibv_poll_cq");
    if (polled == 0) continue;
    if (wc.status != IBV_WC_SUCCESS) {
      errno = EIO;
      die(ibv_wc_status_str(wc.status));
    }
    if (wc.opcode == IBV_WC_RECV) post_receive();
    completions--;
  }
}

double End::ping_pong(int iterations, bool begins) {
  std::vector<int64_t> samples;
  for (int i = 0; i < iterations + kWarmUp; i++) {
    const int64_t start = core::now();
    if (begins) {
      send();
      await(2);
      if (i >= kWarmUp) samples.push_back(core::now() - start);
    } else {
      // A receive, and the Send of the round before.
      await(i == 0 ? 1 : 2);
      send();
    }
  }
  if (!begins) await(1);
  if (samples.empty()) return 0;
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  return static_cast<double>(samples[samples.size() / 2]) / 2000.0;
}

}  // namespace uiw::bench
