// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/shake_options.h"

#include <charconv>
#include <iterator>

namespace uiw::core {
namespace {

constexpr LibertyInfo kTable[] = {
    {"late", "completions come late"},
    {"order", "completions of different queues change their order"},
    {"batches", "a poll gives fewer completions than there are, or none"},
    {"arming", "ibv_req_notify_cq() takes time, in which completions come"},
    {"placing", "the end of a Write, Send or Read is placed before the rest"},
    {"full", "queues are full as early as the manual allows"},
    {"events", "events of rdma_cm come late"},
    {"keys", "the key of memory that is gone is the next one's, or comes again late"},
    {"numbers", "the number of a queue pair that is gone is the next one's"},
};

// 0: no liberty has that name.
uint32_t bit_of(std::string_view name) {
  for (size_t i = 0; i < std::size(kTable); ++i)
    if (name == kTable[i].name) return uint32_t{1} << i;
  return 0;
}

std::string problem_with(std::string_view word) {
  std::string names;
  for (const LibertyInfo& info : kTable)
    names += (names.empty() ? "" : ", ") + std::string(info.name);
  return "'" + std::string(word) +
         "': allowed behind the seed are only=NAME and without=NAME, of " + names;
}

bool parse_seed(std::string_view text, uint64_t& out) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && rest == end;
}

}  // namespace

std::span<const LibertyInfo> liberty_table() {
  return kTable;
}

bool parse_shake_options(std::string_view text, ShakeOptions& out, std::string* problem) {
  out = {};
  size_t comma = text.find(',');
  if (!parse_seed(text.substr(0, comma), out.seed)) {
    if (problem) *problem = "the seed, a number of 64 bits, must come first";
    return false;
  }
  uint32_t only = 0;
  while (comma != std::string_view::npos) {
    text.remove_prefix(comma + 1);
    comma = text.find(',');
    const std::string_view word = text.substr(0, comma), name = word.substr(word.find('=') + 1);
    const uint32_t bit = bit_of(name);
    if (bit != 0 && word.starts_with("only=")) {
      only |= bit;
    } else if (bit != 0 && word.starts_with("without=")) {
      out.left_out |= bit;
    } else {
      if (problem) *problem = problem_with(word);
      return false;
    }
  }
  if (only != 0) out.left_out |= ~only;
  return true;
}

}  // namespace uiw::core
