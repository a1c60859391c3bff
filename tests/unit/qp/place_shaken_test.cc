// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Writes as they are placed under --shake.
#include "qp/place_shaken.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/direct_placement.h"
#include "support/scene.h"

namespace uiw::test {
namespace {

using qp::RxStatus;

constexpr uint64_t kStart = 0x10000;

// Never 0, so that what is not there yet shows.
Octets filled(size_t size) {
  Octets content(size);
  for (size_t i = 0; i < size; ++i) content[i] = static_cast<uint8_t>(1 + i % 255);
  return content;
}

TEST(PlaceShaken, TheEndIsThereBeforeAnythingElse) {
  for (const size_t size : {1, 8, 9, 100, 4096}) {
    const Octets content = filled(size);
    Octets memory(size, 0);
    const size_t end = std::min<size_t>(size, qp::kPlacedLast);
    bool paused = false;
    qp::place_end_first(memory.data(), content, [&] {
      paused = true;
      EXPECT_TRUE(std::equal(content.end() - static_cast<std::ptrdiff_t>(end), content.end(),
                             memory.end() - static_cast<std::ptrdiff_t>(end)));
      EXPECT_EQ(std::ranges::count(memory, 0), static_cast<std::ptrdiff_t>(size - end));
    });
    EXPECT_TRUE(paused);
    EXPECT_EQ(memory, content);
  }
}

TEST(PlaceShaken, SeedsPlaceInSeveralWaysOneOfThemThatOfEverybody) {
  std::set<qp::Place> ways;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_EQ(qp::place_by(seed), qp::place_by(seed));
    ways.insert(qp::place_by(seed));
  }
  EXPECT_EQ(ways.size(), 3u);
  EXPECT_TRUE(ways.contains(qp::place));
}

int placed_parts;

void count_and_place(uint8_t* to, core::Bytes payload) {
  ++placed_parts;
  qp::place_end_first(to, payload, [] {});
}

// What `frame_of` makes of the content and the memory's STag arrives in two parts.
template <class FrameOf>
void expect_whole_and_not_direct(FrameOf&& frame_of) {
  constexpr size_t kSize = 20000, kFirst = 1000;
  for (const bool crc : {true, false}) {
    const Octets content = filled(kSize);
    Octets memory(kSize, 0);
    placed_parts = 0;
    Machine m({.crc = crc});
    m.connection->shared.place = count_and_place;
    const uint32_t stag = *m.memory.add(kPd, memory.data(), kStart, kSize, kAllAccess, kMaxRegions);
    const Octets octets = fpdu(frame_of(m, stag, content), crc);
    ASSERT_EQ(m.feed({octets.data(), kFirst}), RxStatus::kOk);
    qp::DirectPlacement placement;
    EXPECT_FALSE(m.rx().plan_placement(placement));
    EXPECT_EQ(m.feed({octets.data() + kFirst, octets.size() - kFirst}), RxStatus::kOk);
    EXPECT_EQ(placed_parts, crc ? 1 : 2);
    EXPECT_EQ(memory, content);
  }
}

TEST(PlaceShaken, WritesAreWholeAndNotReceivedDirectly) {
  expect_whole_and_not_direct([](Machine&, uint32_t stag, const Octets& content) {
    return tagged(0, stag, kStart, content);
  });
}

TEST(PlaceShaken, SendsAreWholeAndNotReceivedDirectly) {
  expect_whole_and_not_direct([](Machine& m, uint32_t stag, const Octets& content) {
    m.receive(RecvWr({{kStart, static_cast<uint32_t>(content.size()), stag}}, 7));
    return untagged(3, 0, 1, 0, content, true);
  });
}

}  // namespace
}  // namespace uiw::test
