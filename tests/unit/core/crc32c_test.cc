// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/crc32c.h"

#include <gtest/gtest.h>

#include <random>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "support/vectors.h"

namespace uiw::core {
namespace {

using test::Octets;

TEST(Crc32c, CheckValue) {
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
}

// RFC 3720 B.4: the digests iSCSI gives for 32 octets of each pattern.
TEST(Crc32c, IscsiPatterns) {
  EXPECT_EQ(crc32c(Octets(32, 0x00).data(), 32), 0x8a9136aau);
  EXPECT_EQ(crc32c(Octets(32, 0xff).data(), 32), 0x62a8ab43u);
  Octets up(32);
  for (size_t i = 0; i < up.size(); i++) up[i] = static_cast<uint8_t>(i);
  EXPECT_EQ(crc32c(up.data(), up.size()), 0x46dd794eu);
  Octets down(up.rbegin(), up.rend());
  EXPECT_EQ(crc32c(down.data(), down.size()), 0x113fdb5cu);
}

TEST(Crc32c, NothingLeavesTheValueAlone) {
  EXPECT_EQ(crc32c(nullptr, 0), 0u);
  EXPECT_EQ(crc32c_update(0x12345678, nullptr, 0), 0x12345678u);
}

// Both ways of computing it and the border between them, at every alignment of the data.
TEST(Crc32c, EveryLengthAroundTheChoiceOfMethod) {
  Octets data(700);
  std::mt19937 random(1);
  for (auto& octet : data) octet = static_cast<uint8_t>(random());
  for (size_t offset = 0; offset < 9; offset++) {
    for (size_t size = 0; size <= 600; size++) {
      std::span<const uint8_t> piece(data.data() + offset, size);
      ASSERT_EQ(crc32c(piece.data(), size), test::reference_crc32c(piece)) << offset << " " << size;
    }
  }
}

TEST(Crc32c, RandomLengths) {
  std::mt19937 random(2);
  for (int i = 0; i < 100; i++) {
    Octets data(random() % 70000);
    for (auto& octet : data) octet = static_cast<uint8_t>(random());
    ASSERT_EQ(crc32c(data.data(), data.size()), test::reference_crc32c(data)) << data.size();
  }
}

// Fed in pieces of any size the value is the same.
TEST(Crc32c, Incremental) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; i++) {
    Octets data(1 + random() % 4000);
    for (auto& octet : data) octet = static_cast<uint8_t>(random());
    uint32_t running = crc32c_begin();
    for (size_t done = 0; done < data.size();) {
      size_t piece = std::min<size_t>(random() % 600, data.size() - done);
      running = crc32c_update(running, data.data() + done, piece);
      done += piece;
    }
    ASSERT_EQ(crc32c_end(running), crc32c(data.data(), data.size()));
  }
}

#if defined(__x86_64__)

// Which parts of the registers are in use (Intel SDM volume 1, 13.6); 0 where the CPU cannot tell.
uint64_t registers_in_use() {
  uint32_t eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE)) return 0;
  if (!__get_cpuid_count(0xd, 1, &eax, &ebx, &ecx, &edx) || !(eax & 1 << 2)) return 0;
  asm volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(1));
  return eax | uint64_t{edx} << 32;
}

// Upper halves that stay in use make the SSE instructions of everything that follows slow.
TEST(Crc32c, LeavesNoUpperHalvesOfVectorRegistersInUse) {
  constexpr uint64_t kUpperHalvesOfYmm = 1 << 2, kUpperHalvesOfZmm = 1 << 6;
  const Octets data(70000, 1);
  for (const size_t size : {1, 64, 255, 256, 1444, 4096, 70000}) {
    EXPECT_NE(crc32c(data.data(), size), 0u);
    EXPECT_EQ(registers_in_use() & (kUpperHalvesOfYmm | kUpperHalvesOfZmm), 0u) << size;
  }
}

#endif

}  // namespace
}  // namespace uiw::core
