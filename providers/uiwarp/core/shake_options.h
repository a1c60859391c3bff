// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The value of UIWARP_SHAKE: the seed, and which liberties are taken.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace uiw::core {

// Behaviour that RFC 5040 and the verbs manual allow, and --shake shows.
enum class Liberty : uint8_t {
  kLate,     // completions are delayed
  kOrder,    // completions of one CQ are reordered, but not within a work queue
  kBatches,  // a poll returns fewer than there are
  kArming,   // ibv_req_notify_cq() takes longer
  kPlacing,  // the end of a payload is placed first
  kFull,     // work queues are full as early as allowed
  kEvents,   // events of rdma_cm come late
  kKeys,     // memory keys are reused as early, or as late, as possible
  kNumbers,  // the number of a destroyed queue pair is reused at once
};

struct LibertyInfo {
  const char* name;  // in UIWARP_SHAKE
  const char* what;  // its effect, as a clause
};
// Indexed by Liberty. Thread: any.
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
