// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Protocol machines joined by pipes that split, join, hold back and damage octets as a seed says.
// Time passes only when nothing else can happen. What session/ decides at the end of a connection,
// SimEnd decides here in the plainest way.
#include <algorithm>
#include <cerrno>
#include <limits>
#include <random>

#include "cm/startup_io.h"
#include "sim/world.h"
#include "support/landing.h"
#include "support/post.h"
#include "support/wiring.h"

namespace uiw::test {

namespace {

using Time = int64_t;
constexpr Time kNever = std::numeric_limits<Time>::max();
constexpr Time kReceiveWait = 2'000, kCloseWait = 5'000;

struct Pipe {
  std::deque<uint8_t> octets;
  size_t window = 1;
  bool fin = false, fin_taken = false;
  bool reset = false, reset_taken = false;  // RST is on its way, or has arrived
};

class SimEnd final : public End {
 public:
  SimEnd(mem::Table& table, uint32_t number, const EndOptions& wanted, const mpa::Agreement& agreed,
         std::mt19937& random, const Time& now, Pipe& in, Pipe& out)
      : End(table, number, wanted),
        in_(in),
        out_(out),
        random_(random),
        now_(now),
        sends_(qp::SendQueue::create(wanted.depth, queue::kMaxSge, 512)),
        own_receives_(queue::ReceiveQueue::create(wanted.receives, queue::kMaxSge)) {
    qp::Shared& shared = c_.shared;
    sources_ =
        wire(shared, number, kPd, table, *sends_, wanted.srq ? *wanted.srq : *own_receives_,
             *send_cq, *recv_cq, wanted.srq ? SourceKind::kSharedQueue : SourceKind::kOwnQueue);
    shared.first_msn = wanted.first_msn;
    shared.long_fpdus = random() % 4 != 0;
    shared.stagger = random() % 2 != 0;
    agreement = agreed;
    EXPECT_TRUE(c_.start(agreement, emss(), {random(), random()}, true));
  }

  int post_send(ibv_send_wr* wr, ibv_send_wr** bad) override {
    int error = 0;
    while (wr && error == 0) {
      error = test::post(*sends_, *wr);
      if (error == 0) wr = wr->next;
    }
    if (error) *bad = wr;
    kicked_ = true;
    if (error_) c_.tx.flush(c_.shared);
    return error;
  }
  int post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad) override {
    const int error = own_receives_->post(wr);
    if (error) *bad = wr;
    if (error_) flush_receives();
    return error;
  }
  void disconnect() override {
    if (draining_ || error_) return;
    draining_ = kicked_ = true;
    c_.tx.stop_starting();
  }
  void to_error() override { begin_error({}, std::nullopt, 0); }
  void destroy() override {
    gone_ = true;
    c_.tx.drop_pieces();
    memory.end_stream(qp_num);
    if (!fin_sent_) out_.fin = true;
  }
  void reset_connection() override {
    out_.reset = true;
    if (!gone_ && !over_) broken(ECONNRESET);
  }
  void half_close() override { out_.fin = true; }

  // --- what can happen; each returns false when it cannot ---
  bool transmit() {
    if (gone_ || over_ || !(kicked_ || (blocked_ && out_.octets.size() < out_.window)))
      return false;
    kicked_ = blocked_ = false;
    pump();
    return true;
  }
  bool arrive() {
    const bool listens = !paused_ || gone_ || over_;
    if (in_.reset && !in_.reset_taken && in_.octets.empty()) {
      in_.reset_taken = true;
      if (!gone_ && !over_) broken(ECONNRESET);
      return true;
    }
    if (!listens) return resume_if_posted();
    if (!in_.octets.empty()) {
      const size_t size = std::min<size_t>(in_.octets.size(), piece());
      const Octets octets(in_.octets.begin(),
                          in_.octets.begin() + static_cast<std::ptrdiff_t>(size));
      in_.octets.erase(in_.octets.begin(), in_.octets.begin() + static_cast<std::ptrdiff_t>(size));
      if (!gone_ && !over_ && !error_) handle(receive(octets));
      return true;
    }
    if (in_.fin && !in_.fin_taken) {
      in_.fin_taken = true;
      if (!gone_ && !over_) peer_closed();
      return true;
    }
    return false;
  }
  Time deadline() const {
    return gone_ || over_ ? kNever : std::min(receive_deadline_, close_deadline_);
  }
  void expire() {
    if (receive_deadline_ <= now_) {
      receive_deadline_ = kNever;
      handle(c_.rx.give_up_waiting());
    }
    if (close_deadline_ <= now_ && !over_) {
      close_deadline_ = kNever;
      begin_error({}, std::nullopt, ETIMEDOUT);
      finish();
    }
  }

