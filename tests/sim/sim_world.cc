// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Queue pairs, engines and connections whose threads and bytes go on by turns that a seed chooses:
// also in the middle of each other's system calls. Time passes by what is done, and jumps to the
// next deadline when nothing else can happen.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "cm/startup_io.h"
#include "sim/media.h"
#include "sim/queue_pair_end.h"
#include "sim/sim_engine.h"
#include "sim/sim_kernel.h"

namespace uiw::test {

namespace {

// How long nothing may happen until nothing will: longer than every time-out of the suite.
constexpr core::Nanoseconds kPatience = 300 * core::kSecond;

class SimEnd final : public QueuePairEnd {
 public:
  SimEnd(Kernel& kernel, engine::Engine& engine, engine::Engine& making, mem::Table& table,
         uint32_t number, const EndOptions& wanted)
      : QueuePairEnd(engine, making, table, number, wanted), kernel_(kernel) {
    qp::Shared& shared = session::InsideQueuePair::shared(*qp_);
    shared.first_msn = wanted.first_msn;
    shared.long_fpdus = !kernel.by_chance(4);
    shared.stagger = kernel.by_chance(2);
  }
  ~SimEnd() override { destroy(); }

  void reset_connection() override { kernel_.reset(fd_); }
  void half_close() override { kernel_.half_close(fd_); }
  int fd() const { return fd_; }

  // Nothing can happen before time passes. What waits then has somebody who comes for it.
  void expect_nothing_forgotten() {
    if (!qp_) return;
    const session::State& state = session::InsideQueuePair::state(*qp_);
    if (!state.pollers) {
      EXPECT_EQ(state.waits_since(), UINT64_MAX) << "deferred, and nobody polls";
      EXPECT_EQ(state.waiting_acknowledgements.waits_since(), UINT64_MAX)
          << "left, and nobody polls";
      EXPECT_FALSE(state.has_unsent()) << "left by a full socket, and nobody polls";
    }
    EXPECT_FALSE(state.receiver.was_stopped()) << "by a poller, and the engine does not come";
    EXPECT_EQ(state.doorbell.load(), 0u) << "and the engine does not come";
    if (state.life.takes_input() && state.receiver.is_settled())
      EXPECT_NE(state.life.inbound, session::Inbound::kFinWaits) << "behind nothing";
  }

 private:
  Kernel& kernel_;
};

class SimWorld final : public World {
 public:
  explicit SimWorld(const Medium& medium)
      : medium_(medium), kernel_(medium.seed), polls_eagerly_(kernel_.by_chance(2)) {
    for (auto& engine : engines_) engine = std::move(*engine::Engine::start());
    kernel_.meanwhile = [this] {
      if (nested_) return;
      nested_ = true;
      // Others may get far while a thread is in the kernel.
      while (something() && !kernel_.by_chance(4)) {
      }
      nested_ = false;
    };
  }
  ~SimWorld() override {
    kernel_.meanwhile = nullptr;
    ends_.clear();
    for (auto& engine : engines_) engine.reset();
  }

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
    // Turns alone are no progress: timers and watches go on for ever.
    core::Nanoseconds quiet_since = kernel_.now();
    for (uint64_t events = kernel_.events(); !done();) {
      const bool any = something();
      if (std::exchange(events, kernel_.events()) != events) quiet_since = kernel_.now();
      if (kernel_.now() - quiet_since > kPatience || (!any && !pass_time())) return done();
    }
    return true;
  }
  void settle() override {
    while (something()) {
    }
  }
  bool can_corrupt() const override { return medium_.crc; }
  void corrupt_once() override { kernel_.corrupt_incoming(ends_.back()->fd()); }

 private:
  static constexpr size_t kMaking = 2;

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
    const auto [one, other] = kernel_.connect();
    if (first.meanwhile) kernel_.before_send = first.meanwhile;
    SimEnd& a = add(0, first_memory, first);
    SimEnd& b = add(1, second_memory, second);
    b.attach(other, at_second);
    a.attach(one, at_first);
    return {&a, &b};
  }
  SimEnd& add(size_t which, mem::Table& memory, const EndOptions& options) {
    engine::Engine& own = *engines_[which];
    engine::Engine& making = kernel_.by_chance(3) ? *engines_[kMaking] : own;
    ends_.push_back(std::make_unique<SimEnd>(kernel_, own, making, memory, ++qp_num_, options));
    return *ends_.back();
  }

  // One thing, chosen by the seed. False when nothing can happen without time passing.
  bool something() {
    kernel_.pass(kernel_.random() % (5 * core::kMicrosecond));
    const size_t count = std::size(engines_) + ends_.size();
    const size_t start = kernel_.random() % count;
    for (size_t i = 0; i < count; ++i) {
      const size_t which = (start + i) % count;
      if (which < std::size(engines_) ? take_turn(*engines_[which])
                                      : poll(*ends_[which - std::size(engines_)]))
        return true;
    }
    return false;
  }
  // An application's thread: with enough empty polls for it to be taken for a busy poller, or few.
  bool poll(SimEnd& end) {
    const uint64_t before = kernel_.events();
    const size_t polls = polls_eagerly_ ? 1 + kernel_.random() % 100 : 1;
    for (size_t i = 0; i < polls && kernel_.events() == before; ++i) end.collect();
    return kernel_.events() != before;
  }
  bool pass_time() {
    // The last poll may have left it something.
    for (const auto& engine : engines_)
      if (take_turn(*engine)) return true;
    for (const auto& end : ends_) end->expect_nothing_forgotten();
    core::Nanoseconds next = kernel_.next_timer();
    for (const auto& engine : engines_) next = std::min(next, next_deadline(*engine));
    if (next == Kernel::kNever) return false;
    kernel_.advance_to(next);
    return true;
  }

  const Medium medium_;
  Kernel kernel_;
  const bool polls_eagerly_;
  bool nested_ = false;
  std::unique_ptr<engine::Engine> engines_[3];
  std::vector<std::unique_ptr<SimEnd>> ends_;
  uint32_t qp_num_ = 100;
};

}  // namespace

std::unique_ptr<World> World::create(const Medium& medium) {
  return std::make_unique<SimWorld>(medium);
}

std::vector<Medium> media(uint32_t seeds) {
  uint32_t first = 1, last = seeds;
  if (const char* asked = std::getenv("UIWARP_TEST_SIM_SEEDS"); asked && seeds > 0) {
    char* end = nullptr;
    first = last = static_cast<uint32_t>(std::strtoul(asked, &end, 10));
    if (*end == '-') last = static_cast<uint32_t>(std::strtoul(end + 1, nullptr, 10));
  }
  std::vector<Medium> out;
  for (uint32_t seed = first; seed <= last; ++seed)
    out.push_back({.crc = seed % 4 != 0,
                   .markers_to_first = seed % 3 == 0,
                   .markers_to_second = seed % 5 < 2,
                   .seed = seed,
                   .name = "seed" + std::to_string(seed)});
  return out;
}

}  // namespace uiw::test
