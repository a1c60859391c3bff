// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/check_options.h"

#include <gtest/gtest.h>

namespace uiw::core {
namespace {

TEST(CheckOptions, AreOffOrWhatIsNamed) {
  CheckOptions options;
  ASSERT_TRUE(parse_check_options("off", options));
  EXPECT_FALSE(options.on);
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

}  // namespace
}  // namespace uiw::core