 private:
  uint32_t emss() {
    constexpr uint32_t kChoices[] = {100, 1460, 8948, 65483};
    return kChoices[random_() % 4];
  }
  // As a driver does: now and then straight to where the octets belong.
  qp::RxStatus receive(core::Bytes octets) {
    return random_() % 2 == 0 ? receive_to_place(c_.rx, octets) : c_.rx.on_octets(octets);
  }
  size_t piece() {
    constexpr uint32_t kChoices[] = {1, 3, 100, 1460, 10000, 100000};
    return 1 + random_() % kChoices[random_() % 6];
  }

  void pump() {
    qp::Tx& tx = c_.tx;
    if (!error_) tx.retire();
    // As a driver does while its queue is polled; a later turn takes what was left.
    tx.coalesce(!draining_ && random_() % 2 == 0);
    while (tx.fill()) {
      if (options.meanwhile) options.meanwhile();
      if (fin_sent_) {  // TCP takes nothing behind a FIN: EPIPE
        EXPECT_TRUE(tx.release_regions());
        return;
      }
      size_t room = out_.window - std::min(out_.window, out_.octets.size());
      if (random_() % 4 == 0) room = std::min(room, piece());
      if (room == 0) {
        blocked_ = true;
        // As when somebody deregisters.
        if (random_() % 2 == 0) EXPECT_TRUE(tx.release_regions());
        return;
      }
      size_t taken = 0;
      for (const iovec& part : tx.pieces()) {
        const size_t size = std::min(room - taken, part.iov_len);
        const auto* from = static_cast<const uint8_t*>(part.iov_base);
        out_.octets.insert(out_.octets.end(), from, from + size);
        taken += size;
      }
      tx.consume(taken);
      if (!error_) tx.retire();
      if (random_() % 16 == 0) tx.set_emss(emss());
      if (random_() % 4 == 0) {  // others may do something now
        kicked_ = true;
        return;
      }
    }
    if (tx.left_reads()) kicked_ = true;
    if (tx.fault().raised && !error_) {
      const qp::TxFault fault = tx.fault();
      qp::Tx::Cause cause;
      cause.send = &fault.terminate;
      begin_error(cause, fault.local_access ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_FATAL, EIO);
      return;
    }
    const bool due =
        error_ ? !tx.pending() : (draining_ && tx.idle()) || (peer_closed_ && !tx.owes_octets());
    if (due && !fin_sent_) {
      fin_sent_ = out_.fin = true;
      if (error_) {
        finish();
      } else if (peer_closed_) {
        begin_error({}, std::nullopt, 0);
      } else {
        close_deadline_ = now_ + kCloseWait;
      }
    }
  }

