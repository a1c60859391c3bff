// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/copy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/pages.h"

namespace uiw::core {
namespace {

TEST(Copy, KnowsWhereItWouldBeSlow) {
  const Pages pages = allocate_pages(3 * 4096);
  uint8_t* const from = pages.get() + 4000;
  EXPECT_FALSE(copies_slowly(from, from));
  EXPECT_TRUE(copies_slowly(from + 1, from));
  EXPECT_TRUE(copies_slowly(from + 31, from));
  EXPECT_FALSE(copies_slowly(from + 32, from));
  EXPECT_FALSE(copies_slowly(from - 1, from));
  EXPECT_TRUE(copies_slowly(from + 4096 + 1, from)) << "only the place in the page counts";
  EXPECT_TRUE(copies_slowly(from - 4096 + 31, from));
}

// Every octet arrives and none beside them changes, at every distance that is copied another way
// and some that are not, with whole blocks and every rest.
TEST(Copy, CopiesAllAndNothingElse) {
  constexpr size_t kMost = 2048 + 3 * 64, kFrom = 100;
  const Pages source = allocate_pages(kFrom + kMost), target = allocate_pages(2 * 4096);
  for (size_t i = 0; i < kFrom + kMost; ++i) source[i] = static_cast<uint8_t>(i * 7 + i / 256 + 1);
  for (size_t size :
       {0u, 1u, 63u, 64u, 2047u, 2048u, 2049u, 2111u, 2112u, 2113u, unsigned{kMost}}) {
    for (size_t distance = 0; distance < 70; ++distance) {
      const size_t at = kFrom + distance;
      std::fill_n(target.get(), 2 * 4096, uint8_t{0xee});
      copy(target.get() + at, source.get() + kFrom, size);
      ASSERT_TRUE(std::equal(source.get() + kFrom, source.get() + kFrom + size, target.get() + at))
          << size << " octets, distance " << distance;
      const auto untouched = [&](size_t from, size_t to) {
        return std::all_of(target.get() + from, target.get() + to,
                           [](uint8_t octet) { return octet == 0xee; });
      };
      ASSERT_TRUE(untouched(0, at) && untouched(at + size, 2 * 4096))
          << size << " octets, distance " << distance;
    }
  }
}

TEST(Pages, BeginAPage) {
  for (const size_t size : {size_t{1}, size_t{4096}, size_t{65537}}) {
    const Pages pages = allocate_pages(size);
    ASSERT_TRUE(pages);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pages.get()) % 4096, 0u);
    std::fill_n(pages.get(), size, uint8_t{1});
  }
}

}  // namespace
}  // namespace uiw::core
