// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Queue pairs connected to each other over loopback by the stock librdmacm, both ends in this
// process.
#pragma once

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <sys/mman.h>

#include <chrono>
#include <functional>
#include <map>
#include <vector>

#include "support.h"

namespace uiw::provider_test {

// Far beyond what anything takes, 2 GiB on a machine that does much else included: for a test that
// would hang.
inline bool wait_until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(4);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    sched_yield();
  }
  return true;
}

// One completion; a status of IBV_WC_GENERAL_ERR and wr_id ~0 when none comes.
inline ibv_wc wait_for(ibv_cq* cq) {
  ibv_wc wc{};
  if (wait_until([&] { return ibv_poll_cq(cq, 1, &wc) == 1; })) return wc;
  ADD_FAILURE() << "no completion";
  wc.wr_id = ~uint64_t{0};
  wc.status = IBV_WC_GENERAL_ERR;
  return wc;
}

struct Ends {
  rdma_cm_id* a = nullptr;  // connected; a->qp is its queue pair
  rdma_cm_id* b = nullptr;  // accepted
};

// What an id that is being connected gets for a queue pair; `passive` for the end that accepts.
using MakeQp = std::function<void(rdma_cm_id* id, bool passive)>;

// Ids, their events and their listener. All on one channel and the thread of the test.
class Connector {
 public:
  // `host`: an address of this machine, in network order; its device is the one that is used.
  explicit Connector(uint32_t host = htonl(INADDR_LOOPBACK))
      : host_(host), channel_(rdma_create_event_channel()) {
    if (!channel_) ADD_FAILURE() << "rdma_create_event_channel: " << strerror(errno);
    EXPECT_EQ(rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_TCP), 0);
    sockaddr_in any = at_port(0);
    EXPECT_EQ(rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&any)), 0);
    EXPECT_EQ(rdma_listen(listener_, 4096), 0);
  }
  ~Connector() {
    for (rdma_cm_id* id : ids_) {
      if (id->qp) rdma_destroy_qp(id);
      rdma_destroy_id(id);
    }
    if (listener_) rdma_destroy_id(listener_);
    if (channel_) rdma_destroy_event_channel(channel_);
  }
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

  ibv_context* context() const { return listener_->verbs; }

  // `reads`: how many RDMA Reads may be outstanding in either direction.
  Ends connect(const MakeQp& make, uint8_t reads = 4) {
    Ends ends;
    sockaddr_in to = at_port(rdma_get_src_port(listener_));
    EXPECT_EQ(rdma_create_id(channel_, &ends.a, nullptr, RDMA_PS_TCP), 0);
    ids_.push_back(ends.a);
    EXPECT_EQ(rdma_resolve_addr(ends.a, nullptr, reinterpret_cast<sockaddr*>(&to), 1000), 0);
    expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(rdma_resolve_route(ends.a, 1000), 0);
    expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    make(ends.a, false);
    rdma_conn_param param{};
    param.initiator_depth = param.responder_resources = reads;
    EXPECT_EQ(rdma_connect(ends.a, &param), 0);
    ends.b = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    if (!ends.b) return ends;
    ids_.push_back(ends.b);
    make(ends.b, true);
    EXPECT_EQ(rdma_accept(ends.b, &param), 0);
    expect(RDMA_CM_EVENT_ESTABLISHED);
    expect(RDMA_CM_EVENT_ESTABLISHED);
    return ends;
  }
  // Both ends hear of it, and are gone then.
  void disconnect(const Ends& ends) {
    EXPECT_EQ(rdma_disconnect(ends.a), 0);
    for ([[maybe_unused]] rdma_cm_id* id : {ends.a, ends.b}) expect(RDMA_CM_EVENT_DISCONNECTED);
    for (rdma_cm_id* id : {ends.a, ends.b}) {
      rdma_destroy_qp(id);
      EXPECT_EQ(rdma_destroy_id(id), 0);
      std::erase(ids_, id);
    }
  }
  // The next event has to be this one; whose it is.
  rdma_cm_id* expect(rdma_cm_event_type type) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel_, &event) != 0) {
      ADD_FAILURE() << "rdma_get_cm_event: " << strerror(errno);
      return nullptr;
    }
    EXPECT_EQ(event->event, type) << rdma_event_str(event->event) << ", status " << event->status;
    rdma_cm_id* id = event->id;
    rdma_ack_cm_event(event);
    return id;
  }

 private:
  sockaddr_in at_port(uint16_t port) const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = port;
    address.sin_addr.s_addr = host_;
    return address;
  }
  const uint32_t host_;
  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* listener_ = nullptr;
  std::vector<rdma_cm_id*> ids_;
};