  void handle(qp::RxStatus status) {
    if (c_.rx.take_limit_reached()) notice({.kind = Notice::kSrqLimit});
    if (c_.rx.take_news()) kicked_ = true;
    switch (status) {
      case qp::RxStatus::kOk:
        if (paused_) {
          paused_ = false;
          receive_deadline_ = kNever;
        }
        return;
      case qp::RxStatus::kWantReceive:
        if (c_.rx.take_progress() || !paused_) receive_deadline_ = now_ + kReceiveWait;
        paused_ = true;
        return;
      case qp::RxStatus::kWantSender:
        std::abort();  // one thread does all
      case qp::RxStatus::kFault: {
        const qp::RxFault fault = c_.rx.fault();
        qp::Tx::Cause cause;
        cause.send = &fault.terminate;
        cause.failed_slot = fault.failed_slot;
        cause.failed_status = fault.failed_status;
        begin_error(cause, fault.event, EPROTO);
        return;
      }
      case qp::RxStatus::kTerminated: {
        const rdmap::Terminate terminate = c_.rx.terminate();
        qp::Tx::Cause cause;
        cause.received = &terminate;
        begin_error(cause, IBV_EVENT_QP_FATAL, EPROTO);
        return;
      }
    }
  }

  bool resume_if_posted() {
    if (c_.shared.receive_queue->empty() || error_) return false;
    handle(c_.rx.resume());
    return true;
  }

  void peer_closed() {
    peer_closed_ = true;
    if (error_) return;
    if (!c_.rx.at_boundary()) {
      begin_error({}, IBV_EVENT_QP_FATAL, ECONNRESET);
    } else if (fin_sent_) {
      begin_error({}, std::nullopt, 0);
      finish();
    } else {
      c_.tx.stop_starting_now();
      close_deadline_ = now_ + kCloseWait;
      kicked_ = true;
    }
  }

  void broken(int error) {
    const bool closing = peer_closed_ || fin_sent_;
    begin_error({}, closing ? std::nullopt : std::optional(IBV_EVENT_QP_FATAL),
                closing ? 0 : error);
    finish();
  }

  void begin_error(const qp::Tx::Cause& cause, std::optional<ibv_event_type> event, int error) {
    if (error_) return;
    error_ = kicked_ = true;
    end_error_ = error;
    receive_deadline_ = kNever;
    c_.rx.fail_receive(IBV_WC_WR_FLUSH_ERR);
    flush_receives();
    const bool blamed = c_.tx.abandon(cause);
    if (event && !(cause.received && blamed)) notice({.kind = Notice::kAsync, .event = *event});
    if (options.srq) notice({.kind = Notice::kAsync, .event = IBV_EVENT_QP_LAST_WQE_REACHED});
    if (fin_sent_)
      finish();
    else
      close_deadline_ = now_ + kCloseWait;
  }

  void finish() {
    if (over_) return;
    over_ = true;
    if (!fin_sent_) out_.fin = fin_sent_ = true;
    notice({.kind = Notice::kEnded, .error = end_error_});
  }

  void flush_receives() {
    if (options.srq) return;
    queue::Receive receive;
    bool below;
    while (own_receives_->take(receive, below)) {
      ibv_wc wc{};
      wc.wr_id = receive.wr_id;
      wc.status = IBV_WC_WR_FLUSH_ERR;
      wc.opcode = IBV_WC_RECV;
      wc.qp_num = qp_num;
      recv_cq->push({wc, &sources_->recv, receive.frees}, true);
    }
  }

  Pipe& in_;
  Pipe& out_;
  std::mt19937& random_;
  const Time& now_;
  std::unique_ptr<qp::SendQueue> sends_;
  std::unique_ptr<queue::ReceiveQueue> own_receives_;
  std::unique_ptr<Sources> sources_;
  qp::Connection c_;
  Time receive_deadline_ = kNever, close_deadline_ = kNever;
  int end_error_ = 0;
  bool kicked_ = true, blocked_ = false, paused_ = false;
  bool draining_ = false, fin_sent_ = false, peer_closed_ = false;
  bool error_ = false, over_ = false, gone_ = false;
};

class SimWorld final : public World {
 public:
  explicit SimWorld(const Medium& medium) : medium_(medium), random_(medium.seed) {}

  std::pair<End*, End*> connect(EndOptions first, EndOptions second) override {
    apply(medium_, first, second);
    return connect(first, agreement_of(first, true), second, agreement_of(second, false));
  }

