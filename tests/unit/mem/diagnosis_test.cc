// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "mem/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace uiw::mem {
namespace {

using testing::HasSubstr;

class Diagnoses : public ::testing::Test {
 protected:
  static constexpr uint32_t kPd = 3, kOtherPd = 4;
  static constexpr uint64_t kStart = 0x10000;
  static constexpr size_t kSize = 4096;

  uint32_t add(uint32_t pd, uint32_t access, uint64_t start = kStart) {
    auto stag = table_.add(pd, memory_, start, kSize, access, 100);
    EXPECT_TRUE(stag);
    return *stag;
  }
  std::string local(const Wanted& wanted) {
    const Diagnosis found = diagnose_local(table_, kPd, wanted);
    trouble_ = found.trouble;
    return describe(found, wanted, "lkey").text;
  }
  std::string remote(const Wanted& wanted, uint32_t rights = ~0u, uint32_t stream = 1) {
    const Diagnosis found = diagnose_remote(table_, {kPd, stream, rights}, wanted);
    trouble_ = found.trouble;
    return describe(found, wanted, "rkey").text;
  }

  Table table_;
  uint8_t memory_[kSize];
  Trouble trouble_ = Trouble::kNone;
};

TEST_F(Diagnoses, SayByHowManyBytesBoundsAreMissed) {
  const uint32_t key = add(kPd, kLocalWrite);
  EXPECT_EQ(local({key, kStart + 4000, 200, 0}),
            "it ends 104 bytes behind the region, which has 4096 bytes from 0x10000");
  EXPECT_EQ(trouble_, Trouble::kBounds);
  EXPECT_EQ(local({key, kStart - 16, 8, 0}),
            "it begins 16 bytes before the region, which has 4096 bytes from 0x10000");
  EXPECT_EQ(local({key, kStart + 8192, 8, 0}),
            "it ends 4104 bytes behind the region, which has 4096 bytes from 0x10000");
  EXPECT_THAT(local({key, ~uint64_t{0} - 4, 8, 0}), HasSubstr("end of the address space"));
}

TEST_F(Diagnoses, NameTheNearestRegionOfTheDomainForAKeyThatIsNone) {
  EXPECT_THAT(local({0x12345678, kStart, 8, 0}), HasSubstr("no region is registered"));
  add(kPd, 0, 0x900000);
  const uint32_t near = add(kPd, 0, 0x20000);
  add(kOtherPd, 0, kStart);
  char expected[128];
  std::snprintf(
      expected, sizeof expected,
      "no memory region has this key; the nearest region of this protection domain is lkey "
      "0x%08x, 4096 bytes from 0x20000",
      near);
  EXPECT_EQ(local({index_of(near) << 8 ^ 0x40000000, kStart, 8, 0}), expected);
  EXPECT_EQ(trouble_, Trouble::kUnknown);
}

TEST_F(Diagnoses, SuspectKeysAndAddressesWithTheirBytesSwapped) {
  const uint32_t key = add(kPd, kRemoteRead);
  char expected[256];
  std::snprintf(expected, sizeof expected,
                "no memory region has this key, but with its bytes in the other order it is rkey "
                "0x%08x, 4096 bytes from 0x10000",
                key);
  EXPECT_THAT(remote({__builtin_bswap32(key), kStart, 8, kRemoteRead}), HasSubstr(expected));
  EXPECT_EQ(cause_of(trouble_), core::Cause::kKeyUnknown);
  EXPECT_THAT(remote({key, __builtin_bswap64(kStart + 4088), 8, kRemoteRead}),
              HasSubstr("with its bytes in the other order, 0x10ff8, the address lies within"));
  EXPECT_EQ(cause_of(trouble_), core::Cause::kOutOfBounds);
  // Of bytes that would not fit it is not said.
  remote({key, __builtin_bswap64(kStart + 4089), 8, kRemoteRead});
  EXPECT_EQ(trouble_, Trouble::kBounds);
}

TEST_F(Diagnoses, KnowKeysThatWereDeregistered) {
  const uint32_t key = add(kPd, 0);
  EXPECT_EQ(table_.remove(key), 0);
  EXPECT_THAT(local({key, kStart, 8, 0}), HasSubstr("was deregistered"));
  EXPECT_EQ(cause_of(trouble_), core::Cause::kKeyDeregistered);
}

TEST_F(Diagnoses, TellDomainsAndRightsApart) {
  const uint32_t foreign = add(kOtherPd, kLocalWrite), bare = add(kPd, 0);
  EXPECT_THAT(local({foreign, kStart, 8, 0}), HasSubstr("another protection domain"));
  EXPECT_EQ(cause_of(trouble_), core::Cause::kKeyOfOtherDomain);
  EXPECT_THAT(local({bare, kStart, 8, kLocalWrite}),
              HasSubstr("was registered without IBV_ACCESS_LOCAL_WRITE"));
  EXPECT_EQ(cause_of(trouble_), core::Cause::kRightMissing);
  EXPECT_THAT(remote({bare, kStart, 8, kRemoteWrite}),
              HasSubstr("was registered without IBV_ACCESS_REMOTE_WRITE"));
  const uint32_t readable = add(kPd, kRemoteRead);
  EXPECT_THAT(remote({readable, kStart, 8, kRemoteRead}, kRemoteWrite),
              HasSubstr("the region has IBV_ACCESS_REMOTE_READ, but qp_access_flags"));
}

TEST_F(Diagnoses, TellWindowsApart) {
  const uint32_t region = add(kPd, kLocalWrite | kMwBind);
  auto window = table_.add_window(kPd, WindowType::kType2, 10);
  ASSERT_TRUE(window);
  const Stream stream{kPd, 1, ~0u};
  EXPECT_THAT(remote({*window, kStart, 8, kRemoteWrite}), HasSubstr("is not bound"));
  const Binding binding{*window, *window, region, kRemoteWrite, kStart, 64};
  ASSERT_EQ(table_.bind(stream, binding), 0);
  EXPECT_THAT(local({*window, kStart, 8, 0}), HasSubstr("has no lkey"));
  EXPECT_THAT(remote({*window, kStart, 8, kRemoteWrite}, ~0u, 2), HasSubstr("another queue pair"));
  EXPECT_THAT(remote({*window, kStart, 65, kRemoteWrite}),
              HasSubstr("ends 1 bytes behind the region, which has 64 bytes"));
}

TEST_F(Diagnoses, OfWhatIsAllowedByNowSaySo) {
  const uint32_t key = add(kPd, kLocalWrite);
  EXPECT_THAT(local({key, kStart, 8, kLocalWrite}), HasSubstr("allowed by now"));
  EXPECT_EQ(cause_of(trouble_), core::Cause::kKeyChanged);
}

}  // namespace
}  // namespace uiw::mem