// A Connector, and what its queue pairs need: completion queues and registered memory on its
// context.
class Connected : public ::testing::Test {
 protected:
  static constexpr size_t kSize = 64 * 1024;

  void SetUp() override {
    connector_ = std::make_unique<Connector>();
    context_ = connector_->context();
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    cq_ = ibv_create_cq(context_, 4096, nullptr, nullptr, 0);
    peer_cq_ = ibv_create_cq(context_, 4096, nullptr, nullptr, 0);
    ASSERT_TRUE(pd_ && cq_ && peer_cq_);
    for (size_t i = 0; i < kSize; ++i) ours_[i] = static_cast<char>(i * 7);
    const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    mr_ = ibv_reg_mr(pd_, ours_, kSize, all);
    peer_mr_ = ibv_reg_mr(pd_, theirs_, kSize, all);
    ASSERT_TRUE(mr_ && peer_mr_);
  }
  void TearDown() override {
    connector_.reset();
    for (ibv_mr* mr : {mr_, peer_mr_})
      if (mr) EXPECT_EQ(ibv_dereg_mr(mr), 0);
    for (ibv_cq* cq : {cq_, peer_cq_})
      if (cq) EXPECT_EQ(ibv_destroy_cq(cq), 0);
    if (pd_) EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
  }

  ibv_qp_init_attr init_attr(bool passive) const {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = passive ? peer_cq_ : cq_;
    init.cap = {.max_send_wr = 16,
                .max_recv_wr = 16,
                .max_send_sge = 4,
                .max_recv_sge = 4,
                .max_inline_data = 0};
    init.qp_type = IBV_QPT_RC;
    return init;
  }
  void make_qp(rdma_cm_id* id, bool passive) {
    ibv_qp_init_attr init = init_attr(passive);
    EXPECT_EQ(rdma_create_qp(id, pd_, &init), 0) << strerror(errno);
  }
  MakeQp plain() {
    return [this](rdma_cm_id* id, bool passive) { make_qp(id, passive); };
  }
  // The active end's has the ibv_wr_*() calls.
  MakeQp extended(uint64_t ops) {
    return [this, ops](rdma_cm_id* id, bool passive) {
      if (passive) return make_qp(id, passive);
      const ibv_qp_init_attr common = init_attr(passive);
      ibv_qp_init_attr_ex init{};
      std::memcpy(&init, &common, sizeof common);
      init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
      init.pd = pd_;
      init.send_ops_flags = ops;
      EXPECT_EQ(rdma_create_qp_ex(id, &init), 0) << strerror(errno);
      granted_ = init.cap;
    };
  }
  // A Write of nothing.
  int write(ibv_qp* qp, uint64_t wr_id) {
    ibv_send_wr wr{}, *bad;
    wr.wr_id = wr_id;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    return ibv_post_send(qp, &wr, &bad);
  }
  ibv_async_event next_async_event() {
    ibv_async_event event{};
    EXPECT_EQ(ibv_get_async_event(context_, &event), 0);
    return event;
  }
  static ibv_qp_state state_of(ibv_qp* qp) {
    ibv_qp_attr attr;
    ibv_qp_init_attr init;
    EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
  }
  void receive(ibv_qp* qp, uint64_t wr_id, size_t offset, uint32_t length) {
    EXPECT_EQ(post_recv(qp, wr_id, ibv_sge{their_address(offset), length, peer_mr_->lkey}), 0);
  }
  uint64_t our_address(size_t offset) { return reinterpret_cast<uintptr_t>(ours_) + offset; }
  uint64_t their_address(size_t offset) { return reinterpret_cast<uintptr_t>(theirs_) + offset; }

  std::unique_ptr<Connector> connector_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq *cq_ = nullptr, *peer_cq_ = nullptr;
  // On pages of their own: after ibv_fork_init() a child does not have the pages of a region.
  struct Pages {
    void operator()(char* pages) const { munmap(pages, 2 * kSize); }
  };
  std::unique_ptr<char, Pages> pages_{static_cast<char*>(
      mmap(nullptr, 2 * kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))};
  char *const ours_ = pages_.get(), *const theirs_ = ours_ + kSize;
  ibv_mr *mr_ = nullptr, *peer_mr_ = nullptr;
  ibv_qp_cap granted_{};
};

}  // namespace uiw::provider_test
