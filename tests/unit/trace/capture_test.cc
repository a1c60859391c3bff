// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What traces tell of connections, and the capture that is made of it.
#include "trace/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "core/be.h"
#include "core/crc32c.h"
#include "mpa/markers.h"

namespace uiw::trace {
namespace {

using testing::ElementsAre;

// MPA Request and Reply behind their keys: revision 2, enhanced, depths 16 and 16, A and D.
constexpr uint8_t kPlain = 0x50, kMarked = 0xd0;
Agreed agreed_with(uint8_t request_flags, uint8_t reply_flags) {
  return {.began = 1000,
          .agreed = 2000,
          .request = {request_flags, 2, 0, 4, 0x80, 16, 0x40, 16},
          .reply = {reply_flags, 2, 0, 6, 0x80, 16, 0x40, 16}};
}

constexpr bool kFromHere = true, kFromPeer = false;

// A process that has recorded one connection, 127.0.0.1:4711 to 127.0.0.2:7174 or the other way
// round.
class Recorded {
 public:
  explicit Recorded(bool initiator, Agreed agreed = agreed_with(kPlain, kPlain)) {
    snapshot.pid = initiator ? 1 : 2;
    snapshot.program = "p";
    snapshot.boot = "same";
    Record& connected = add(Kind::kConnected, 2000);
    Addresses at{};
    at.local[10] = at.local[11] = at.peer[10] = at.peer[11] = 0xff;
    at.local[12] = at.peer[12] = 127;
    at.local[15] = 1;
    at.peer[15] = 2;
    at.local_port = 4711;
    at.peer_port = 7174;
    connected.addresses = initiator ? at : turned(at);
    Record& how = add(Kind::kAgreed, 2000);
    how.flags = initiator ? kInitiator : 0;
    how.agreed = agreed;
  }
  Record& add(Kind kind, int64_t time) {
    Record record{};
    record.sequence = snapshot.records.size() + 1;
    record.kind = kind;
    record.qp = 7;
    record.time = time;
    return snapshot.records.emplace_back(record);
  }
  // `head` is what is known of the ULPDU.
  void fpdu(bool sent, int64_t time, uint32_t position, uint16_t size,
            const std::vector<uint8_t>& head) {
    Record& record = add(Kind::kFpdu, time);
    record.flags = sent ? kSent : 0;
    record.status = static_cast<uint8_t>(head.size());
    record.fpdu = {.position_low = position, .position_high = 0, .ulpdu_size = size, .head = {}};
    const size_t first = std::min(head.size(), sizeof record.fpdu.head);
    std::memcpy(record.fpdu.head, head.data(), first);
    if (first == head.size()) return;
    Record& rest = add(Kind::kFpduRest, time);
    rest.flags = sent ? kSent : 0;
    std::memset(rest.rest, 0, sizeof rest.rest);
    std::memcpy(rest.rest, head.data() + first, head.size() - first);
  }

