// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "qp/fpdu_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace uiw::qp {
namespace {

using testing::ElementsAre;

struct Seen {
  uint64_t position;
  uint32_t size;
  std::vector<uint8_t> head;
  bool operator==(const Seen&) const = default;
};

// ULPDUs of these sizes, whose octets count up from their index; control octets as given.
std::vector<uint8_t> ulpdu(uint8_t ddp_control, uint8_t rdmap_control, size_t size) {
  std::vector<uint8_t> octets(size);
  for (size_t i = 0; i < size; ++i) octets[i] = static_cast<uint8_t>(i);
  if (size > 0) octets[0] = ddp_control;
  if (size > 1) octets[1] = rdmap_control;
  return octets;
}

std::vector<uint8_t> stream_of(const std::vector<std::vector<uint8_t>>& ulpdus, bool markers) {
  std::vector<uint8_t> stream;
  for (const std::vector<uint8_t>& each : ulpdus) {
    std::vector<uint8_t> plain(mpa::kLengthSize);
    core::store_be16(plain.data(), static_cast<uint16_t>(each.size()));
    plain.insert(plain.end(), each.begin(), each.end());
    plain.resize(mpa::fpdu_size(static_cast<uint32_t>(each.size())));
    if (!markers) {
      stream.insert(stream.end(), plain.begin(), plain.end());
      continue;
    }
    std::vector<uint8_t> marked(mpa::kMaxMarkedFpdu);
    mpa::MarkerWriter writer(marked.data(), static_cast<uint32_t>(stream.size()));
    writer.put(plain.data(), static_cast<uint32_t>(plain.size()));
    stream.insert(stream.end(), writer.written().begin(), writer.written().end());
  }
  return stream;
}

std::vector<Seen> seen_in(core::Bytes stream, size_t piece, bool markers) {
  FpduScan scan(markers);
  std::vector<Seen> seen;
  for (size_t at = 0; at < stream.size(); at += piece)
    scan.feed(stream.subspan(at, std::min(piece, stream.size() - at)), [&] {
      seen.push_back(
          {scan.position(), scan.ulpdu_size(), {scan.head().begin(), scan.head().end()}});
    });
  return seen;
}

constexpr uint8_t kTagged = ddp::kTaggedFlag | ddp::kVersion, kUntagged = ddp::kVersion;

TEST(FpduScan, FindsTheSameHoweverTheBytesAreCutAndMarked) {
  const std::vector<std::vector<uint8_t>> ulpdus = {
      ulpdu(kTagged, rdmap::control(rdmap::Opcode::kWrite), 3000),
      ulpdu(kUntagged, rdmap::control(rdmap::Opcode::kReadRequest), 46),
      ulpdu(kUntagged, rdmap::control(rdmap::Opcode::kAtomicRequest), 70),
      ulpdu(kUntagged, rdmap::control(rdmap::Opcode::kSend), 21),
      ulpdu(kTagged, rdmap::control(rdmap::Opcode::kReadResponse), 14),
      ulpdu(kTagged, rdmap::control(rdmap::Opcode::kWrite), 505),
      ulpdu(kTagged, rdmap::control(rdmap::Opcode::kWrite), 494),
  };
  const size_t heads[] = {14, 46, 70, 18, 14, 14, 14};
  for (const bool markers : {false, true}) {
    const std::vector<uint8_t> stream = stream_of(ulpdus, markers);
    for (size_t piece = 1; piece < 600; piece += piece < 40 ? 1 : 37) {
      const std::vector<Seen> seen = seen_in(stream, piece, markers);
      ASSERT_EQ(seen.size(), ulpdus.size());
      uint64_t position = 0;
      for (size_t i = 0; i < seen.size(); ++i) {
        const auto size = static_cast<uint32_t>(ulpdus[i].size());
        EXPECT_EQ(seen[i].position, position);
        EXPECT_EQ(seen[i].size, size);
        EXPECT_EQ(seen[i].head,
                  std::vector(ulpdus[i].begin(), ulpdus[i].begin() + static_cast<long>(heads[i])));
        const uint32_t whole = mpa::fpdu_size(size);
        position += markers ? mpa::marked_size(static_cast<uint32_t>(position), whole) : whole;
      }
      EXPECT_EQ(position, stream.size());
    }
  }
}

TEST(FpduScan, KeepsNothingOfThePayloadOfPrograms) {
  for (const rdmap::Opcode opcode :
       {rdmap::Opcode::kSend, rdmap::Opcode::kSendInvalidate, rdmap::Opcode::kSendSe,
        rdmap::Opcode::kSendSeInvalidate, static_cast<rdmap::Opcode>(0xf)}) {
    const auto stream = stream_of({ulpdu(kUntagged, rdmap::control(opcode), 100)}, false);
    const std::vector<Seen> seen = seen_in(stream, 7, false);
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(seen[0].head.size(), ddp::kUntaggedHeaderSize);
  }
}

TEST(FpduScan, GoesOnBehindUlpdusThatAreTooShortForAnyHeader) {
  const auto stream = stream_of({{}, {kTagged}, {kTagged, 0x40}, {kUntagged, 0x47, 1}}, false);
  EXPECT_THAT(seen_in(stream, 3, false),
              ElementsAre(Seen{0, 0, {}}, Seen{8, 1, {kTagged}}, Seen{16, 2, {kTagged, 0x40}},
                          Seen{24, 3, {kUntagged, 0x47, 1}}));
}

}  // namespace
}  // namespace uiw::qp
