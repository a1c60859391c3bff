// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/check_options.h"

#include <algorithm>
#include <charconv>
#include <iterator>

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

// What other programs have for "on" and "off".
bool is_yes_or_no(std::string_view text) {
  constexpr std::string_view kWords[] = {"yes", "no", "true", "false", "ON", "OFF", "y", "n"};
  return std::ranges::find(kWords, text) != std::end(kWords);
}

// What is allowed for the option `name`.
std::string allowed(std::string_view name) {
  if (name == "exit") return "a number 0..255";
  if (name == "max") return "a number 1..1000000";
  if (name == "halt" || name == "github" || name == "hints") return "0 or 1";
  if (name == "json" || name == "suppressions") return "the path of a file";
  return "";
}

std::string problem_with(std::string_view option) {
  const size_t equals = option.find('=');
  const std::string name(option.substr(0, equals)), values = allowed(name);
  if (option == "off") return "'off' goes with no other option";
  if (is_yes_or_no(option)) return "'" + name + "': say on or off";
  if (values.empty())
    return "there is no option '" + name +
           "'; allowed: on, off, exit, halt, hints, json, github, suppressions, max";
  if (equals == std::string_view::npos) return "'" + name + "' needs a value: " + values;
  return "'" + std::string(option) + "': allowed for " + name + " is " + values;
}

bool parse_one(std::string_view option, CheckOptions& out) {
  if (option == "on" || option == "1") return true;
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

bool parse_check_options(std::string_view text, CheckOptions& out, std::string* problem) {
  out = {};
  if (text == "off" || text == "0") return true;
  out.on = true;
  for (;;) {
    const size_t comma = text.find(',');
    const std::string_view option = text.substr(0, comma);
    if (!parse_one(option, out)) {
      if (problem) *problem = problem_with(option);
      return false;
    }
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace uiw::core
