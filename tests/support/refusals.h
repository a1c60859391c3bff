// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Calls that are refused, and what is said of them on standard error (core/explain.h).
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace uiw::test {

// Since testing::internal::CaptureStderr(): one line with each of them; nothing when there are no
// words.
inline void said_once(const std::vector<std::string>& words) {
  const std::string said = testing::internal::GetCapturedStderr();
  for (const std::string& word : words) EXPECT_THAT(said, testing::HasSubstr(word));
  EXPECT_EQ(std::ranges::count(said, '\n'), words.empty() ? 0 : 1) << said;
}

// It gives this error, and that is said once, however often it is called.
template <class Call>
void expect_refused(int error, const std::vector<std::string>& words, Call&& call) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(call(), error) << testing::PrintToString(words);
  said_once(words);
}

}  // namespace uiw::test
