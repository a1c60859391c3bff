// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/crc32c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

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

// Long inputs are taken in runs of whole turns: every number of them, and a run with the next one.
TEST(Crc32c, EveryNumberOfTurnsSideBySide) {
  constexpr size_t kTurn = 352;
  Octets data(130 * kTurn);
  std::mt19937 random(5);
  for (auto& octet : data) octet = static_cast<uint8_t>(random());
  for (size_t turns = 7; turns < 129; turns++) {
    for (const size_t beside : {0, 1, 63, 300, 351}) {
      const std::span<const uint8_t> piece(data.data() + turns % 64, turns * kTurn + beside);
      ASSERT_EQ(crc32c(piece.data(), piece.size()), test::reference_crc32c(piece)) << piece.size();
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

// Copied in blocks, in pieces and by the octet, wherever either side begins: the same octets, the
// same value, and nothing beside them.
TEST(Crc32cCopy, EveryLengthAroundBlocksAndPieces) {
  constexpr uint8_t kBeside = 0xa5;
  Octets data(40000);
  std::mt19937 random(4);
  for (auto& octet : data) octet = static_cast<uint8_t>(random());
  std::vector<size_t> sizes;
  for (size_t size = 0; size <= 1100; size++) sizes.push_back(size);
  for (size_t around : {16384u, 32768u})
    for (size_t size = around - 2; size <= around + 258; size += 1 + size % 3)
      sizes.push_back(size);
  for (const auto copy : {crc32c_copy, crc32c_copy_first}) {
    for (const size_t size : sizes) {
      const size_t from = random() % 80, to = random() % 80;
      const auto running = static_cast<uint32_t>(random());
      Octets copied(to + size + 64, kBeside);
      ASSERT_EQ(copy(running, &copied[to], &data[from], size),
                crc32c_update(running, &data[from], size))
          << size;
      ASSERT_TRUE(std::equal(&data[from], &data[from] + size, &copied[to])) << size;
      copied.erase(copied.begin() + static_cast<ptrdiff_t>(to),
                   copied.begin() + static_cast<ptrdiff_t>(to + size));
      ASSERT_EQ(copied, Octets(to + 64, kBeside)) << size;
    }
  }
}

#if !defined(__SANITIZE_THREAD__)

// The value is that of the copy, whatever happens to what is copied. (A race on purpose.)
TEST(Crc32cCopy, IsOfWhatWasCopied) {
  Octets data(16384, 0), copied(data.size());
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint8_t value = 0; !stop; value++)
      for (size_t i = 0; i < data.size(); i += 61)
        __atomic_store_n(&data[i], value, __ATOMIC_RELAXED);
  });
  for (int i = 0; i < 20000; i++) {
    const uint32_t value = crc32c_copy(crc32c_begin(), copied.data(), data.data(), data.size());
    if (value != crc32c_update(crc32c_begin(), copied.data(), copied.size())) {
      ADD_FAILURE() << "in round " << i;
      break;
    }
  }
  stop = true;
  writer.join();
}

#endif

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
  Octets copied(data.size());
  for (const size_t size : {1, 64, 255, 256, 1444, 4096, 70000}) {
    EXPECT_NE(crc32c(data.data(), size), 0u);
    EXPECT_EQ(registers_in_use() & (kUpperHalvesOfYmm | kUpperHalvesOfZmm), 0u) << size;
    EXPECT_NE(crc32c_copy(0, copied.data(), data.data(), size), 0u);
    EXPECT_EQ(registers_in_use() & (kUpperHalvesOfYmm | kUpperHalvesOfZmm), 0u) << size;
  }
}

#endif

}  // namespace
}  // namespace uiw::core
