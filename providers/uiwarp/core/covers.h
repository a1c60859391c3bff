// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Whether an instrument wraps every verb that is given one of its objects. One that it forgot would
// hand them to a table that takes what is behind the pointer for its own.
#pragma once

#include <array>
#include <string_view>
#include <type_traits>

#include "uiwarp/uiwarp-verbs.h"

namespace uiw::core {

template <class... Objects>
class Covers {
 public:
  // `wrapped`: names of the table.
  template <size_t kCount>
  static consteval bool all(const std::array<std::string_view, kCount>& wrapped) {
    const auto has = [&](std::string_view name) {
      for (const std::string_view each : wrapped)
        if (each == name) return true;
      return false;
    };
#define UIW_LOOK(name) \
  if (is_given(uiwarp_##name) && !has(#name)) return false;
    UIWARP_VERBS(UIW_LOOK)
#undef UIW_LOOK
    return true;
  }

 private:
  template <class Argument>
  static constexpr bool kIsOurs = (std::is_same_v<Argument, Objects*> || ...);
  template <class Result, class... Arguments>
  static consteval bool is_given(Result (*)(Arguments...)) {
    return (kIsOurs<Arguments> || ...);
  }
};

}  // namespace uiw::core

// Defines, once in an instrument, `const uiwarp_verbs* table_over(const uiwarp_verbs&)`: that table
// with the functions of namespace `wrap` in their places. VERBS(X) names them; behind it the
// objects of the instrument's own.
#define UIW_TABLE_OVER(VERBS, ...)                                                      \
  static_assert(::uiw::core::Covers<__VA_ARGS__>::all(std::array{VERBS(UIW_NAME_OF)})); \
  const uiwarp_verbs* table_over(const uiwarp_verbs& next_table) {                      \
    static uiwarp_verbs ours;                                                           \
    ours = next_table;                                                                  \
    VERBS(UIW_TAKE)                                                                     \
    return &ours;                                                                       \
  }
#define UIW_NAME_OF(name) std::string_view(#name),
#define UIW_TAKE(name) ours.name = wrap::name;
