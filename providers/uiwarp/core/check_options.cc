// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/check_options.h"

#include <charconv>

namespace uiw::core {
namespace {

bool number(std::string_view text, uint32_t least, uint32_t most, uint32_t& out) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && rest == end && out >= least && out <= most;
}

bool flag(std::string_view text, bool& out) {
  out = text == "1";
  return out || text == "0";
}

bool path(std::string_view text, std::string_view& out) {
  out = text;
  return !text.empty();
}

bool parse_one(std::string_view option, CheckOptions& out) {
  if (option == "on") return true;
  const size_t equals = option.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = option.substr(0, equals), value = option.substr(equals + 1);
  if (name == "exit") return number(value, 0, 255, out.exit_status);
  if (name == "halt") return flag(value, out.halt);
  if (name == "github") return flag(value, out.github);
  if (name == "hints") return flag(value, out.hints);
  if (name == "max") return number(value, 1, 1'000'000, out.most);
  if (name == "json") return path(value, out.json);
  if (name == "suppressions") return path(value, out.suppressions);
  return false;
}

}  // namespace

bool parse_check_options(std::string_view text, CheckOptions& out) {
  out = {};
  if (text == "off") return true;
  out.on = true;
  for (;;) {
    const size_t comma = text.find(',');
    if (!parse_one(text.substr(0, comma), out)) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace uiw::core
