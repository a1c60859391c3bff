// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/shake_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/settings.h"

namespace uiw::core {
namespace {

std::vector<std::string> taken(const char* text) {
  ShakeOptions options;
  EXPECT_TRUE(parse_shake_options(text, options)) << text;
  std::vector<std::string> names;
  for (size_t i = 0; i < liberty_table().size(); ++i)
    if (options.takes(static_cast<Liberty>(i))) names.push_back(liberty_table()[i].name);
  return names;
}

TEST(ShakeOptions, ASeedTakesAllLiberties) {
  ShakeOptions options;
  ASSERT_TRUE(parse_shake_options("18446744073709551615", options));
  EXPECT_EQ(options.seed, 18446744073709551615u);
  EXPECT_EQ(taken("0").size(), liberty_table().size());
}

TEST(ShakeOptions, OnlyAndWithoutChooseAmongThem) {
  using testing::ElementsAre;
  EXPECT_THAT(taken("7,only=placing"), ElementsAre("placing"));
  EXPECT_THAT(taken("7,only=keys,only=late"), ElementsAre("late", "keys"));
  EXPECT_THAT(taken("7,only=keys,only=late,without=late"), ElementsAre("keys"));
  EXPECT_THAT(taken("7,without=order,without=full"),
              ElementsAre("late", "batches", "arming", "placing", "events", "keys", "numbers"));
}

TEST(ShakeOptions, EachNameOnceHasRoomInTheSetting) {
  std::string text = "18446744073709551615", problem;
  for (const LibertyInfo& info : liberty_table()) text += std::string(",without=") + info.name;
  Settings settings;
  EXPECT_TRUE(parse_setting("UIWARP_SHAKE", text.c_str(), settings, problem)) << problem;
  EXPECT_EQ(settings.shake, text);
}

std::string problem(const char* text) {
  ShakeOptions options;
  std::string said;
  EXPECT_FALSE(parse_shake_options(text, options, &said)) << text;
  EXPECT_FALSE(parse_shake_options(text, options)) << text;
  return said;
}

TEST(ShakeOptions, AWrongWordIsNamedWithWhatIsAllowed) {
  for (const char* const text :
       {"", "many", "-1", "1x", "18446744073709551616", ",only=late", "off"})
    EXPECT_EQ(problem(text), "the seed, a number of 64 bits, must come first") << text;
  for (const char* const text :
       {"only=lates", "late", "", "only=", "without", "ONLY=late", "seed=3"}) {
    EXPECT_EQ(problem(("1," + std::string(text)).c_str()),
              "'" + std::string(text) +
                  "': allowed behind the seed are only=NAME and without=NAME, of late, order, "
                  "batches, arming, placing, full, events, keys, numbers");
  }
}

}  // namespace
}  // namespace uiw::core
