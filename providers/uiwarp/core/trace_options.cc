// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/trace_options.h"

#include <charconv>

namespace uiw::core {
namespace {

bool parse_size(std::string_view text, uint64_t& out) {
  const char* const end = text.data() + text.size();
  uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || number > TraceOptions::kMostSize) return false;
  int shift = 0;
  if (rest != end) {
    const size_t unit = std::string_view("KMG").find(*rest);
    if (rest + 1 != end || unit == std::string_view::npos) return false;
    shift = 10 * (static_cast<int>(unit) + 1);
  }
  out = number << shift;
  return out >= TraceOptions::kLeastSize && out <= TraceOptions::kMostSize;
}

std::string problem_with(std::string_view option) {
  if (option.starts_with("size="))
    return "'" + std::string(option) +
           "': allowed for size are 64K..1G, a number of bytes or with K, M or G behind it";
  return "there is no option '" + std::string(option) + "'; allowed: size, fpdus";
}

}  // namespace

bool parse_trace_options(std::string_view text, TraceOptions& out, std::string* problem) {
  out = {};
  if (text == "off") return true;
  size_t comma = text.find(',');
  out.file = text.substr(0, comma);
  if (out.file.empty()) {
    if (problem) *problem = "the path of a file must come first";
    return false;
  }
  while (comma != std::string_view::npos) {
    text.remove_prefix(comma + 1);
    comma = text.find(',');
    const std::string_view option = text.substr(0, comma);
    if (option == "fpdus") {
      out.fpdus = true;
      continue;
    }
    if (option.starts_with("size=") && parse_size(option.substr(5), out.size)) continue;
    if (problem) *problem = problem_with(option);
    return false;
  }
  return true;
}

}  // namespace uiw::core
