// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a program has posted to a work queue and not polled the completion of. Pure.
//
// A ring, laid out as the queue's own and of no more bytes an entry. It grows as it is used, up to
// the queue's depth, and beyond only while more is in a post that will fail, or completed and
// was just polled.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "check/request.h"

namespace uiw::check {

// Thread: one at a time.
class Requests {
 public:
  enum class Of : uint8_t { kSends, kReceives };
  explicit Requests(Of of, uint32_t depth = 0, uint32_t max_sge = 0)
      : of_(of), depth_(depth), max_sge_(max_sge) {}

  // The depth of the queue is another one now.
  void set_depth(uint32_t depth) { depth_ = depth; }

  // Its sequence number. SGEs are left out when there are more than max_sge: it will be refused.
  uint32_t add(const Request& request);

  // It was not posted after all. `sequence`: of add(), or of the one so many behind it. Its wr_id,
  // if it is there.
  std::optional<uint64_t> take_back(uint32_t sequence);

  // Of a send queue: the completion `wr_id` was polled. Those before it are over too, and visited
  // first. One that succeeded is the oldest that asked for a completion; one that failed may be
  // any. Of equal ones the oldest is taken for the one that is meant; of none nothing is visited.
  // Those before one that succeeded which asked for a completion themselves are not over: of two
  // threads that poll at once the one that was given the older completion may come here second.
  template <class Visit>
  void complete_sends(uint64_t wr_id, bool success, Visit visit) {
    is_sure_ = is_sure_ && (success || !is_ambiguous(wr_id));
    for (size_t i = 0; i < count_; ++i) {
      const Head& head = heads_[place_of(i)];
      if (head.wr_id != wr_id || !(head.is_signaled || !success)) continue;
      const auto is_over = [&](size_t before) {
        return !success || !heads_[place_of(before)].is_signaled;
      };
      bool all_are = true;
      for (size_t before = 0; before < i; ++before) {
        all_are = all_are && is_over(before);
        if (is_over(before)) visit((*this)[before], false);
      }
      visit((*this)[i], true);
      if (all_are) return drop_first(i + 1);
      erase(i);
      for (size_t before = i; before-- > 0;)
        if (is_over(before)) erase(before);
      return;
    }
  }

  // Of a receive queue. Visits it, if it is there.
  template <class Visit>
  void complete_receive(uint64_t wr_id, Visit visit) {
    for (size_t i = 0; i < count_; ++i) {
      if (heads_[place_of(i)].wr_id != wr_id) continue;
      visit((*this)[i]);
      return erase(i);
    }
  }

  size_t size() const { return count_; }
  // The oldest first. Its SGEs are there until the next change.
  Request operator[](size_t i) const;
  template <class Visit>
  void each(Visit visit) const {
    for (size_t i = 0; i < count_; ++i) visit((*this)[i]);
  }
  bool has_signaled() const;
  // Whether several have that wr_id.
  bool is_ambiguous(uint64_t wr_id) const;

  // Whether those that are left are those that were not polled: until one failed that had the wr_id
  // of another.
  bool is_sure() const { return is_sure_; }

  void forget_fingerprint(size_t i) { heads_[place_of(i)].has_fingerprint = false; }
  void clear();

 private:
  static constexpr unsigned kSequenceBits = 23;  // of far more than can be outstanding
  struct Head {
    uint64_t wr_id;
    Stack posted;
    uint32_t sequence : kSequenceBits;
    uint32_t sge_count : 5;
    uint32_t role : 2;
    uint32_t is_signaled : 1;
    uint32_t has_fingerprint : 1;
  };
  static_assert(sizeof(Head) == 16);
  // Of a send queue only.
  struct Tail {
    uint64_t remote_address;
    uint32_t rkey;
    uint32_t fingerprint;
  };
  static_assert(sizeof(Tail) == 16);

  size_t place_of(size_t i) const {
    const size_t place = first_ + i;
    return place < heads_.size() ? place : place - heads_.size();
  }
  void grow();
  void copy(size_t from, size_t to);
  void drop_first(size_t count);
  void erase(size_t i);

  Of of_;
  uint32_t depth_, max_sge_;
  bool is_sure_ = true;
  uint32_t last_ = 0;  // sequence number
  size_t first_ = 0;   // place of the oldest
  size_t count_ = 0;
  std::vector<Head> heads_;
  std::vector<Tail> tails_;    // as many, of a send queue
  std::vector<ibv_sge> sges_;  // max_sge_ times as many
};

}  // namespace uiw::check
