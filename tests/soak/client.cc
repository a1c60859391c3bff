// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The connecting side: all operations mixed as a seed says, everything compared, and every way to
// leave.
#include <arpa/inet.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "common.h"

namespace uiw::soak {

namespace {

// How a connection ends.
enum class Leave { kOrderly, kDisconnect, kError, kDestroy };

class Caller {
 public:
  // `life`: operations until this process kills itself.
  Caller(const Round& round, uint64_t seed, Leave leave, bool reject, uint64_t& life)
      : round_(round),
        stats_(*round.stats),
        life_(life),
        random_(seed),
        seed_(seed),
        leave_(leave) {
    left_ = leave == Leave::kOrderly ? round.operations : 1 + random_.below(round.operations);
    connect(reject);
  }
  ~Caller() {
    end_.reset();
    REQUIRE(rdma_destroy_id(id_) == 0);
    rdma_destroy_event_channel(channel_);
  }

  bool over() const { return over_; }

  // Goes on as far as possible without waiting; false when nothing happened.
  bool go_on() {
    if (over_) return false;
    bool any = false;
    for (uint32_t slot = 0; slot < kSlots && left_ > 0 && !end_->broken(); ++slot) {
      if (slots_[slot].waits) continue;
      start(slot);
      --left_;
      any = true;
    }
    ibv_wc wc;
    uint64_t tag;
    for (Endpoint::Kind kind; (kind = end_->poll(wc, tag)) != Endpoint::kNothing; any = true) {
      if (kind == Endpoint::kFailed) {
        broken(wc);
      } else if (kind == Endpoint::kReceived) {
        receive(static_cast<uint32_t>(tag), wc);
      } else {
        finish(static_cast<uint32_t>(tag & 0xff), static_cast<Step>(tag >> 8));
      }
    }
    if (lost_) {
      wait_for_the_end();
    } else if (left_ == 0) {
      leave();
    }
    return any;
  }

 private:
  enum Step : uint32_t { kSend, kWrite, kReadBack, kAtomic };
  struct Slot {
    uint32_t waits = 0;  // completions and answers to come
    uint64_t number = 0;
    uint32_t size = 0;
    uint64_t counter = 0;  // what the peer's atomic counter is
    uint64_t added = 0;
  };

  void connect(bool reject) {
    channel_ = rdma_create_event_channel();
    if (!channel_) fail("rdma_create_event_channel: %s", strerror(errno));
    REQUIRE(rdma_create_id(channel_, &id_, nullptr, RDMA_PS_TCP) == 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(stats_.port.load()));
    REQUIRE(rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&address), 5000) == 0);
    REQUIRE(event() == RDMA_CM_EVENT_ADDR_RESOLVED);
    REQUIRE(rdma_resolve_route(id_, 5000) == 0);
    REQUIRE(event() == RDMA_CM_EVENT_ROUTE_RESOLVED);
    end_ = std::make_unique<Endpoint>(stats_, id_, seed_);
    const Wish wish = {seed_, reject};
    rdma_conn_param param{};
    param.private_data = &wish;
    param.private_data_len = sizeof wish;
    param.responder_resources = param.initiator_depth = 8;
    const int error = rdma_connect(id_, &param) != 0 ? errno : 0;
    const rdma_cm_event_type what = error ? RDMA_CM_EVENT_REJECTED : event();
    if (what == RDMA_CM_EVENT_ESTABLISHED) {
      if (reject) fail("a connection that was to be rejected is established");
      REQUIRE(offer_.seed == seed_);
      ++stats_.connections;
      return;
    }
    over_ = true;
    if (reject && what == RDMA_CM_EVENT_REJECTED && offer_.seed == seed_) {
      ++stats_.rejects;
    } else if (!round_.server_dies) {
      fail("connecting ended with %s, %s", rdma_event_str(what), strerror(error));
    }
    // Receives of a queue pair that never had a connection.
    set_error();
    drain();
  }

