// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What UIWARP_SHAKE says: the seed, and which liberties are taken.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace uiw::core {

// What RFC 5040 and the verbs manual leave open, and --shake does.
enum class Liberty : uint8_t {
  kLate,     // completions are held back for a while
  kOrder,    // completions of one completion queue come in another order, but for a work queue's
  kBatches,  // a poll gives fewer than there are
  kArming,   // ibv_req_notify_cq() takes its time
  kPlacing,  // the end of what is placed is placed first
  kFull,     // work queues are full as early as they may be
  kEvents,   // events of rdma_cm come late
  kKeys,     // keys of memory come again as early, or as late, as they can
  kNumbers,  // the number of a queue pair that is gone is the next one's
};

struct LibertyInfo {
  const char* name;  // in UIWARP_SHAKE
  const char* what;  // it does: half a sentence
};
// By Liberty. Thread: any.
std::span<const LibertyInfo> liberty_table();

struct ShakeOptions {
  uint64_t seed = 0;
  uint32_t left_out = 0;  // a bit for each Liberty that is not taken

  bool takes(Liberty liberty) const {
    return (left_out >> static_cast<unsigned>(liberty) & 1) == 0;
  }
};

// Parses "SEED[,only=NAME...][,without=NAME...]": with only= those are taken, with without= all
// others. On failure returns false; `out` is undefined then, and `problem` names the word and what
// is allowed. Thread: any.
bool parse_shake_options(std::string_view text, ShakeOptions& out, std::string* problem = nullptr);

}  // namespace uiw::core
