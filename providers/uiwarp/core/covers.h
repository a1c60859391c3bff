// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Checks that an instrument wraps every verb that takes one of its objects. A verb that it forgot
// would pass them to the next table, which would take them for its own.
#pragma once

#include <array>
#include <string_view>
#include <type_traits>

#include "uiwarp/uiwarp-verbs.h"

namespace uiw::core {

template <class... Objects>
class Covers {
 public:
  // `wrapped`: names of the wrapped verbs.
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

// Defines, once in an instrument, `const uiwarp_verbs* table_over(const uiwarp_verbs&)`. It returns
// a copy of that table in which the functions of namespace `wrap` replace the verbs that VERBS(X)
// names. The further arguments are the instrument's own object types.
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
