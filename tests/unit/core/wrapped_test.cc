// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/wrapped.h"

#include <gtest/gtest.h>

namespace uiw::core {
namespace {

TEST(Wrapped, ShortTextIsOneLine) {
  EXPECT_EQ(wrapped("two words", 4), "    two words\n");
  EXPECT_EQ(wrapped("two words", 0, 7), "two words\n");
}

TEST(Wrapped, LinesBreakAtSpacesBeforeTheHundredthColumn) {
  const std::string word(48, 'x');
  EXPECT_EQ(wrapped(word + " " + word + " " + word, 3),
            "   " + word + " " + word + "\n   " + word + "\n");
  EXPECT_EQ(wrapped(word + " " + word, 4), "    " + word + "\n    " + word + "\n");
}

TEST(Wrapped, FurtherLinesHang) {
  const std::string word(60, 'x');
  EXPECT_EQ(wrapped("- " + word + " " + word, 4, 2), "    - " + word + "\n      " + word + "\n");
}

TEST(Wrapped, AWordThatIsTooLongStaysWhole) {
  const std::string word(150, 'x');
  EXPECT_EQ(wrapped("a " + word, 2), "  a\n  " + word + "\n");
}

}  // namespace
}  // namespace uiw::core
