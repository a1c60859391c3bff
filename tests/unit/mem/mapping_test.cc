// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "mem/mapping.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace uiw::mem {
namespace {

// Four pages: read-write, read-write but a mapping of its own, read-only, nothing.
class Mapping : public ::testing::TestWithParam<int (*)(const void*, uint64_t, bool)> {
 protected:
  void SetUp() override {
    void* at = mmap(nullptr, 4 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    base_ = static_cast<char*>(at);
    ASSERT_NE(mmap(base_ + page_, page_, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              MAP_FAILED);
    ASSERT_EQ(mprotect(base_ + 2 * page_, page_, PROT_READ), 0);
    ASSERT_EQ(munmap(base_ + 3 * page_, page_), 0);
  }
  void TearDown() override { munmap(base_, 3 * page_); }
  int check(long offset, long length, bool writable) {
    return GetParam()(base_ + offset, static_cast<uint64_t>(length), writable);
  }

  const long page_ = sysconf(_SC_PAGESIZE);
  char* base_ = nullptr;
};

TEST_P(Mapping, MappedRangesAreFine) {
  EXPECT_EQ(check(0, 1, true), 0);
  EXPECT_EQ(check(0, page_, true), 0);
  EXPECT_EQ(check(1, 2 * page_ - 1, true), 0);  // across two mappings
  EXPECT_EQ(check(0, 3 * page_, false), 0);
  EXPECT_EQ(check(3 * page_ - 1, 1, false), 0);
}

TEST_P(Mapping, ReadOnlyIsNotWritable) {
  EXPECT_EQ(check(2 * page_, 1, true), EFAULT);
  EXPECT_EQ(check(0, 2 * page_ + 1, true), EFAULT);
  EXPECT_EQ(check(0, 2 * page_, true), 0);
}

TEST_P(Mapping, HolesAreNotMapped) {
  EXPECT_EQ(check(3 * page_, 1, false), EFAULT);
  EXPECT_EQ(check(0, 3 * page_ + 1, false), EFAULT);
  EXPECT_EQ(GetParam()(nullptr, 1, false), EFAULT);
  EXPECT_EQ(GetParam()(reinterpret_cast<void*>(~0ull - 4096), 100, false), EFAULT);
}

TEST_P(Mapping, ProtNoneIsNotReadable) {
  ASSERT_EQ(mprotect(base_, page_, PROT_NONE), 0);
  EXPECT_EQ(check(0, 1, false), EFAULT);
  EXPECT_EQ(check(page_ - 1, 2, false), EFAULT);
}

INSTANTIATE_TEST_SUITE_P(ByQuery, Mapping, ::testing::Values(check_mapped));
INSTANTIATE_TEST_SUITE_P(ByText, Mapping, ::testing::Values(check_mapped_by_text));

TEST(CheckMapped, ZeroLengthIsAlwaysFine) {
  EXPECT_EQ(check_mapped(nullptr, 0, true), 0);
  EXPECT_EQ(check_mapped(reinterpret_cast<void*>(~0ull), 0, false), 0);
}

TEST(CheckMapped, WrapIsAFault) {
  EXPECT_EQ(check_mapped(reinterpret_cast<void*>(~0ull), 2, false), EFAULT);
  int here;
  EXPECT_EQ(check_mapped(&here, ~0ull, false), EFAULT);
}

}  // namespace
}  // namespace uiw::mem
