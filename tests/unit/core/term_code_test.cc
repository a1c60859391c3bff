// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/term_code.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace uiw::core {
namespace {

// RFC 5040 fig. 9, RFC 5041 7.2, RFC 5044 8, RFC 6581 8; 0x00xx stands for itself.
constexpr uint16_t kDefined[] = {0x0100, 0x0101, 0x0102, 0x0103, 0x0104, 0x0109, 0x01ff, 0x0205,
                                 0x0206, 0x0207, 0x0208, 0x0209, 0x02ff, 0x1000, 0x1100, 0x1101,
                                 0x1102, 0x1103, 0x1104, 0x1201, 0x1202, 0x1203, 0x1204, 0x1205,
                                 0x1206, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007};

TEST(TermCode, SplitsIntoItsCoordinates) {
  EXPECT_EQ(layer_of(TermCode::kUntaggedTooLong), 1);
  EXPECT_EQ(etype_of(TermCode::kUntaggedTooLong), 2);
  EXPECT_EQ(code_of(TermCode::kUntaggedTooLong), 5);
  EXPECT_EQ(layer_of(static_cast<TermCode>(0xf1a7)), 15);
  EXPECT_EQ(etype_of(static_cast<TermCode>(0xf1a7)), 1);
  EXPECT_EQ(code_of(static_cast<TermCode>(0xf1a7)), 0xa7);
}

TEST(TermCode, KnowsExactlyTheCodesOfTheRfcs) {
  std::set<uint16_t> expected(std::begin(kDefined), std::end(kDefined));
  for (uint16_t code = 0; code < 256; code++) expected.insert(code);
  for (uint32_t code = 0; code <= 0xffff; code++) {
    EXPECT_EQ(is_defined(static_cast<TermCode>(code)),
              expected.contains(static_cast<uint16_t>(code)))
        << code;
  }
}

TEST(TermCode, DescribesEveryCodeDifferently) {
  std::set<std::string> seen;
  for (uint16_t code : kDefined) seen.insert(describe(static_cast<TermCode>(code)));
  EXPECT_EQ(seen.size(), std::size(kDefined));
}

// TE-17: whatever a peer sends can be logged.
TEST(TermCode, DescribesWhatNoRfcDefines) {
  for (uint32_t code = 0; code <= 0xffff; code++)
    ASSERT_NE(describe(static_cast<TermCode>(code)), nullptr);
  EXPECT_STREQ(describe(static_cast<TermCode>(0x0042)), describe(TermCode::kLocalCatastrophic));
  EXPECT_STREQ(describe(static_cast<TermCode>(0x0299)),
               "RDMAP: error that RFC 5040 does not define");
  EXPECT_STREQ(describe(static_cast<TermCode>(0x1300)), "DDP: error that RFC 5041 does not define");
  EXPECT_STREQ(describe(static_cast<TermCode>(0x2008)),
               "MPA: error that RFC 5044 and RFC 6581 do not define");
  EXPECT_STREQ(describe(static_cast<TermCode>(0xf5ff)),
               "error of a layer that RFC 5040 does not define");
}

}  // namespace
}  // namespace uiw::core
