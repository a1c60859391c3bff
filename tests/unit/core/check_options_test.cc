// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/check_options.h"

#include <gtest/gtest.h>

namespace uiw::core {
namespace {

TEST(CheckOptions, AreOffOrWhatIsNamed) {
  CheckOptions options;
  ASSERT_TRUE(parse_check_options("off", options));
  EXPECT_FALSE(options.on);
  ASSERT_TRUE(parse_check_options("0", options));
  EXPECT_FALSE(options.on);
  ASSERT_TRUE(parse_check_options("1", options));
  EXPECT_TRUE(options.on);
  ASSERT_TRUE(parse_check_options("on", options));
  EXPECT_TRUE(options.on);
  EXPECT_EQ(options.exit_status, 66u);
  EXPECT_FALSE(options.halt || options.github || options.hints);
  ASSERT_TRUE(parse_check_options("exit=3,halt=1,github=1,hints=1,max=5,json=/a=b,suppressions=s",
                                  options));
  EXPECT_TRUE(options.on && options.halt && options.github && options.hints);
  EXPECT_EQ(options.exit_status, 3u);
  EXPECT_EQ(options.most, 5u);
  EXPECT_EQ(options.json, "/a=b");
  EXPECT_EQ(options.suppressions, "s");
}

std::string problem(const char* text) {
  CheckOptions options;
  std::string said;
  EXPECT_FALSE(parse_check_options(text, options, &said)) << text;
  CheckOptions silent;
  EXPECT_FALSE(parse_check_options(text, silent)) << text;
  return said;
}

TEST(CheckOptions, AWrongOneIsNamedWithWhatIsAllowed) {
  EXPECT_EQ(problem("on,colour=1"),
            "there is no option 'colour'; allowed: on, off, exit, halt, hints, json, github, "
            "suppressions, max");
  EXPECT_EQ(
      problem(""),
      "there is no option ''; allowed: on, off, exit, halt, hints, json, github, suppressions, "
      "max");
  EXPECT_EQ(problem("yes"), "'yes': say on or off");
  EXPECT_EQ(problem("on,off"), "'off' goes with no other option");
  EXPECT_EQ(problem("exit=256"), "'exit=256': allowed for exit is a number 0..255");
  EXPECT_EQ(problem("exit=1x"), "'exit=1x': allowed for exit is a number 0..255");
  EXPECT_EQ(problem("max=0"), "'max=0': allowed for max is a number 1..1000000");
  EXPECT_EQ(problem("halt=yes,on"), "'halt=yes': allowed for halt is 0 or 1");
  EXPECT_EQ(problem("json="), "'json=': allowed for json is the path of a file");
  EXPECT_EQ(problem("json"), "'json' needs a value: the path of a file");
}

}  // namespace
}  // namespace uiw::core
