// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How much is handed to TCP at once: as many of the kernel's packets as are filled by it.
#include <gtest/gtest.h>

#include "support/hinted_machine.h"
#include "support/scene.h"

namespace uiw::test {
namespace {

// What TCP puts into one packet: whole segments, 64 KiB with all headers.
constexpr size_t packet_of(size_t emss) {
  return emss * std::max<size_t>(1, 65200 / emss);
}

// Octets of each batch but the last one.
std::vector<size_t> batches_of(Machine& m, size_t message) {
  Buffer from(m.memory, pattern(message));
  m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}).to(0, 9));
  std::vector<size_t> sizes;
  while (m.tx().fill()) {
    sizes.push_back(m.pending().size());
    m.take(sizes.back());
  }
  EXPECT_FALSE(sizes.empty());
  if (!sizes.empty()) sizes.pop_back();
  return sizes;
}

// What is copied under a CRC is half as much.
TEST(Batch, EndsWithinTheSixteenthPacketOrTheEighth) {
  for (bool crc : {true, false})
    for (uint32_t emss : {1448u, 8948u, 65483u}) {
      SCOPED_TRACE(testing::Message() << emss << (crc ? ", CRC" : ""));
      const size_t packets = crc ? 8 : 16;
      HintedMachine m({.crc = crc});
      m.tx().set_emss(emss);
      const std::vector<size_t> batches = batches_of(m, 4 << 20);
      ASSERT_GE(batches.size(), 4u);
      for (size_t octets : batches) {
        EXPECT_GT(octets, (packets - 1) * packet_of(emss));
        EXPECT_LE(octets, packets * packet_of(emss));
      }
    }
}

TEST(Batch, OfOneSegmentFpdusFillsThreePackets) {
  Machine m({.emss = 1448});
  const std::vector<size_t> batches = batches_of(m, 1 << 20);
  ASSERT_GE(batches.size(), 5u);
  for (size_t octets : batches) EXPECT_EQ(octets, 3 * packet_of(1448));
}

// Not a packet's share less because the path got narrow or wide meanwhile.
TEST(Batch, FollowsTheEmss) {
  HintedMachine m({.crc = true});
  for (uint32_t emss : {1448u, 8948u, 1448u}) {
    m.tx().set_emss(emss);
    for (size_t octets : batches_of(m, 3 << 20))
      EXPECT_EQ((octets + packet_of(emss) - 1) / packet_of(emss), 8u) << emss;
  }
}

}  // namespace
}  // namespace uiw::test
