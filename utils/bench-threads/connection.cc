// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>

#include <cstring>
#include <string>

#include "server_process.h"

namespace uiw::bench {

ibv_qp_init_attr Connection::queue_pair() {
  ibv_qp_init_attr attr = {};
  attr.cap.max_send_wr = attr.cap.max_recv_wr = kDepth + 1;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  attr.qp_type = IBV_QPT_RC;
  attr.sq_sig_all = 1;
  return attr;
}

void Connection::make_buffer() {
  buffer_.assign(size_t{load_.size} * kDepth, 'u');
  mr_ = ibv_reg_mr(id_->pd, buffer_.data(), buffer_.size(),
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  if (!mr_) die("ibv_reg_mr");
}

Connection::Connection(const Load& load, uint16_t port) : load_(load) {
  rdma_addrinfo hints = {}, *found = nullptr;
  hints.ai_port_space = RDMA_PS_TCP;
  const std::string service = std::to_string(port);
  if (rdma_getaddrinfo("127.0.0.1", service.c_str(), &hints, &found) != 0) die("rdma_getaddrinfo");
  ibv_qp_init_attr attr = queue_pair();
  if (rdma_create_ep(&id_, found, nullptr, &attr) != 0) die("rdma_create_ep");
  rdma_freeaddrinfo(found);
  make_buffer();
  rdma_conn_param parameters = {};
  parameters.initiator_depth = parameters.responder_resources = kDepth;
  if (rdma_connect(id_, &parameters) != 0) die("rdma_connect");
  const rdma_conn_param& answer = id_->event->param.conn;
  if (answer.private_data_len < sizeof peer_) die("private data");
  memcpy(&peer_, answer.private_data, sizeof peer_);
}

Connection::Connection(const Load& load, rdma_cm_id* id) : load_(load), id_(id) {
  make_buffer();
  for (uint64_t part = 0; part < kDepth; part++) post_receive(part);
  const Window mine = {reinterpret_cast<uintptr_t>(buffer_.data()), mr_->rkey};
  rdma_conn_param parameters = {};
  parameters.private_data = &mine;
  parameters.private_data_len = sizeof mine;
  parameters.initiator_depth = parameters.responder_resources = kDepth;
  if (rdma_accept(id_, &parameters) != 0) die("rdma_accept");
}

Connection::~Connection() {
  ibv_dereg_mr(mr_);
  rdma_destroy_ep(id_);
}

void Connection::post_receive(uint64_t part) {
  ibv_sge sge = {reinterpret_cast<uintptr_t>(&buffer_[part * load_.size]), load_.size, mr_->lkey};
  ibv_recv_wr request = {}, *bad = nullptr;
  request.wr_id = part;
  request.sg_list = &sge;
  request.num_sge = 1;
  if ((errno = ibv_post_recv(id_->qp, &request, &bad)) != 0) die("ibv_post_recv");
}

void Connection::post(ibv_wr_opcode opcode, uint64_t part, uint32_t size) {
  ibv_sge sge = {reinterpret_cast<uintptr_t>(&buffer_[part * load_.size]), size, mr_->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.wr_id = part;
  request.opcode = opcode;
  request.sg_list = &sge;
  request.num_sge = 1;
  request.wr.rdma.remote_addr = peer_.address + part * load_.size;
  request.wr.rdma.rkey = peer_.key;
  if ((errno = ibv_post_send(id_->qp, &request, &bad)) != 0) die("ibv_post_send");
}

uint64_t Connection::next_completion(ibv_cq* cq) {
  ibv_wc wc;
  int polled;
  while ((polled = ibv_poll_cq(cq, 1, &wc)) == 0) {
  }
  if (polled < 0) die("ibv_poll_cq");
  errno = EIO;
  if (wc.status != IBV_WC_SUCCESS) die(ibv_wc_status_str(wc.status));
  return wc.wr_id;
}

void Connection::ask() {
  int posted = 0;
  auto post_next = [&](uint64_t part) {
    post(load_.opcode, part, load_.size);
    posted++;
  };
  auto await_one = [this] { return next_completion(id_->send_cq); };
  while (posted < load_.iterations && posted < static_cast<int>(kDepth)) post_next(posted);
  int completed = 0;
  for (; posted < load_.iterations; completed++) post_next(await_one());
  for (; completed < posted; completed++) await_one();
  // A Send or Write completes when TCP has it, a Read behind it when the peer has it.
  post(IBV_WR_RDMA_READ, 0, 1);
  await_one();
}

void Connection::end() {
  if (rdma_disconnect(id_) != 0) die("rdma_disconnect");
}

void Connection::answer() {
  for (int left = load_.opcode == IBV_WR_SEND ? load_.iterations : 0; left > 0; left--) {
    const uint64_t part = next_completion(id_->recv_cq);
    if (left > static_cast<int>(kDepth)) post_receive(part);
  }
  // The peer goes when all is done.
  rdma_cm_event* event = nullptr;
  for (bool gone = false; !gone;) {
    if (rdma_get_cm_event(id_->channel, &event) != 0) die("rdma_get_cm_event");
    gone = event->event == RDMA_CM_EVENT_DISCONNECTED;
    rdma_ack_cm_event(event);
  }
}

}  // namespace uiw::bench