  // Waits for the next event; the start of its private data goes to offer_.
  rdma_cm_event_type event() {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel_, &event) != 0) fail("rdma_get_cm_event: %s", strerror(errno));
    const rdma_cm_event_type what = event->event;
    const size_t size = event->param.conn.private_data_len;
    if (what == RDMA_CM_EVENT_ESTABLISHED || what == RDMA_CM_EVENT_REJECTED)
      if (event->param.conn.private_data)
        std::memcpy(&offer_, event->param.conn.private_data,
                    size < sizeof offer_ ? size : sizeof offer_);
    rdma_ack_cm_event(event);
    return what;
  }

  uint8_t* source(uint32_t slot) { return &end_->memory[slot * kPiece]; }
  uint8_t* sink(uint32_t slot) { return &end_->memory[kMemory + slot * kPiece]; }
  uint32_t key() {
    return answered_ && offer_.window && random_.one_in(2) ? offer_.window : offer_.rkey;
  }
  uint32_t some_size(uint32_t most) {
    switch (random_.below(4)) {
      case 0:
        return random_.below(64);
      case 1:
        return random_.below(1500);
      default:
        return random_.below(most);
    }
  }

  // One request about `size` octets at `octets`, in as many pieces as the device takes.
  bool post(ibv_wr_opcode opcode, uint32_t slot, Step step, uint8_t* octets, uint32_t size,
            const ibv_mr* mr, uint64_t remote, uint32_t rkey, unsigned flags,
            uint32_t immediate = 0, int* error = nullptr) {
    const uint32_t first = end_->abilities.sges > 1 ? random_.below(size + 1) : size;
    const auto at = reinterpret_cast<uint64_t>(octets);
    ibv_sge list[] = {{at, first, mr->lkey}, {at + first, size - first, mr->lkey}};
    ibv_send_wr wr{};
    wr.opcode = opcode;
    wr.sg_list = list;
    wr.num_sge = end_->abilities.sges > 1 ? 2 : 1;
    wr.send_flags = flags;
    if (size <= 64 && opcode != IBV_WR_RDMA_READ && random_.one_in(2))
      wr.send_flags |= IBV_SEND_INLINE;
    if (opcode == IBV_WR_SEND_WITH_INV) {
      wr.invalidate_rkey = rkey;
    } else {
      wr.wr.rdma.remote_addr = remote;
      wr.wr.rdma.rkey = rkey;
      if (immediate) wr.imm_data = htonl(immediate);
    }
    return end_->post(wr, slot | step << 8, error);
  }

  void start(uint32_t slot) {
    if (--life_ == 0) {
      ++stats_.kills;
      raise(SIGKILL);
    }
    Slot& s = slots_[slot];
    s.number = ++number_;
    s.waits = 0;
    switch (random_.below(end_->abilities.atomics ? 5 : 4)) {
      case 0:
        start_send(slot, kPlain, 0);
        break;
      case 1:
      case 2:
        start_write(slot);
        break;
      case 3:
        start_immediate(slot);
        break;
      default:
        start_atomic(slot);
        break;
    }
  }
  void start_send(uint32_t slot, uint32_t kind, uint32_t written, uint32_t invalidate = 0) {
    Slot& s = slots_[slot];
    uint8_t* octets = &end_->send_memory[slot * kMessage];
    const uint32_t body = some_size(kMessage - sizeof(Message));
    const Message message = {kind, slot, s.number, written,
                             static_cast<uint32_t>(sizeof(Message)) + body};
    std::memcpy(octets, &message, sizeof message);
    fill(octets + sizeof message, body, seed_, s.number);
    unsigned flags = IBV_SEND_SIGNALED;
    if (random_.one_in(4)) flags |= IBV_SEND_SOLICITED;
    REQUIRE(post(invalidate ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND, slot, kSend, octets, message.size,
                 end_->send_mr, 0, invalidate, flags));
    s.waits += 2;
    ++stats_.sends;
  }
  // A Write, and behind it a Read of the same, a Send that has it looked at, or both.
  void start_write(uint32_t slot) {
    Slot& s = slots_[slot];
    s.size = some_size(kPiece);
    fill(source(slot), s.size, seed_ ^ kWritten, s.number);
    const uint64_t remote = offer_.address + slot * kPiece;
    const unsigned how = 1 + random_.below(3);
    const bool silent = random_.one_in(3);
    REQUIRE(post(IBV_WR_RDMA_WRITE, slot, kWrite, source(slot), s.size, end_->mr, remote, key(),
                 silent ? 0 : IBV_SEND_SIGNALED));
    ++stats_.writes;
    if (!silent) ++s.waits;
    if (how & 1) {
      std::memset(sink(slot), 0xee, s.size);
      REQUIRE(post(IBV_WR_RDMA_READ, slot, kReadBack, sink(slot), s.size, end_->mr, remote, key(),
                   IBV_SEND_SIGNALED));
      ++stats_.reads;
      ++s.waits;
    }
    if (how & 2) start_send(slot, kCheck, s.size);
  }
  // A device without it says so when it is posted.
  void start_immediate(uint32_t slot) {
    Slot& s = slots_[slot];
    int error = EINVAL;
    s.size = some_size(kPiece);
    fill(source(slot), s.size, seed_ ^ kWritten, s.number);
    const uint64_t remote = offer_.address + slot * kPiece;
    if (no_immediate_ ||
        !post(IBV_WR_RDMA_WRITE_WITH_IMM, slot, kWrite, source(slot), s.size, end_->mr, remote,
              key(), IBV_SEND_SIGNALED, kImmediate + slot, &error)) {
      no_immediate_ = true;
      start_write(slot);
      return;
    }
    REQUIRE(post(IBV_WR_RDMA_READ, slot, kReadBack, sink(slot), s.size, end_->mr, remote, key(),
                 IBV_SEND_SIGNALED));
    s.waits += 3;  // two completions, and the answer
  }
  void start_atomic(uint32_t slot) {
    Slot& s = slots_[slot];
    ibv_sge sge = {reinterpret_cast<uint64_t>(sink(slot)), 8, end_->mr->lkey};
    ibv_send_wr wr{};
    s.added = random_.next();
    const bool swap = random_.one_in(2);
    wr.opcode = swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.atomic.remote_addr = offer_.address + kCounters + slot * 8;
    wr.wr.atomic.rkey = offer_.rkey;
    wr.wr.atomic.compare_add = swap ? s.counter : s.added;
    wr.wr.atomic.swap = s.counter + s.added;
    REQUIRE(end_->post(wr, slot | kAtomic << 8));
    ++s.waits;
    ++stats_.atomics;
  }

  void finish(uint32_t slot, Step step) {
    Slot& s = slots_[slot];
    REQUIRE(s.waits > 0);
    --s.waits;
    if (step == kReadBack)
      compare(stats_, sink(slot), s.size, seed_ ^ kWritten, s.number, "Read of what was written");
    if (step == kAtomic) {
      uint64_t old;
      std::memcpy(&old, sink(slot), sizeof old);
      REQUIRE(old == s.counter);
      s.counter += s.added;
      stats_.octets += sizeof old;
    }
  }

  void receive(uint32_t index, const ibv_wc& wc) {
    Message message;
    const uint8_t* octets = end_->receive_buffer(index);
    REQUIRE(wc.byte_len >= sizeof message);
    std::memcpy(&message, octets, sizeof message);
    REQUIRE(message.kind == kEcho && message.size == wc.byte_len && message.slot < kSlots);
    Slot& s = slots_[message.slot];
    REQUIRE(s.waits > 0 && (message.number == s.number || message.number == 0));
    --s.waits;
    compare(stats_, octets + sizeof message, message.size - static_cast<uint32_t>(sizeof message),
            seed_ ^ kEchoed, message.number, "answer");
    answered_ = true;
    end_->post_receive(index);
  }

  bool idle() const {
    for (const Slot& slot : slots_)
      if (slot.waits) return false;
    return true;
  }

  void broken(const ibv_wc& wc) {
    lost_ = true;
    if (wc.status != IBV_WC_WR_FLUSH_ERR && !round_.server_dies)
      fail("client: a completion with status %s", ibv_wc_status_str(wc.status));
    if (!round_.server_dies && !leaving_) fail("client: the connection ended by itself");
  }

  void leave() {
    switch (leave_) {
      case Leave::kOrderly:
        if (!idle()) return;
        if (!said_bye_) {
          said_bye_ = true;
          slots_[0].number = ++number_;
          // The window is known to be bound after the first answer.
          start_send(0, offer_.window && answered_ ? kBye : kPlain, 0,
                     answered_ ? offer_.window : 0);
          return;
        }
        end_with_disconnect();
        return;
      case Leave::kDisconnect:
        ++stats_.cuts;
        end_with_disconnect();
        return;
      case Leave::kError:
        ++stats_.cuts;
        leaving_ = true;
        set_error();
        wait_for_the_end();
        return;
      case Leave::kDestroy:
        ++stats_.cuts;
        over_ = true;  // the destructor does it, with everything outstanding
        return;
    }
  }
  void end_with_disconnect() {
    leaving_ = true;
    rdma_disconnect(id_);
    wait_for_the_end();
  }
  void wait_for_the_end() {
    const rdma_cm_event_type what = event();
    if (what != RDMA_CM_EVENT_DISCONNECTED) fail("client: event %s", rdma_event_str(what));
    set_error();
    drain();
    over_ = true;
  }
  void set_error() {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    REQUIRE(ibv_modify_qp(id_->qp, &attr, IBV_QP_STATE) == 0);
  }
  // Until every work request has come back: a lost one is a hang, which the alarm clock ends.
  void drain() {
    ibv_wc wc;
    uint64_t tag;
    while (!end_->all_back()) {
      if (end_->poll(wc, tag) == Endpoint::kNothing) {
        end_->forget_silent();
        usleep(100);
      }
    }
    REQUIRE(end_->poll(wc, tag) == Endpoint::kNothing);
  }

  const Round& round_;
  Stats& stats_;
  uint64_t& life_;
  Random random_;
  const uint64_t seed_;
  const Leave leave_;
  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* id_ = nullptr;
  std::unique_ptr<Endpoint> end_;
  Offer offer_{};
  Slot slots_[kSlots];
  uint64_t number_ = 0;
  uint32_t left_ = 0;
  bool over_ = false, leaving_ = false, lost_ = false, said_bye_ = false, answered_ = false,
       no_immediate_ = false;
};

}  // namespace

int ask(const Round& round, uint32_t client) {
  constexpr uint32_t kTogether = 4;
  Random random(round.seed + client * 7919);
  const bool dies = random.one_in(4);
  uint64_t life = dies ? 1 + random.below(round.connections * round.operations / 2) : ~uint64_t{0};
  for (uint32_t done = 0; done < round.connections;) {
    std::vector<std::unique_ptr<Caller>> callers;
    for (; callers.size() < kTogether && done < round.connections; ++done) {
      static constexpr Leave kWays[] = {Leave::kOrderly, Leave::kOrderly,    Leave::kOrderly,
                                        Leave::kError,   Leave::kDisconnect, Leave::kDestroy};
      callers.push_back(std::make_unique<Caller>(round, random.next(), kWays[random.below(6)],
                                                 random.one_in(10), life));
    }
    for (bool busy = true; busy;) {
      busy = false;
      bool any = false;
      for (auto& caller : callers) {
        any = caller->go_on() || any;
        busy = busy || !caller->over();
      }
      if (!any) usleep(20);
    }
  }
  return 0;
}

}  // namespace uiw::soak
