// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Before which messages empty Writes go, so that the payload lies elsewhere in its page.
#include "qp/stagger.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/pages.h"
#include "core/tuning.h"
#include "support/hinted_machine.h"
#include "support/scene.h"

namespace uiw::test {
namespace {

constexpr size_t kPage = core::kPage, kLength = 64 << 10;
constexpr MachineOptions kStaggering{.crc = false, .stagger = true};

// Enough memory for `length` octets from anywhere in the first whole page.
struct Source : Buffer {
  explicit Source(Machine& m, size_t length = kLength)
      : Buffer(m.memory, pattern(length + 2 * kPage)) {}
  size_t page() const { return (kPage - start() % kPage) % kPage; }
  ibv_sge from(size_t offset, size_t length = kLength) const {
    return sge(page() + offset, length);
  }
};
Octets empty_write() {
  return tagged(0, 1, 0, {});
}
SendWr message(ibv_wr_opcode opcode, std::vector<ibv_sge> sges) {
  return SendWr(opcode, std::move(sges)).to(0x1000, 9);
}

// How many empty Writes come first. Behind them the message has to be as it always is.
size_t before(Machine& m, SendWr wr) {
  const bool write = wr.wr.opcode == IBV_WR_RDMA_WRITE;
  EXPECT_EQ(m.post(std::move(wr)), 0);
  const std::vector<Octets> ulpdus = ulpdus_of(m.transmit(), false);
  const auto first = std::find_if(ulpdus.begin(), ulpdus.end(),
                                  [](const Octets& u) { return u != empty_write(); });
  EXPECT_NE(first, ulpdus.end());
  EXPECT_EQ(std::count(first, ulpdus.end(), empty_write()), 0);
  EXPECT_EQ((*first)[0] & 0x80, write ? 0x80 : 0);
  m.sent();  // its place in the queue is free again
  return static_cast<size_t>(first - ulpdus.begin());
}

TEST(Stagger, StumblesWhereMoreIsLoadedThanHasBeenStored) {
  using qp::stagger::stumbles;
  const uint64_t page = 0x7f0000000000;
  for (uint64_t position : {0u, 20u, 4000u, 70000u}) {
    for (uint64_t ahead : {1u, 20u, 63u})
      EXPECT_TRUE(stumbles(position + ahead, page + position)) << position << " " << ahead;
    for (uint64_t ahead : {0u, 64u, 2048u, 4095u})
      EXPECT_FALSE(stumbles(position + ahead, page + position)) << position << " " << ahead;
  }
}

TEST(Stagger, PutsEmptyWritesBeforeAPayloadThatBeginsAPage) {
  HintedMachine m(kStaggering);
  Source source(m);
  // 20 octets of header, as many for each empty Write: the fourth place is 80 octets on. A tagged
  // header has 16, so it is 76.
  EXPECT_EQ(before(m, message(IBV_WR_SEND, {source.from(0)})), 3u);
  EXPECT_EQ(before(m, message(IBV_WR_RDMA_WRITE, {source.from(0)})), 3u);
  EXPECT_EQ(before(m, message(IBV_WR_SEND, {source.from(0)})), 3u);
}

TEST(Stagger, PutsAsManyAsItTakes) {
  HintedMachine m(kStaggering);
  Source source(m);
  for (size_t offset = 0; offset < kPage; offset += 5) {  // each place in a line
    size_t needed = 0;
    while (qp::stagger::stumbles(20 + 20 * needed, offset)) ++needed;
    ASSERT_EQ(before(m, message(IBV_WR_SEND, {source.from(offset)})), needed) << offset;
    ASSERT_LE(needed, 4u);
  }
}

TEST(Stagger, GoesBeforeALengthHint) {
  HintedMachine m(kStaggering);
  const uint32_t length = 200000;
  Source source(m, length);
  m.post(message(IBV_WR_SEND, {source.from(0, length)}));
  const std::vector<Octets> ulpdus = ulpdus_of(m.transmit(), false);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(ulpdus[i], empty_write());
  EXPECT_EQ(to_hex({ulpdus[3].data() + 6, 8}), "7569776d00030d40");
  EXPECT_EQ(ulpdus.size(), 8u);
}

TEST(Stagger, LeavesAloneWhatGainsNothing) {
  HintedMachine m(kStaggering), unwanted({.crc = false});
  Source source(m), other(unwanted);
  EXPECT_EQ(before(m, message(IBV_WR_SEND, {source.from(0, core::tuning::kLargePayload - 1)})), 0u);
  EXPECT_EQ(before(m, message(IBV_WR_SEND, {source.from(0, 100), source.from(100)})), 0u);
  EXPECT_EQ(before(unwanted, message(IBV_WR_SEND, {other.from(0)})), 0u);
  // What has markers or a CRC is copied anyway.
  for (MachineOptions options :
       {MachineOptions{.crc = true, .stagger = true},
        MachineOptions{.crc = false, .tx_markers = true, .stagger = true}}) {
    HintedMachine copied(options);
    Source third(copied);
    copied.post(message(IBV_WR_SEND, {third.from(0)}));
    const size_t with = copied.transmit().size();
    options.stagger = false;
    HintedMachine plain(options);
    Source fourth(plain);
    plain.post(message(IBV_WR_SEND, {fourth.from(0)}));
    EXPECT_EQ(with, plain.transmit().size());
  }
  m.tx().set_emss(core::tuning::kLargePayload - 1);
  EXPECT_EQ(before(m, message(IBV_WR_SEND, {source.from(0)})), 0u);
  m.tx().set_emss(core::tuning::kLargePayload);
  // Nor what comes behind something else: it lies anywhere.
  m.post(message(IBV_WR_SEND, {source.from(0)}));
  m.post(message(IBV_WR_SEND, {source.from(0)}));
  const std::vector<Octets> ulpdus = ulpdus_of(m.transmit(), false);
  EXPECT_EQ(std::count(ulpdus.begin(), ulpdus.end(), empty_write()), 3);
}

TEST(Stagger, IsOnlyForThosePeersThatAreKnown) {
  for (bool wanted : {true, false}) {
    Machine m({.crc = false, .emss = HintedMachine::kEmss, .long_fpdus = wanted, .stagger = true});
    Source source(m);
    m.post(message(IBV_WR_SEND, {source.from(0, core::tuning::kLargePayload)}));
    const std::vector<Octets> ulpdus = ulpdus_of(m.transmit(), false);
    EXPECT_EQ(std::count(ulpdus.begin(), ulpdus.end(), empty_write()), 0);
    // Where it would do it, it makes itself known.
    EXPECT_EQ(ulpdus[0] == tagged(0, 1, qp::kCapabilityHint, {}), wanted);
  }
}

}  // namespace
}  // namespace uiw::test