  std::pair<End*, End*> start_up(const core::Settings& first,
                                 const core::Settings& second) override {
    const EndOptions options;
    cm::ConnParam param;
    param.responder_resources = static_cast<uint8_t>(options.ird);
    param.initiator_depth = static_cast<uint8_t>(options.ord);
    const mpa::Wishes active = cm::wishes_for(first, false, param),
                      passive = cm::wishes_for(second, false, param);
    const mpa::StartupFrame request = over_the_wire(mpa::make_request(active));
    mpa::Agreement at_first, at_second;
    const mpa::StartupFrame reply = over_the_wire(mpa::make_reply(passive, request, at_second));
    core::TermCode code{};
    EXPECT_EQ(mpa::judge_reply(active, request, reply, at_first, code),
              mpa::ReplyVerdict::kAccepted);
    return connect(options, at_first, options, at_second);
  }

  bool run_until(const std::function<bool()>& done) override {
    while (!done()) {
      if (!something() && !pass_time()) return done();
    }
    return true;
  }
  void settle() override {
    while (something()) {
    }
  }
  bool can_corrupt() const override { return medium_.crc; }
  void corrupt_once() override {
    std::deque<uint8_t>& octets = links_.back()->pipes[0].octets;
    if (octets.empty()) return;
    octets[random_() % octets.size()] ^= static_cast<uint8_t>(1 << random_() % 8);
  }

 private:
  static mpa::StartupFrame over_the_wire(const mpa::StartupFrame& frame) {
    uint8_t octets[mpa::kMaxStartupFrame];
    uint32_t consumed = 0;
    mpa::StartupFrame out;
    EXPECT_EQ(mpa::parse({octets, mpa::encode(octets, frame)}, frame.kind, out, consumed),
              mpa::ParseStatus::kComplete);
    return out;
  }
  std::pair<End*, End*> connect(const EndOptions& first, const mpa::Agreement& at_first,
                                const EndOptions& second, const mpa::Agreement& at_second) {
    links_.push_back(std::make_unique<Link>());
    Link& link = *links_.back();
    constexpr size_t kWindows[] = {200, 4096, 20000, 65536, 1 << 20};
    for (Pipe& pipe : link.pipes) pipe.window = kWindows[random_() % 5];
    link.first = std::make_unique<SimEnd>(first_memory, ++qp_num_, first, at_first, random_, now_,
                                          link.pipes[1], link.pipes[0]);
    link.second = std::make_unique<SimEnd>(second_memory, ++qp_num_, second, at_second, random_,
                                           now_, link.pipes[0], link.pipes[1]);
    return {link.first.get(), link.second.get()};
  }

  struct Link {
    Pipe pipes[2];  // to the second end, to the first
    std::unique_ptr<SimEnd> first, second;
  };

  // One thing, chosen by the seed. False when nothing can happen without time passing.
  bool something() {
    const size_t count = links_.size() * 4, start = random_() % count;
    for (size_t i = 0; i < count; ++i) {
      const size_t which = (start + i) % count;
      Link& link = *links_[which / 4];
      SimEnd& end = which % 2 ? *link.second : *link.first;
      if (which % 4 < 2 ? end.transmit() : end.arrive()) return true;
    }
    return false;
  }
  bool pass_time() {
    Time next = kNever;
    for (const auto& link : links_)
      next = std::min({next, link->first->deadline(), link->second->deadline()});
    if (next == kNever) return false;
    now_ = next;
    for (const auto& link : links_) {
      if (link->first->deadline() <= now_) link->first->expire();
      if (link->second->deadline() <= now_) link->second->expire();
    }
    return true;
  }

  const Medium medium_;
  std::mt19937 random_;
  Time now_ = 0;
  std::vector<std::unique_ptr<Link>> links_;
  uint32_t qp_num_ = 100;
};

}  // namespace

std::unique_ptr<World> create_sim_world(const Medium& medium) {
  return std::make_unique<SimWorld>(medium);
}

}  // namespace uiw::test
