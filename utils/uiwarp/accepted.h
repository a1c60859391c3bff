// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What values options of the command line take. A message of a wrong one begins with the option's
// name, which CLI11 puts in front; it names the value and what is accepted.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <type_traits>

namespace uiw::tool {

inline std::string text_of(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", number);
  return text;
}
template <class T>
std::string text_of(T number) {
  return std::to_string(number);
}

// A number, whole where T is, from `least` to `most`.
template <class T>
CLI::Validator between(T least, T most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    T value{};
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return {};
    return "'" + text + "' is not a " + (std::is_integral_v<T> ? "whole " : "") + "number from " +
           text_of(least) + " to " + text_of(most);
  };
  return CLI::Validator(check, text_of(least) + ".." + text_of(most));
}

// A word that names a file.
inline CLI::Validator not_empty() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        return text.empty() ? "'' is not a file name" : "";
      },
      "");
}

// Of a flag, which CLI11 would take a truth value for.
inline CLI::Validator no_value() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        return text == "true" ? "" : "it takes no value, but got '" + text + "'";
      },
      "");
}

}  // namespace uiw::tool