  Snapshot snapshot;
};

const std::vector<uint8_t> kWrite = {0xc1, 0x40, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1};

std::vector<uint8_t> captured(const Wire& wire, uint64_t left_out = 0) {
  char* octets = nullptr;
  size_t size = 0;
  std::FILE* const out = open_memstream(&octets, &size);
  EXPECT_TRUE(write_capture(wire, left_out, out));
  std::fclose(out);
  const std::vector<uint8_t> copy(octets, octets + size);
  std::free(octets);
  return copy;
}

struct Packet {
  uint64_t time;
  std::vector<uint8_t> octets;  // from IP on
};

// The packets of a capture whose blocks are whole.
std::vector<Packet> packets_of(const std::vector<uint8_t>& capture) {
  std::vector<Packet> packets;
  const auto word = [&](size_t at) {
    uint32_t value;
    std::memcpy(&value, capture.data() + at, sizeof value);
    return value;
  };
  for (size_t at = 0; at + 12 <= capture.size(); at += word(at + 4)) {
    EXPECT_EQ(word(at + word(at + 4) - 4), word(at + 4));
    if (word(at) != 6) continue;
    const auto* const octets = capture.data() + at + 28;
    packets.push_back(
        {uint64_t{word(at + 12)} << 32 | word(at + 16), {octets, octets + word(at + 20)}});
  }
  return packets;
}

std::vector<uint8_t> payload_of(const Packet& packet, size_t headers = 40) {
  return {packet.octets.begin() + static_cast<long>(headers), packet.octets.end()};
}

std::string hex(const std::vector<uint8_t>& octets) {
  std::string text;
  for (size_t i = 0; i < octets.size(); ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x", octets[i]);
    text += digits;
    if (i % 4 == 3) text += i % 32 == 31 ? '\n' : ' ';
  }
  return text;
}

TEST(Capture, HasTheseOctets) {
  Recorded recorded(true);
  recorded.fpdu(kFromHere, 3000, 0, 17, kWrite);
  const std::vector<Snapshot> all = {recorded.snapshot};
  std::vector<uint8_t> capture = captured(wire_of(all));
  // Without the first block, which is prose.
  uint32_t first = 0;
  std::memcpy(&first, capture.data() + 4, sizeof first);
  capture.erase(capture.begin(), capture.begin() + first);
  // Interface: raw IP, nanoseconds. Then SYN with a comment, SYN and ACK, ACK, Request, Reply, and
  // the Write of three bytes.
  EXPECT_EQ(hex(capture),
            "01000000 2c000000 65000000 00000000 02000600 75697761 72700000 09000100\n"
            "09000000 00000000 2c000000 06000000 88000000 00000000 00000000 e8030000\n"
            "30000000 30000000 45000030 00004000 40063cc5 7f000001 7f000002 12671c06\n"
            "00000000 00000000 7002ffff 5d7d0000 0204ffd7 0103030e 01003000 696e6974\n"
            "6961746f 723a2071 75657565 20706169 72203078 30303030 3037206f 66207072\n"
            "6f636573 7320312c 20702e20 00000000 88000000 06000000 50000000 00000000\n"
            "00000000 e8030000 30000000 30000000 45000030 00004000 40063cc5 7f000002\n"
            "7f000001 1c061267 00000000 00000001 7012ffff 5d6c0000 0204ffd7 0103030e\n"
            "50000000 06000000 48000000 00000000 00000000 e8030000 28000000 28000000\n"
            "45000028 00004000 40063ccd 7f000001 7f000002 12671c06 00000001 00000001\n"
            "5010ffff 83620000 48000000 06000000 60000000 00000000 00000000 e8030000\n"
            "40000000 40000000 45000040 00004000 40063cb5 7f000001 7f000002 12671c06\n"
            "00000001 00000001 5018ffff 15960000 4d504120 49442052 65712046 72616d65\n"
            "50020004 80104010 60000000 06000000 64000000 00000000 00000000 d0070000\n"
            "42000000 42000000 45000042 00004000 40063cb3 7f000002 7f000001 1c061267\n"
            "00000001 00000019 5018ffff 157b0000 4d504120 49442052 65702046 72616d65\n"
            "50020006 80104010 00000000 64000000 06000000 60000000 00000000 00000000\n"
            "b80b0000 40000000 40000000 45000040 00004000 40063cb5 7f000001 7f000002\n"
            "12671c06 00000019 0000001b 5018ffff 675b0000 0011c140 00000009 00000000\n"
            "00000001 00000000 8a64cff4 60000000 ");
}

TEST(Capture, HasHandshakeFramesAndFpdusInOrder) {
  Recorded recorded(true);
  std::vector<uint8_t> read(46);  // a Read Request: more than one record
  read[0] = 0x41, read[1] = 0x41, read[45] = 0x77;
  recorded.fpdu(kFromHere, 3000, 0, 46, read);
  recorded.fpdu(kFromPeer, 3500, 0, 1014, kWrite);
  recorded.fpdu(kFromHere, 4000, 52, 14, kWrite);
  const std::vector<Snapshot> all = {recorded.snapshot};
  const std::vector<Packet> packets = packets_of(captured(wire_of(all)));
  ASSERT_EQ(packets.size(), 8u);
  const auto number = [&](size_t i, size_t at) {
    return core::load_be32(packets[i].octets.data() + at);
  };
  // Each has the sequence number that the one before it has acknowledged.
  EXPECT_EQ(number(3, 24), 1u);
  EXPECT_EQ(number(4, 28), 25u);
  EXPECT_EQ(number(5, 24), 25u);
  EXPECT_EQ(number(5, 28), 27u);
  EXPECT_EQ(number(6, 24), 27u);
  EXPECT_EQ(number(6, 28), 25u + 52);
  EXPECT_EQ(number(7, 24), 25u + 52);
  EXPECT_EQ(number(7, 28), 27u + 1020);
  const std::vector<uint8_t> request = payload_of(packets[5]);
  ASSERT_EQ(request.size(), 52u);
  EXPECT_EQ(std::vector(request.begin() + 2, request.begin() + 48), read);
  const std::vector<uint8_t> write = payload_of(packets[6]);
  uint32_t crc;
  std::memcpy(&crc, write.data() + write.size() - 4, sizeof crc);
  EXPECT_EQ(crc, core::crc32c(write.data(), write.size() - 4));
  EXPECT_EQ(core::load_be16(write.data()), 1014);
  EXPECT_THAT(std::vector(write.begin() + 16, write.end() - 4), testing::Each(0));
}

TEST(Capture, MarksWhatThePeerWantsMarked) {
  Recorded recorded(true, agreed_with(kPlain, kMarked));
  recorded.fpdu(kFromHere, 3000, 0, 1014, kWrite);
  recorded.fpdu(kFromPeer, 3000, 0, 1014, kWrite);
  const std::vector<Snapshot> all = {recorded.snapshot};
  const std::vector<Packet> packets = packets_of(captured(wire_of(all)));
  ASSERT_EQ(packets.size(), 7u);
  const std::vector<uint8_t> marked = payload_of(packets[5]);
  EXPECT_EQ(payload_of(packets[6]).size(), 1020u);
  ASSERT_EQ(marked.size(), mpa::marked_size(0, 1020));
  std::vector<uint8_t> plain(marked.size());
  EXPECT_TRUE(mpa::strip_markers(marked, 0, plain.data()));
  EXPECT_EQ(std::vector(plain.begin() + 2, plain.begin() + 16), kWrite);
}

TEST(Capture, OfBothEndsHasEachFpduOnce) {
  Recorded initiator(true), responder(false);
  initiator.fpdu(kFromHere, 3000, 0, 14, kWrite);
  responder.fpdu(kFromPeer, 3100, 0, 14, kWrite);
  // Of this one only its arrival is still known.
  responder.fpdu(kFromPeer, 3200, 20, 14, kWrite);
  responder.fpdu(kFromHere, 3300, 0, 14, kWrite);
  initiator.fpdu(kFromPeer, 3400, 0, 14, kWrite);
  const std::vector<Snapshot> all = {responder.snapshot, initiator.snapshot};
  const Wire wire = wire_of(all);
  ASSERT_EQ(wire.connections.size(), 1u);
  EXPECT_EQ(wire.connections[0].addresses.local_port, 4711);
  EXPECT_EQ(wire.connections[0].ends,
            "initiator: queue pair 0x000007 of process 1, p. responder: queue pair 0x000007 of "
            "process 2, p. ");
  std::vector<int64_t> times;
  for (const WireFpdu& fpdu : wire.fpdus) times.push_back(fpdu.time);
  EXPECT_THAT(times, ElementsAre(3000, 3200, 3300));
  EXPECT_FALSE(wire.fpdus[2].by_initiator);
}

TEST(Capture, NamesAProgramHoweverLongItsNameIs) {
  Recorded recorded(true);
  recorded.snapshot.program = std::string(200, 'p');
  const std::vector<Snapshot> all = {recorded.snapshot};
  const Wire wire = wire_of(all);
  ASSERT_EQ(wire.connections.size(), 1u);
  EXPECT_THAT(wire.connections[0].ends, testing::EndsWith(recorded.snapshot.program + ". "));
}

TEST(Capture, OfTheResponderAloneIsTheSame) {
  Recorded initiator(true), responder(false);
  initiator.fpdu(kFromHere, 3000, 0, 14, kWrite);
  initiator.fpdu(kFromPeer, 4000, 0, 100, kWrite);
  responder.fpdu(kFromPeer, 3000, 0, 14, kWrite);
  responder.fpdu(kFromHere, 4000, 0, 100, kWrite);
  const std::vector<Snapshot> one = {initiator.snapshot}, other = {responder.snapshot};
  const auto octets = [](const std::vector<Snapshot>& snapshots) {
    std::vector<std::vector<uint8_t>> all;
    for (const Packet& packet : packets_of(captured(wire_of(snapshots))))
      all.push_back(packet.octets);
    return all;
  };
  EXPECT_EQ(octets(one), octets(other));
}

TEST(Capture, CountsFpdusOfConnectionsWhoseBeginningIsLost) {
  Recorded recorded(true);
  recorded.fpdu(kFromHere, 3000, 0, 14, kWrite);
  recorded.snapshot.records.erase(recorded.snapshot.records.begin() + 1);  // kAgreed
  const std::vector<Snapshot> all = {recorded.snapshot};
  const Wire wire = wire_of(all);
  EXPECT_EQ(wire.unplaced, 1u);
  EXPECT_TRUE(wire.fpdus.empty());
}

TEST(Capture, HasFpdusOfAConnectionThatIsToldAgain) {
  Recorded recorded(true);
  std::vector<uint8_t> read(46, 0x41);
  recorded.fpdu(kFromHere, 3000, 1000, 46, read);
  const Addresses addresses = recorded.snapshot.records[0].addresses;
  recorded.add(Kind::kStands, 3001).addresses = addresses;
  Record& agreed = recorded.add(Kind::kAgreed, 3001);
  agreed.flags = kInitiator;
  agreed.agreed = agreed_with(kPlain, kPlain);
  recorded.fpdu(kFromHere, 3002, 1052, 14, kWrite);
  std::vector<Snapshot> all = {recorded.snapshot};
  const std::vector<uint8_t> whole = captured(wire_of(all));
  // The first records are lost.
  all[0].records.erase(all[0].records.begin(), all[0].records.begin() + 2);
  const Wire wire = wire_of(all);
  EXPECT_EQ(wire.unplaced, 0u);
  EXPECT_EQ(wire.fpdus.size(), 2u);
  EXPECT_EQ(captured(wire), whole);
}

TEST(Capture, LeavesOutTheOldestWhereThereIsNoRoom) {
  Recorded recorded(true);
  for (uint32_t i = 0; i < 10; ++i) recorded.fpdu(kFromHere, 3000 + i, i * 1020, 1014, kWrite);
  const std::vector<Snapshot> all = {recorded.snapshot};
  const Wire wire = wire_of(all);
  EXPECT_EQ(surplus_of(wire), 0u);
  const uint64_t surplus = surplus_of(wire, 4 * (1020 + 40 + 32));
  EXPECT_EQ(surplus, 6u);
  const std::vector<Packet> packets = packets_of(captured(wire, surplus));
  ASSERT_EQ(packets.size(), 5u + 4);
  EXPECT_EQ(packets[5].time, 3006u);
  EXPECT_EQ(core::load_be32(packets[5].octets.data() + 24), 25u + 6 * 1020);
}

TEST(Capture, PutsWhatIsLongerThanAPacketIntoTwo) {
  Recorded recorded(true);
  recorded.fpdu(kFromHere, 3000, 0, 65535, kWrite);
  const std::vector<Snapshot> all = {recorded.snapshot};
  const std::vector<Packet> packets = packets_of(captured(wire_of(all)));
  ASSERT_EQ(packets.size(), 7u);
  EXPECT_EQ(packets[5].octets.size(), 65535u);
  EXPECT_EQ(core::load_be32(packets[6].octets.data() + 24), 25u + 65495);
  EXPECT_EQ(packets[6].octets.size() - 40, mpa::fpdu_size(65535) - 65495);
}

}  // namespace
}  // namespace uiw::trace
