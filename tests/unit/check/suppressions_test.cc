// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/suppressions.h"

#include <gtest/gtest.h>

namespace uiw::check {
namespace {

bool suppressed(const char* rules, Kind kind, std::vector<std::string> functions) {
  Suppressions suppressions;
  EXPECT_EQ(suppressions.parse(rules), "");
  Frames frames(2);
  for (const std::string& function : functions)
    frames[1].push_back({.function = function, .file = {}, .module = {}, .offset = 0});
  return suppressions.match({.kind = kind, .object = {}, .wr_id = {}, .what = {}, .places = {}},
                            frames);
}

TEST(Suppressions, GoByKindAndFunction) {
  EXPECT_TRUE(suppressed("leak:main\n", Kind::kLeak, {"open_it", "main"}));
  EXPECT_FALSE(suppressed("leak:main\n", Kind::kWrongState, {"main"}));
  EXPECT_FALSE(suppressed("leak:main\n", Kind::kLeak, {"mainly"}));
  EXPECT_FALSE(suppressed("", Kind::kLeak, {"main"}));
}

TEST(Suppressions, TakeGlobs) {
  EXPECT_TRUE(suppressed("*:ucp_*", Kind::kLeak, {"ucp_worker_create"}));
  EXPECT_TRUE(suppressed("leak:ns::Class<*>::make*", Kind::kLeak, {"ns::Class<int>::make(int)"}));
  EXPECT_FALSE(suppressed("*:ucp_*", Kind::kLeak, {"uct_worker"}));
}

TEST(Suppressions, SkipCommentsAndSpace) {
  EXPECT_TRUE(suppressed("# known\n\n \t leak:main \r\n", Kind::kLeak, {"main"}));
  EXPECT_TRUE(suppressed("leak : main", Kind::kLeak, {"main"}));
}

TEST(Suppressions, SayWhichLineIsWrong) {
  Suppressions suppressions;
  EXPECT_EQ(suppressions.parse("leak:main\nleak\n").find("line 2: 'leak' is not KIND:FUNCTION"),
            0u);
  EXPECT_EQ(suppressions.parse("leak:").find("line 1: "), 0u);
  const std::string wrong = suppressions.parse("#\nleaks:main");
  EXPECT_EQ(wrong.find("line 2: there is no kind 'leaks'; there are *, buffer-in-flight, "), 0u)
      << wrong;
}

}  // namespace
}  // namespace uiw::check
