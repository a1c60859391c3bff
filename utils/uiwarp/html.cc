// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "html.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>

#include "core/printable.h"

namespace uiw::tool::html {
namespace {

constexpr char kNarrowSpace[] = "\u202f";

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : core::printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string number(uint64_t value) {
  const std::string digits = std::to_string(value);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) out += kNarrowSpace;
    out += digits[i];
  }
  return out;
}

std::string counted(uint64_t count, const char* noun) {
  return number(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string microseconds(int64_t nanoseconds) {
  const bool is_negative = nanoseconds < 0;
  const uint64_t value =
      is_negative ? 0 - static_cast<uint64_t>(nanoseconds) : static_cast<uint64_t>(nanoseconds);
  return (is_negative ? "-" : "") + number(value / 1000) + formatted(".%03" PRIu64, value % 1000);
}

std::string scaled(double value, const char* unit) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  // 999.5 would be shown as 1000.
  while (value >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++prefix;
  }
  const bool is_whole = prefix == 0 && value == std::floor(value);
  const int decimals = is_whole || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return formatted("%.*f ", decimals, value) + kPrefixes[prefix] + unit;
}

std::string duration(double nanoseconds) {
  if (nanoseconds >= 999.5e6) return scaled(nanoseconds / 1e9, "s");
  if (nanoseconds >= 999.5e3) return scaled(nanoseconds / 1e6, "ms");
  if (nanoseconds >= 999.5) return scaled(nanoseconds / 1e3, "\u00b5s");
  return scaled(nanoseconds, "ns");
}

std::string percent(double share) {
  return formatted("%.2f", share * 100);
}

}  // namespace uiw::tool::html
