// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The accepting side: echoes every Send after comparing it and what was written before it, until
// the peers are gone in whatever way they choose.
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

#include "common.h"

namespace uiw::soak {

namespace {

volatile sig_atomic_t told_to_stop = 0;

// A connection as its server sees it.
class Guest {
 public:
  Guest(Stats& stats, rdma_cm_id* id, uint64_t seed) : end_(stats, id, seed) { open_window(); }
  ~Guest() {
    if (window_) REQUIRE(ibv_dealloc_mw(window_) == 0);
  }

  Offer offer() const {
    return {end_.seed, reinterpret_cast<uint64_t>(end_.memory.data()), end_.mr->rkey,
            window_ ? window_key_ : 0};
  }
  // Once the queue pair takes sends, and before the peer can know the window.
  void bind_window() {
    if (!window_) return;
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw.mw = window_;
    wr.bind_mw.rkey = window_key_;
    wr.bind_mw.bind_info = {.mr = end_.mr,
                            .addr = reinterpret_cast<uint64_t>(end_.memory.data()),
                            .length = kMemory,
                            .mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    REQUIRE(end_.post(wr, kSlots));
  }

  // Takes what completed. False when there was nothing.
  bool work() {
    ibv_wc wc;
    uint64_t tag;
    switch (end_.poll(wc, tag)) {
      case Endpoint::kNothing:
        return false;
      case Endpoint::kSent:
        return true;
      case Endpoint::kFailed:
        // Nobody here does anything wrong: all that can happen is the connection's end.
        if (wc.status != IBV_WC_WR_FLUSH_ERR)
          fail("server: a completion with status %s", ibv_wc_status_str(wc.status));
        return true;
      default:
        break;
    }
    const auto index = static_cast<uint32_t>(tag);
    if (wc.wc_flags & IBV_WC_WITH_IMM) {
      ++end_.stats.immediates;
      REQUIRE((ntohl(wc.imm_data) & ~(kSlots - 1)) == kImmediate);
      answer({kEcho, ntohl(wc.imm_data) & (kSlots - 1), 0, 0, sizeof(Message)});
    } else {
      receive(end_.receive_buffer(index), wc);
    }
    if (!leaving_) end_.post_receive(index);
    return true;
  }
  void leave() { leaving_ = true; }
  bool done() { return leaving_ && end_.all_back(); }
  rdma_cm_id* id() const { return end_.id; }

 private:
  void open_window() {
    if (!end_.abilities.windows) return;
    window_ = ibv_alloc_mw(end_.pd, IBV_MW_TYPE_2);
    if (!window_) fail("ibv_alloc_mw: %s", strerror(errno));
    window_key_ = ibv_inc_rkey(window_->rkey);
  }

  void receive(const uint8_t* octets, const ibv_wc& wc) {
    Message message;
    REQUIRE(wc.byte_len >= sizeof message);
    std::memcpy(&message, octets, sizeof message);
    REQUIRE(message.size == wc.byte_len && message.slot < kSlots);
    compare(end_.stats, octets + sizeof message, message.size - sizeof message, end_.seed,
            message.number, "Send");
    // RFC 5040 5.5(10): with a Send delivered, what was written before it is there.
    if (message.kind == kCheck)
      compare(end_.stats, &end_.memory[message.slot * kPiece], message.written,
              end_.seed ^ kWritten, message.number, "Write before a Send");
    if (message.kind == kBye && window_) {
      REQUIRE((wc.wc_flags & IBV_WC_WITH_INV) && wc.invalidated_rkey == window_key_);
      ++end_.stats.invalidations;
    }
    message.kind = kEcho;
    answer(message);
  }
  void answer(const Message& message) {
    // The peer uses a slot again when it has its answer. That may be before this side hears of it;
    // but the answer before that one is with TCP by then.
    bool& second = second_[message.slot];
    second = !second;
    uint8_t* octets = &end_.send_memory[(message.slot + second * kSlots) * kMessage];
    std::memcpy(octets, &message, sizeof message);
    fill(octets + sizeof message, message.size - static_cast<uint32_t>(sizeof message),
         end_.seed ^ kEchoed, message.number);
    ibv_sge sge = {reinterpret_cast<uint64_t>(octets), message.size, end_.send_mr->lkey};
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    REQUIRE(end_.post(wr, message.slot));
  }

  Endpoint end_;
  ibv_mw* window_ = nullptr;
  uint32_t window_key_ = 0;
  bool second_[kSlots] = {};
  bool leaving_ = false;
};

class Server {
 public:
  explicit Server(const Round& round) : round_(round), deadly_(round.seed) {
    channel_ = rdma_create_event_channel();
    if (!channel_) fail("rdma_create_event_channel: %s", strerror(errno));
    fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_TCP) == 0);
    if (rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&address)) != 0 ||
        rdma_listen(listener_, 64) != 0)
      fail("rdma_listen: %s", strerror(errno));
    round.stats->port = ntohs(rdma_get_src_port(listener_));
    lives_ = round.server_dies ? 50 + deadly_.below(3000) : 0;
  }

  int run() {
    while (!told_to_stop || !guests_.empty()) {
      bool any = take_event();
      for (auto it = guests_.begin(); it != guests_.end();) {
        Guest& guest = *it->second;
        while (guest.work()) {
          any = true;
          if (lives_ && --lives_ == 0) {
            ++round_.stats->kills;
            raise(SIGKILL);
          }
        }
        if (!guest.done()) {
          ++it;
          continue;
        }
        rdma_cm_id* id = guest.id();
        it = guests_.erase(it);
        REQUIRE(rdma_destroy_id(id) == 0);
      }
      if (!any) {
        pollfd polled = {channel_->fd, POLLIN, 0};
        ::poll(&polled, 1, 1);
      }
    }
    REQUIRE(rdma_destroy_id(listener_) == 0);
    rdma_destroy_event_channel(channel_);
    return 0;
  }

 private:
  bool take_event() {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel_, &event) != 0) {
      REQUIRE(errno == EAGAIN);
      return false;
    }
    rdma_cm_id* id = event->id;
    switch (event->event) {
      case RDMA_CM_EVENT_CONNECT_REQUEST: {
        Wish wish;
        REQUIRE(event->param.conn.private_data_len >= sizeof wish);
        std::memcpy(&wish, event->param.conn.private_data, sizeof wish);
        rdma_ack_cm_event(event);
        admit(id, wish);
        return true;
      }
      case RDMA_CM_EVENT_ESTABLISHED:
        break;
      case RDMA_CM_EVENT_DISCONNECTED:
        rdma_disconnect(id);
        gone(id);
        break;
      case RDMA_CM_EVENT_CONNECT_ERROR:
      case RDMA_CM_EVENT_UNREACHABLE:
      case RDMA_CM_EVENT_REJECTED:
        gone(id);
        break;
      default:
        fail("server: event %s", rdma_event_str(event->event));
    }
    rdma_ack_cm_event(event);
    return true;
  }

  void admit(rdma_cm_id* id, const Wish& wish) {
    if (wish.reject) {
      // The peer may have gone meanwhile.
      rdma_reject(id, &wish.seed, sizeof wish.seed);
      REQUIRE(rdma_destroy_id(id) == 0);
      return;
    }
    auto guest = std::make_unique<Guest>(*round_.stats, id, wish.seed);
    const Offer offer = guest->offer();
    rdma_conn_param param{};
    param.private_data = &offer;
    param.private_data_len = sizeof offer;
    param.responder_resources = param.initiator_depth = 8;
    if (rdma_accept(id, &param) != 0) {
      guest.reset();
      REQUIRE(rdma_destroy_id(id) == 0);
      return;
    }
    guest->bind_window();
    guests_[id] = std::move(guest);
  }

  void gone(rdma_cm_id* id) {
    const auto it = guests_.find(id);
    REQUIRE(it != guests_.end());
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    REQUIRE(ibv_modify_qp(id->qp, &attr, IBV_QP_STATE) == 0);
    it->second->leave();
  }

  const Round& round_;
  Random deadly_;
  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* listener_ = nullptr;
  std::map<rdma_cm_id*, std::unique_ptr<Guest>> guests_;
  uint32_t lives_ = 0;  // completions until it kills itself; 0: never
};

}  // namespace

int serve(const Round& round) {
  struct sigaction action {};
  action.sa_handler = [](int) { told_to_stop = 1; };
  sigaction(SIGTERM, &action, nullptr);
  return Server(round).run();
}

}  // namespace uiw::soak
