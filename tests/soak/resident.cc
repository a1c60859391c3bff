// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A process that lives as long as the whole run: some of its regions and connections stay, others
// come and go beside them by the thousand. Both ends of its connections are here.
#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "common.h"

namespace uiw::soak {

namespace {

volatile sig_atomic_t told_to_stop = 0;

constexpr uint32_t kStaying = 3;  // connections, with their regions; and as many regions besides
// Each turn registers as many regions as this, one after another, and makes one connection.
constexpr uint32_t kRegistrations = 100;
constexpr uint32_t kFewestTurns = 200;  // however short the run

class Resident {
 public:
  Resident(Stats& stats, uint64_t seed) : stats_(stats), random_(seed) {
    channel_ = rdma_create_event_channel();
    if (!channel_) fail("rdma_create_event_channel: %s", strerror(errno));
    sockaddr_in any = loopback(0);
    REQUIRE(rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_TCP) == 0);
    if (rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&any)) != 0 ||
        rdma_listen(listener_, 8) != 0)
      fail("rdma_listen: %s", strerror(errno));
    pd_ = ibv_alloc_pd(listener_->verbs);
    REQUIRE(pd_);
  }

  int run() {
    std::vector<Pair> staying;
    std::vector<ibv_mr*> regions;
    for (uint32_t i = 0; i < kStaying; ++i) {
      staying.push_back(connect());
      regions.push_back(region());
    }
    for (uint32_t turn = 0; turn < kFewestTurns || !told_to_stop; ++turn) {
      alarm(kTurn);
      if (turn >= kFewestTurns) usleep(10'000);  // leaves the processors to the rounds
      for (uint32_t i = 0; i < kRegistrations; ++i) {
        REQUIRE(ibv_dereg_mr(region()) == 0);
        ++stats_.registrations;
      }
      Pair coming = connect();
      exchange(coming);
      exchange(staying[turn % kStaying]);
      disconnect(coming);
    }
    for (Pair& pair : staying) {
      exchange(pair);
      disconnect(pair);
    }
    for (ibv_mr* mr : regions) REQUIRE(ibv_dereg_mr(mr) == 0);
    REQUIRE(ibv_dealloc_pd(pd_) == 0 && rdma_destroy_id(listener_) == 0);
    rdma_destroy_event_channel(channel_);
    return 0;
  }

 private:
  static constexpr unsigned kTurn = 120;  // seconds after which a turn must be over
  struct Pair {
    std::unique_ptr<Endpoint> from, to;
  };

  static sockaddr_in loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = port;
    return address;
  }
  ibv_mr* region() {
    const int local = IBV_ACCESS_LOCAL_WRITE;  // a variable: see Endpoint
    ibv_mr* mr = ibv_reg_mr(pd_, memory_, sizeof memory_, local);
    if (!mr) fail("ibv_reg_mr: %s", strerror(errno));
    return mr;
  }
  rdma_cm_id* expect(rdma_cm_event_type wanted) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel_, &event) != 0) fail("rdma_get_cm_event: %s", strerror(errno));
    if (event->event != wanted)
      fail("resident: event %s instead of %s", rdma_event_str(event->event),
           rdma_event_str(wanted));
    rdma_cm_id* id = event->id;
    rdma_ack_cm_event(event);
    return id;
  }
  Pair connect() {
    rdma_cm_id* id = nullptr;
    sockaddr_in to = loopback(rdma_get_src_port(listener_));
    REQUIRE(rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP) == 0);
    REQUIRE(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 5000) == 0);
    expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    REQUIRE(rdma_resolve_route(id, 5000) == 0);
    expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    const uint64_t seed = random_.next();
    Pair pair;
    pair.from = std::make_unique<Endpoint>(stats_, id, seed);
    rdma_conn_param param{};
    param.responder_resources = param.initiator_depth = 4;
    REQUIRE(rdma_connect(id, &param) == 0);
    pair.to = std::make_unique<Endpoint>(stats_, expect(RDMA_CM_EVENT_CONNECT_REQUEST), seed);
    REQUIRE(rdma_accept(pair.to->id, &param) == 0);
    expect(RDMA_CM_EVENT_ESTABLISHED);
    expect(RDMA_CM_EVENT_ESTABLISHED);
    ++stats_.connections;
    return pair;
  }
  // A Send there, compared.
  void exchange(Pair& pair) {
    const uint64_t number = ++number_;
    const uint32_t size = 1 + random_.below(kMessage);
    fill(pair.from->send_memory.data(), size, pair.from->seed, number);
    ibv_sge sge = {reinterpret_cast<uint64_t>(pair.from->send_memory.data()), size,
                   pair.from->send_mr->lkey};
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    REQUIRE(pair.from->post(wr, 0));
    ++stats_.sends;
    uint64_t index = 0;
    const uint32_t got = completed(*pair.to, Endpoint::kReceived, index);
    REQUIRE(got == size);
    compare(stats_, pair.to->receive_buffer(index), size, pair.to->seed, number, "Send");
    pair.to->post_receive(static_cast<uint32_t>(index));
    completed(*pair.from, Endpoint::kSent, index);
  }
  // Waits for the next completion, which has to be of that kind. Returns its byte_len.
  static uint32_t completed(Endpoint& end, Endpoint::Kind wanted, uint64_t& tag) {
    ibv_wc wc{};
    Endpoint::Kind kind;
    while ((kind = end.poll(wc, tag)) == Endpoint::kNothing) usleep(20);
    if (kind != wanted) fail("resident: a completion with status %s", ibv_wc_status_str(wc.status));
    return wc.byte_len;
  }
  void disconnect(Pair& pair) {
    REQUIRE(rdma_disconnect(pair.from->id) == 0);
    expect(RDMA_CM_EVENT_DISCONNECTED);
    expect(RDMA_CM_EVENT_DISCONNECTED);
    for (std::unique_ptr<Endpoint>* end : {&pair.from, &pair.to}) {
      rdma_cm_id* id = (*end)->id;
      end->reset();
      REQUIRE(rdma_destroy_id(id) == 0);
    }
  }

  Stats& stats_;
  Random random_;
  uint64_t number_ = 0;
  uint8_t memory_[4096] = {};
  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* listener_ = nullptr;
  ibv_pd* pd_ = nullptr;
};

}  // namespace

int reside(Stats& stats, uint64_t seed) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody else would tell it to stop
  struct sigaction stop {};
  stop.sa_handler = [](int) { told_to_stop = 1; };
  stop.sa_flags = SA_RESTART;
  REQUIRE(sigaction(SIGTERM, &stop, nullptr) == 0);
  return Resident(stats, seed).run();
}

}  // namespace uiw::soak
