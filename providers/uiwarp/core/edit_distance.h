// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Helps to recognise misspelt words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <vector>

namespace uiw::core {

// A word still matches another if one letter in this many is wrong.
inline constexpr size_t kLettersForOneWrong = 4;

// How many letters must be changed, added or removed to turn `a` into `b`. Pure.
inline size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace uiw::core
