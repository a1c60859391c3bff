// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/fingerprint.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <vector>

#include "check/rules.h"

namespace uiw::check {
namespace {

uint32_t of(const std::vector<uint8_t>& memory) {
  uint32_t value = 0;
  EXPECT_EQ(fingerprint(memory.data(), memory.size(), value), Look::kSeen);
  return value;
}

TEST(Fingerprint, OfShortMemorySeesEveryByte) {
  for (const size_t size : {1, 2, 64, 4095, 4096}) {
    std::vector<uint8_t> memory(size, 1);
    const uint32_t before = of(memory);
    for (const size_t at : {size_t{0}, size / 2, size - 1}) {
      memory[at] = 2;
      EXPECT_NE(of(memory), before) << size << " " << at;
      memory[at] = 1;
    }
    EXPECT_EQ(of(memory), before);
  }
}

TEST(Fingerprint, OfLongMemorySeesBothEndsAndPiecesBetween) {
  std::vector<uint8_t> memory(1 << 20, 1);
  const uint32_t before = of(memory);
  for (const size_t at : {size_t{0}, memory.size() - 1}) {
    memory[at] = 2;
    EXPECT_NE(of(memory), before) << at;
    memory[at] = 1;
  }
  std::fill(memory.begin() + 4096, memory.end() - 4096, 2);
  EXPECT_NE(of(memory), before);
}

TEST(Fingerprint, OfMemoryThatCannotBeReadIsNone) {
  constexpr size_t kPage = 4096;
  auto* const pages = static_cast<uint8_t*>(
      mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(munmap(pages + kPage, kPage), 0);
  uint32_t value = 0;
  EXPECT_EQ(fingerprint(pages + kPage, 8, value), Look::kUnreadable);
  EXPECT_EQ(fingerprint(pages + kPage - 8, 16, value), Look::kUnreadable);
  EXPECT_EQ(fingerprint(pages + kPage - 8, 8, value), Look::kSeen);
  EXPECT_EQ(fingerprint(nullptr, 0, value), Look::kSeen);
  ASSERT_EQ(mprotect(pages, kPage, PROT_NONE), 0);
  EXPECT_EQ(fingerprint(pages, 8, value), Look::kUnreadable);
  munmap(pages, kPage);
}

TEST(Fingerprint, OfARequestIsThatOfItsSges) {
  static uint8_t memory[256];
  Region region;
  region.stag = 1;
  region.memory = memory;
  region.start = 0x1000;  // not the address
  region.length = sizeof memory;
  Regions regions;
  const uint32_t lkey = regions.add(region).lkey;
  Request request;
  request.role = Role::kSource;
  const ibv_sge sges[] = {{0x1000, 8, lkey}, {0x1080, 8, lkey}};
  request.sges = sges;
  const Memory before = memory_of(request, regions);
  ASSERT_TRUE(before.fingerprint);
  memory[8] = 1;  // between them
  EXPECT_EQ(memory_of(request, regions).fingerprint, before.fingerprint);
  memory[0x87] = 1;
  EXPECT_NE(memory_of(request, regions).fingerprint, before.fingerprint);
}

TEST(Fingerprint, IsNoneOfWhatIsNotRegisteredOrNotKnown) {
  const Regions none;
  Request request;
  request.role = Role::kSource;
  const ibv_sge sge = {0x1000, 8, 7};
  request.sges = {&sge, 1};
  EXPECT_FALSE(memory_of(request, none).fingerprint);
  EXPECT_TRUE(memory_of(request, none).readable);
  request.role = Role::kSink;
  EXPECT_FALSE(memory_of(request, none).fingerprint);
}

}  // namespace
}  // namespace uiw::check
