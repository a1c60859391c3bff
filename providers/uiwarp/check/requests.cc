// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/requests.h"

#include <algorithm>
#include <type_traits>

namespace uiw::check {

uint32_t Requests::add(const Request& request) {
  if (count_ == heads_.size()) grow();
  const size_t place = place_of(count_++);
  const size_t sges = request.sges.size() <= max_sge_ ? request.sges.size() : 0;
  last_ = (last_ + 1) % (1u << kSequenceBits);
  heads_[place] = {.wr_id = request.wr_id,
                   .posted = request.posted,
                   .sequence = last_,
                   .sge_count = static_cast<uint32_t>(sges),
                   .role = static_cast<uint32_t>(request.role),
                   .is_signaled = request.signaled,
                   .has_fingerprint = request.fingerprint.has_value()};
  if (of_ == Of::kSends)
    tails_[place] = {request.remote_address, request.rkey, request.fingerprint.value_or(0)};
  std::copy_n(request.sges.begin(), sges, sges_.begin() + static_cast<ptrdiff_t>(place * max_sge_));
  return last_;
}

std::optional<uint64_t> Requests::take_back(uint32_t sequence) {
  sequence %= 1u << kSequenceBits;
  // Of equal ones the newest is meant.
  for (size_t i = count_; i-- > 0;) {
    const Head& head = heads_[place_of(i)];
    if (head.sequence != sequence) continue;
    const uint64_t wr_id = head.wr_id;
    erase(i);
    return wr_id;
  }
  return {};
}

Request Requests::operator[](size_t i) const {
  const size_t place = place_of(i);
  const Head& head = heads_[place];
  Request request{.wr_id = head.wr_id,
                  .role = static_cast<Role>(head.role),
                  .signaled = head.is_signaled != 0,
                  .sges = {sges_.data() + place * max_sge_, head.sge_count},
                  .posted = head.posted};
  if (of_ == Of::kReceives) return request;
  const Tail& tail = tails_[place];
  request.remote_address = tail.remote_address;
  request.rkey = tail.rkey;
  if (head.has_fingerprint) request.fingerprint = tail.fingerprint;
  return request;
}

bool Requests::has_signaled() const {
  for (size_t i = 0; i < count_; ++i)
    if (heads_[place_of(i)].is_signaled) return true;
  return false;
}

bool Requests::is_ambiguous(uint64_t wr_id) const {
  size_t found = 0;
  for (size_t i = 0; i < count_ && found < 2; ++i) found += heads_[place_of(i)].wr_id == wr_id;
  return found == 2;
}

void Requests::clear() {
  *this = Requests(of_, depth_, max_sge_);
}

// Each vector is made anew, so that it has no more room than asked for.
void Requests::grow() {
  constexpr size_t kStep = 16;  // at least; requests of one post that are added together
  const size_t now = heads_.size();
  const size_t room =
      now < depth_ ? std::min<size_t>(std::max(2 * now, kStep), depth_) : now + kStep;
  // The oldest first.
  const auto enlarge = [&](auto& all, size_t each) {
    std::remove_reference_t<decltype(all)> bigger(room * each);
    std::rotate_copy(all.begin(), all.begin() + static_cast<ptrdiff_t>(first_ * each), all.end(),
                     bigger.begin());
    all.swap(bigger);
  };
  enlarge(heads_, 1);
  if (of_ == Of::kSends) enlarge(tails_, 1);
  enlarge(sges_, max_sge_);
  first_ = 0;
}

void Requests::copy(size_t from, size_t to) {
  heads_[to] = heads_[from];
  if (of_ == Of::kSends) tails_[to] = tails_[from];
  std::copy_n(sges_.begin() + static_cast<ptrdiff_t>(from * max_sge_), heads_[from].sge_count,
              sges_.begin() + static_cast<ptrdiff_t>(to * max_sge_));
}

void Requests::drop_first(size_t count) {
  first_ = place_of(count);
  count_ -= count;
}

// Those of its shorter side close up.
void Requests::erase(size_t i) {
  if (i < count_ / 2) {
    for (; i > 0; --i) copy(place_of(i - 1), place_of(i));
    return drop_first(1);
  }
  for (; i + 1 < count_; ++i) copy(place_of(i + 1), place_of(i));
  --count_;
}

}  // namespace uiw::check
