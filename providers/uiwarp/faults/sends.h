// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What has been posted to a send queue and not completed, with what is to happen to it. Pure.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "faults/stream.h"

namespace uiw::faults {

// What was counted for a request when it came: given back when it is refused, as what is refused is
// not posted.
struct Counted {
  const Rules* rules = nullptr;  // whose counts went on; null: none did
  Event event{};                 // as what it was counted
  uint64_t carried = 0;          // bytes towards the end of its connection
};

struct Sent {
  uint64_t wr_id = 0;
  bool signaled = false;
  ibv_wr_opcode opcode{};    // as the program wrote it
  std::optional<Hit> hit{};  // the rule that it met
  bool is_replaced = false;  // the next table has got another one for it
  Counted counted{};

  bool fails() const { return hit && hit->rule->action != Action::kDelay; }
};

// Thread: one at a time.
class Sends {
 public:
  void add(const Sent& sent) { list_.push_back(sent); }
  // The newest ones, in the order of posting, are not in it any more.
  std::vector<Sent> extract_newest(size_t count) {
    const auto first = list_.end() - static_cast<std::ptrdiff_t>(std::min(count, list_.size()));
    std::vector<Sent> newest(first, list_.end());
    list_.erase(first, list_.end());
    return newest;
  }

  // Its completion has come, which is the end of those before it, too. Completions come in the
  // order of posting: one that succeeded is that of the oldest that asked for one. One that failed
  // may be anybody's; of several with this wr_id the oldest is taken for it.
  std::optional<Sent> complete(uint64_t wr_id, bool success) {
    const auto found = std::ranges::find_if(list_, [&](const Sent& each) {
      return each.wr_id == wr_id && (each.signaled || !success);
    });
    if (found == list_.end()) return {};
    const Sent sent = *found;
    list_.erase(list_.begin(), found + 1);
    return sent;
  }

  void clear() { list_.clear(); }

 private:
  std::deque<Sent> list_;
};

}  // namespace uiw::faults
