// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The places of a send or receive queue as the program has them: that of a request is taken until
// the program was given its completion, or a later one of the queue. The stack's are free as soon
// as the completion was taken from it and is held. Pure.
#pragma once

#include <cstdint>
#include <deque>

namespace uiw::shake {

// Thread: one at a time.
class Places {
 public:
  void set_depth(uint32_t depth) { depth_ = depth; }
  uint32_t depth() const { return depth_; }
  // For how many requests there is room when the program was given so many completions, ever.
  uint32_t room(uint64_t given) {
    for (; seen_ < given && !completing_.empty(); ++seen_) {
      freed_ = completing_.front() + 1;
      completing_.pop_front();
    }
    const uint64_t taken = posted_ - freed_;
    return taken < depth_ ? depth_ - static_cast<uint32_t>(taken) : 0;
  }
  // One was posted; `completes`: also when it succeeds.
  void post(bool completes) {
    if (completes) completing_.push_back(posted_);
    ++posted_;
  }
  // So many, ever; and back to that number.
  uint64_t posted() const { return posted_; }
  void take_back(uint64_t posted) {
    posted_ = posted;
    while (!completing_.empty() && completing_.back() >= posted) completing_.pop_back();
  }
  // The queue begins anew.
  void clear(uint64_t given) {
    completing_.clear();
    freed_ = posted_;
    seen_ = given;
  }

 private:
  uint32_t depth_ = 0;
  uint64_t posted_ = 0, freed_ = 0;  // ever
  uint64_t seen_ = 0;                // completions that have freed places
  std::deque<uint64_t> completing_;  // which of those posted, if they were not seen
};

}  // namespace uiw::shake
