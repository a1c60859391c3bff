// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "shake/completions.h"

#include <algorithm>

namespace uiw::shake {

// Whether the completion that is being added has to be given to the next poll. Of those behind it
// the event does not tell: whoever waits for them arms once more.
bool Completions::take_owed_sign() {
  switch (armed_) {
    case Armed::kNot:
      return shows_all_;
    case Armed::kSolicited:
      return true;
    case Armed::kAny:
      armed_ = Armed::kNot;
      return true;
  }
  return true;
}

void Completions::add(Lane& lane, const ibv_wc& wc, core::Nanoseconds now) {
  if (lane.held_.empty()) busy_.push_back(&lane);
  const core::Nanoseconds hold = hold_of(options_, lane.number_, lane.added_++, now);
  lane.held_.push_back({wc, now + hold, added_++, take_owed_sign()});
  lane.held_count_.store(lane.held_.size(), std::memory_order_release);
  // Their order is kept, so those before it are owed, too.
  if (!lane.held_.back().is_owed) return;
  if (keeps_order()) return owe_all();
  for (Lane::Held& held : lane.held_) held.is_owed = true;
}

int Completions::take(Lane& lane, int turn, ibv_wc* out, core::Nanoseconds now, uint64_t& spare) {
  int taken = 0;
  for (; taken < turn && !lane.held_.empty(); ++taken) {
    const Lane::Held& held = lane.held_.front();
    if (!held.is_owed && (held.due > now || spare == 0)) break;
    if (!held.is_owed) --spare;
    out[taken] = held.wc;
    if (held.wc.status != IBV_WC_SUCCESS) lane.has_failed_.store(true, std::memory_order_release);
    lane.given_.fetch_add(1, std::memory_order_release);
    lane.held_.pop_front();
  }
  lane.held_count_.store(lane.held_.size(), std::memory_order_release);
  return taken;
}

int Completions::poll_in_order(int count, ibv_wc* out, core::Nanoseconds now,
                               const PollPlan& plan) {
  uint64_t spare = plan.most;
  int given = 0;
  while (given < count) {
    Lane* oldest = nullptr;
    for (Lane* const lane : busy_)
      if (!lane->held_.empty() && (!oldest || lane->held_.front().nth < oldest->held_.front().nth))
        oldest = lane;
    if (!oldest || take(*oldest, 1, out + given, now, spare) == 0) break;
    ++given;
  }
  return given;
}

int Completions::poll_by_turns(int count, ibv_wc* out, core::Nanoseconds now,
                               const PollPlan& plan) {
  uint64_t spare = plan.most;
  int given = 0;
  // Round by round, until one gives nothing.
  for (int before = -1; given > before && given < count;) {
    before = given;
    for (size_t i = 0; i < busy_.size() && given < count; ++i) {
      Lane& lane = *busy_[(plan.first + i) % busy_.size()];
      const int turn = static_cast<int>(std::min<uint64_t>(plan.turn, count - given));
      given += take(lane, turn, out + given, now, spare);
    }
  }
  return given;
}

int Completions::poll(int count, ibv_wc* out, core::Nanoseconds now) {
  const PollPlan plan = poll_of(options_, number_, given_);
  const int given =
      keeps_order() ? poll_in_order(count, out, now, plan) : poll_by_turns(count, out, now, plan);
  std::erase_if(busy_, [](const Lane* lane) { return lane->held_.empty(); });
  given_ += static_cast<uint64_t>(given);
  if (given < count) shows_all_ = false;
  return given;
}

void Completions::owe_all() {
  for (Lane* const lane : busy_)
    for (Lane::Held& held : lane->held_) held.is_owed = true;
}

void Completions::arm(bool solicited_only) {
  owe_all();
  // A request for solicited completions does not weaken one for all.
  if (armed_ != Armed::kAny) armed_ = solicited_only ? Armed::kSolicited : Armed::kAny;
}

void Completions::show_all() {
  owe_all();
  shows_all_ = true;
}

std::vector<uint64_t> Completions::forget(Lane& lane) {
  std::vector<uint64_t> wr_ids;
  for (const Lane::Held& held : lane.held_) wr_ids.push_back(held.wc.wr_id);
  lane.held_.clear();
  lane.held_count_.store(0, std::memory_order_release);
  lane.has_failed_.store(false, std::memory_order_release);
  std::erase(busy_, &lane);
  return wr_ids;
}

Completions::Waiting Completions::waiting() const {
  Waiting result;
  for (const Lane* const lane : busy_) {
    for (const Lane::Held& held : lane->held_) {
      ++result.all;
      if (held.wc.status == IBV_WC_SUCCESS && (held.wc.opcode & IBV_WC_RECV) != 0)
        ++result.messages;
    }
  }
  return result;
}

}  // namespace uiw::shake
