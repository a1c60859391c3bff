// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Several segments of a message placed directly by one call, where the length of the message is
// known; and what happens where the peer sends something else.
#include <gtest/gtest.h>

#include "qp/peer_hints.h"
#include "support/direct_placement.h"
#include "support/scene.h"

namespace uiw::test {
namespace {

using qp::RxStatus;

constexpr size_t kSegment = 20001, kMessage = 3 * kSegment + 9000;
constexpr size_t kHead = 20;  // what is seen of a message before anything of it is placed

Octets length_hint(size_t length, size_t segment) {
  const qp::LengthHint hint{static_cast<uint32_t>(length), static_cast<uint32_t>(segment)};
  return fpdu(tagged(0, hint.segment, qp::length_hint_offset(hint), {}), false);
}
// A message in segments of that size, each made by segment(offset, octets, last).
template <class Make>
Octets cut(const Octets& content, size_t size, Make&& segment) {
  Octets out;
  for (size_t at = 0; at < content.size(); at += size) {
    const size_t end = std::min(at + size, content.size());
    out = concat(std::move(out), fpdu(segment(at,
                                              Octets(content.begin() + static_cast<ptrdiff_t>(at),
                                                     content.begin() + static_cast<ptrdiff_t>(end)),
                                              end == content.size()),
                                      false));
  }
  return out;
}
Octets a_write(const Buffer& to, const Octets& content, size_t segment = kSegment) {
  return cut(content, segment, [&](size_t at, const Octets& part, bool last) {
    return tagged(0, to.stag(), to.start() + at, part, last);
  });
}
Octets a_send(uint32_t msn, const Octets& content, size_t segment = kSegment) {
  return cut(content, segment, [&](size_t at, const Octets& part, bool last) {
    return untagged(3, 0, msn, static_cast<uint32_t>(at), part, last);
  });
}
Octets an_answer(uint32_t sink, const Octets& content, size_t segment = kSegment) {
  return cut(content, segment, [&](size_t at, const Octets& part, bool last) {
    return tagged(2, sink, at, part, last);
  });
}
// Posts a Read into `to` and says by what name the answer has to call it.
uint32_t read_into(Machine& m, const std::vector<ibv_sge>& to) {
  m.post(SendWr(IBV_WR_RDMA_READ, to).to(0x1000, 9));
  return core::load_be32(m.transmit().data() + 2 + 18);
}

enum class Kind { kRead, kWrite, kSend };
constexpr Kind kKinds[] = {Kind::kRead, Kind::kWrite, Kind::kSend};

// One end that is told `content` by the peer, in one way or another.
struct Scene {
  explicit Scene(Kind kind, size_t hinted = kMessage, size_t hinted_segment = kSegment)
      : kind_(kind), to(m.memory, Octets(kMessage + 1000, 0xee)) {
    const ibv_sge place = to.sge(500, kMessage);
    if (kind == Kind::kSend) m.receive(RecvWr({place}, 7));
    if (kind == Kind::kRead) sink_ = read_into(m, {place});
    if (kind != Kind::kRead) EXPECT_EQ(m.feed(length_hint(hinted, hinted_segment)), RxStatus::kOk);
  }
  Octets segment(size_t at, const Octets& part, bool last) const {
    if (kind_ == Kind::kSend) return untagged(3, 0, 1, static_cast<uint32_t>(at), part, last);
    if (kind_ == Kind::kRead) return tagged(2, sink_, at, part, last);
    return tagged(0, to.stag(), to.start() + 500 + at, part, last);
  }
  // The first segment as hinted, the others of `size`.
  Octets message(size_t size = kSegment) const {
    const auto first = content.begin() + kSegment;
    return concat(
        fpdu(segment(0, Octets(content.begin(), first), false), false),
        cut(Octets(first, content.end()), size, [&](size_t at, const Octets& part, bool last) {
          return segment(kSegment + at, part, last);
        }));
  }
  void expect_there() {
    const Octets around(500, 0xee);
    const Octets expected = concat(concat(around, content), around);
    EXPECT_TRUE(to.content() == expected);
    EXPECT_TRUE(m.rx().at_boundary());
    m.tx().retire();
    const std::vector<ibv_wc> done = kind_ == Kind::kRead ? m.sent() : m.received();
    if (kind_ == Kind::kWrite) return;
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(done[0].byte_len, kMessage);
  }

  Kind kind_;
  Machine m{{.crc = false, .long_fpdus = true}};
  Buffer to;
  Octets content = pattern(kMessage);
  uint32_t sink_ = 0;
};

TEST(RxDirect, AMessageOfKnownLengthIsReceivedByOneCall) {
  for (Kind kind : kKinds) {
    Scene scene(kind);
    const Octets message = scene.message();
    ASSERT_EQ(scene.m.feed({message.data(), kHead}), RxStatus::kOk);
    size_t placed = 0;
    ASSERT_EQ(receive_directly(scene.m.rx(), core::Bytes(message).subspan(kHead), &placed),
              RxStatus::kOk);
    // All but what is behind the last payload, and the end of a Write.
    const size_t trailer = 4 + -(2 + (kind == Kind::kSend ? 18 : 14) + kMessage % kSegment) % 4;
    EXPECT_EQ(placed, message.size() - kHead - trailer - (kind == Kind::kWrite ? 8 : 0));
    scene.expect_there();
  }
}

TEST(RxDirect, ItIsNoMoreThanTheMessageAndEightSegments) {
  for (Kind kind : kKinds) {
    Scene scene(kind);
    const Octets message = scene.message();
    ASSERT_EQ(scene.m.feed({message.data(), kHead}), RxStatus::kOk);
    qp::DirectPlacement placement;
    ASSERT_TRUE(scene.m.rx().plan_placement(placement));
    ASSERT_EQ(placement.count, 7u);
    const uint8_t* const begin = scene.to.data() + 500;
    for (size_t i = 0; i < placement.count; i += 2) {
      const auto* place = static_cast<const uint8_t*>(placement.pieces[i].iov_base);
      EXPECT_GE(place, begin);
      EXPECT_LE(place + placement.pieces[i].iov_len, begin + kMessage);
    }
    ASSERT_EQ(scene.m.rx().placed_directly(placement, 0), RxStatus::kOk);
  }
  Machine m({.crc = false});
  Buffer sink(m.memory, 20 * kSegment);
  const Octets content = pattern(sink.size());
  const Octets message = an_answer(read_into(m, {sink.sge()}), content);
  ASSERT_EQ(m.feed({message.data(), kHead}), RxStatus::kOk);
  size_t placed = 0;
  ASSERT_EQ(receive_directly(m.rx(), core::Bytes(message).subspan(kHead), &placed), RxStatus::kOk);
  EXPECT_GT(placed, 9 * kSegment);
  EXPECT_LT(placed, 9 * kSegment + 1000);
  EXPECT_TRUE(sink.content() == content);
}

TEST(RxDirect, ItMayEndAnywhere) {
  for (Kind kind : kKinds) {
    const size_t size = Scene(kind).message().size();
    std::vector<size_t> ends;
    for (size_t i = kHead; i < size; i += 4999) ends.push_back(i);
    const size_t fpdu_size = 2 + (kind == Kind::kSend ? 18 : 14) + kSegment;
    for (size_t whole = fpdu_size; whole < size; whole += (fpdu_size + 3) / 4 * 4 + 4)
      for (size_t i = whole - 10; i < std::min(whole + 36, size); ++i) ends.push_back(i);
    for (size_t end : ends) {
      SCOPED_TRACE(end);
      Scene scene(kind);
      const Octets message = scene.message();
      const core::Bytes octets = message;
      ASSERT_EQ(scene.m.feed(octets.first(kHead)), RxStatus::kOk);
      ASSERT_EQ(receive_directly(scene.m.rx(), octets.subspan(kHead, end - kHead)), RxStatus::kOk);
      ASSERT_EQ(receive_directly(scene.m.rx(), octets.subspan(end)), RxStatus::kOk);
      scene.expect_there();
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(RxDirect, ThePeerMayCutItOtherwise) {
  for (Kind kind : kKinds) {
    for (size_t size : {100u, 7000u, 20000u, 20002u, 30000u, 60000u}) {
      for (size_t first : {kHead, 30000ul, 50000ul}) {
        SCOPED_TRACE(testing::Message() << size << " " << first);
        Scene scene(kind);
        const Octets message = scene.message(size);
        const core::Bytes octets = message;
        ASSERT_EQ(scene.m.feed(octets.first(kHead)), RxStatus::kOk);
        ASSERT_EQ(receive_directly(scene.m.rx(), octets.subspan(kHead, first - kHead)),
                  RxStatus::kOk);
        ASSERT_EQ(receive_directly(scene.m.rx(), octets.subspan(first)), RxStatus::kOk);
        scene.expect_there();
      }
    }
  }
}

// A hint of more than comes: what follows was received to wrong places, and is taken from
// there.
TEST(RxDirect, WhatFollowsAMessageThatEndsEarlyIsNotLost) {
  for (size_t hinted : {2 * kSegment, kMessage, size_t{0xffffffff}}) {
    Machine m({.crc = false, .long_fpdus = true});
    Buffer first(m.memory, kMessage), second(m.memory, kMessage);
    m.receive(RecvWr({first.sge()}, 1));
    m.receive(RecvWr({second.sge()}, 2));
    const Octets content = pattern(kSegment), other = pattern(kMessage, 5);
    Octets stream = length_hint(hinted, kSegment);
    stream = concat(std::move(stream), fpdu(untagged(3, 0, 1, 0, content, false), false));
    stream = concat(std::move(stream), fpdu(untagged(3, 0, 1, kSegment, pattern(10), true), false));
    stream = concat(std::move(stream), a_send(2, other));
    ASSERT_EQ(m.feed({stream.data(), 20 + kHead}), RxStatus::kOk);
    ASSERT_EQ(receive_directly(m.rx(), core::Bytes(stream).subspan(20 + kHead)), RxStatus::kOk);
    const std::vector<ibv_wc> done = m.received();
    ASSERT_EQ(done.size(), 2u);
    EXPECT_EQ(done[0].byte_len, kSegment + 10);
    EXPECT_EQ(done[1].byte_len, kMessage);
    EXPECT_TRUE(std::equal(content.begin(), content.end(), first.data()));
    EXPECT_TRUE(second.content() == other);
  }
}

// The hint is of bytes in a row from where the Write began.
TEST(RxDirect, NothingIsExpectedOfAWriteThatGoesOnElsewhere) {
  Scene scene(Kind::kWrite);
  const Octets first = fpdu(scene.segment(0, pattern(kSegment), false), false);
  const Octets second = fpdu(scene.segment(kSegment + 4, pattern(kSegment), false), false);
  ASSERT_EQ(scene.m.feed(first), RxStatus::kOk);
  ASSERT_EQ(scene.m.feed({second.data(), kHead}), RxStatus::kOk);
  qp::DirectPlacement placement;
  ASSERT_TRUE(scene.m.rx().plan_placement(placement));
  EXPECT_EQ(placement.count, 1u);
}

// Of the size that is expected, but another.
TEST(RxDirect, ASegmentForAnotherPlaceGoesThere) {
  Scene scene(Kind::kWrite);
  Buffer other(scene.m.memory, kMessage);
  const Octets elsewhere = pattern(kSegment, 9);
  Octets stream = fpdu(scene.segment(0, pattern(kSegment), false), false);
  stream = concat(std::move(stream),
                  fpdu(tagged(0, other.stag(), other.start() + 7, elsewhere, false), false));
  stream =
      concat(std::move(stream), fpdu(scene.segment(kSegment, Octets(kSegment, 1), false), false));
  stream = concat(std::move(stream), fpdu(scene.segment(0, pattern(kSegment, 3), true), false));
  ASSERT_EQ(scene.m.feed({stream.data(), kHead}), RxStatus::kOk);
  ASSERT_EQ(receive_directly(scene.m.rx(), core::Bytes(stream).subspan(kHead)), RxStatus::kOk);
  const Octets first = pattern(kSegment, 3);
  const uint8_t* const place = scene.to.data() + 500;
  EXPECT_TRUE(std::equal(first.begin(), first.end(), place));
  EXPECT_EQ(Octets(place + kSegment, place + 2 * kSegment), Octets(kSegment, 1));
  EXPECT_TRUE(std::equal(elsewhere.begin(), elsewhere.end(), other.data() + 7));
}

TEST(RxDirect, WithoutALengthHintItIsOneSegment) {
  for (Kind kind : {Kind::kWrite, Kind::kSend}) {
    // None; of nothing; of another cut; of less than has come; not heard.
    for (auto [hinted, segment] : {std::pair<size_t, size_t>{0, 0},
                                   {0, kSegment},
                                   {kMessage, kSegment - 1},
                                   {kMessage, 0},
                                   {kSegment, kSegment},
                                   {kMessage, 0xffffffff}}) {
      Scene scene(kind, hinted, segment);
      const Octets message = scene.message();
      ASSERT_EQ(scene.m.feed({message.data(), kHead}), RxStatus::kOk);
      qp::DirectPlacement placement;
      ASSERT_TRUE(scene.m.rx().plan_placement(placement));
      EXPECT_EQ(placement.count, 1u) << hinted << " " << segment;
      ASSERT_EQ(scene.m.rx().placed_directly(placement, 0), RxStatus::kOk);
      ASSERT_EQ(receive_directly(scene.m.rx(), core::Bytes(message).subspan(kHead)), RxStatus::kOk);
      scene.expect_there();
    }
  }
}

TEST(RxDirect, ALengthHintIsOfOneMessage) {
  Machine m({.crc = false, .long_fpdus = true});
  Buffer to(m.memory, kMessage);
  Octets stream = length_hint(kMessage, kSegment);
  stream = concat(std::move(stream),
                  fpdu(tagged(0, 0, 0, {}), false));  // an empty Write uses no hint up
  stream = concat(std::move(stream), a_write(to, pattern(kMessage)));
  const size_t before = stream.size();
  stream = concat(std::move(stream), a_write(to, pattern(kMessage, 3)));
  ASSERT_EQ(m.feed({stream.data(), 40 + kHead}), RxStatus::kOk);
  size_t placed = 0;
  ASSERT_EQ(receive_directly(m.rx(), {stream.data() + 40 + kHead, before - 40 - kHead}, &placed),
            RxStatus::kOk);
  EXPECT_GT(placed, kMessage - 100);
  ASSERT_EQ(m.feed({stream.data() + before, kHead}), RxStatus::kOk);
  ASSERT_EQ(receive_directly(m.rx(), core::Bytes(stream).subspan(before + kHead), &placed),
            RxStatus::kOk);
  EXPECT_LT(placed, kSegment);
  EXPECT_TRUE(to.content() == pattern(kMessage, 3));
}

// RFC 5041 7.1: a range that the peer may not write to is none to receive to, whatever
// its hint says.
TEST(RxDirect, NothingIsReceivedOutsideOfARegion) {
  Machine m({.crc = false, .long_fpdus = true});
  Buffer to(m.memory, 2 * kSegment + 100);
  const Octets content = pattern(kMessage);
  Octets stream = length_hint(kMessage, kSegment);
  stream = concat(std::move(stream), a_write(to, content));
  ASSERT_EQ(m.feed({stream.data(), 20 + kHead}), RxStatus::kOk);
  qp::DirectPlacement placement;
  ASSERT_TRUE(m.rx().plan_placement(placement));
  EXPECT_EQ(placement.count, 1u);
  ASSERT_EQ(m.rx().placed_directly(placement, 0), RxStatus::kOk);
  EXPECT_EQ(receive_directly(m.rx(), core::Bytes(stream).subspan(20 + kHead)), RxStatus::kFault);
  EXPECT_EQ(static_cast<uint16_t>(m.rx().fault().terminate.code), 0x1101);
  EXPECT_TRUE(std::equal(content.begin(), content.begin() + 2 * kSegment, to.data()));
}

// Of a receive that is longer than its region the message needs no more than the region has.
TEST(RxDirect, OnlyWhatIsPlacedIsChecked) {
  Machine m({.crc = false, .long_fpdus = true});
  Buffer to(m.memory, kMessage);
  m.receive(RecvWr({{to.start(), 2 * kMessage, to.stag()}}, 7));
  const Octets content = pattern(kMessage);
  const Octets stream = concat(length_hint(kMessage, kSegment), a_send(1, content));
  ASSERT_EQ(m.feed({stream.data(), 20 + kHead}), RxStatus::kOk);
  size_t placed = 0;
  ASSERT_EQ(receive_directly(m.rx(), core::Bytes(stream).subspan(20 + kHead), &placed),
            RxStatus::kOk);
  EXPECT_GT(placed, 2 * kSegment);
  EXPECT_EQ(m.received().at(0).status, IBV_WC_SUCCESS);
  EXPECT_TRUE(to.content() == content);
}

TEST(RxDirect, WhatIsAheadIsInOnePieceOfMemory) {
  for (size_t first : {10000ul, kSegment, 2 * kSegment + 5}) {
    Machine m({.crc = false});
    Buffer to(m.memory, kMessage);
    const Octets content = pattern(kMessage);
    const uint32_t sink = read_into(m, {to.sge(0, first), to.sge(first, kMessage - first)});
    const Octets message = an_answer(sink, content);
    ASSERT_EQ(m.feed({message.data(), kHead}), RxStatus::kOk);
    ASSERT_EQ(receive_directly(m.rx(), core::Bytes(message).subspan(kHead)), RxStatus::kOk);
    m.tx().retire();
    EXPECT_EQ(m.sent().size(), 1u);
    EXPECT_TRUE(to.content() == content);
  }
}

TEST(RxDirect, AWrongAnswerIsAFaultOfThePeer) {
  Machine m({.crc = false});
  Buffer to(m.memory, kMessage);
  const uint32_t sink = read_into(m, {to.sge()});
  Octets stream = fpdu(tagged(2, sink, 0, pattern(kSegment), false), false);
  stream = concat(std::move(stream),
                  fpdu(tagged(2, sink, kSegment + 1, pattern(kSegment), false), false));
  ASSERT_EQ(m.feed({stream.data(), kHead}), RxStatus::kOk);
  EXPECT_EQ(receive_directly(m.rx(), core::Bytes(stream).subspan(kHead)), RxStatus::kFault);
  EXPECT_EQ(static_cast<uint16_t>(m.rx().fault().terminate.code), 0x1101);
  EXPECT_EQ(m.rx().fault().failed_status, IBV_WC_BAD_RESP_ERR);
}

// Otherwise invalidating would wait for the placement that holds the window, for ever.
TEST(RxDirect, WhatWasReceivedToAWindowMayInvalidateIt) {
  Machine m({.crc = false, .long_fpdus = true});
  Buffer to(m.memory, kMessage, kAllAccess | mem::kMwBind), inbox(m.memory, kMessage);
  const uint32_t window = *m.memory.add_window(kPd, mem::WindowType::kType2, 10);
  ASSERT_EQ(m.memory.bind({kPd, 42},
                          {window, window, to.stag(), mem::kRemoteWrite, to.start(), kMessage}),
            0);
  m.receive(RecvWr({inbox.sge()}, 1));
  Octets stream = length_hint(kMessage, kSegment);
  stream = concat(std::move(stream),
                  fpdu(tagged(0, window, to.start(), pattern(kSegment), true), false));
  stream =
      concat(std::move(stream), fpdu(untagged(4, 0, 1, 0, pattern(30000), true, window), false));
  stream = concat(std::move(stream), a_write(to, pattern(kMessage, 2)));
  // As hinted the first time, and as an invalidation where a segment is expected.
  stream[20 + 2] &= static_cast<uint8_t>(~0x40);
  ASSERT_EQ(m.feed({stream.data(), 20 + kHead}), RxStatus::kOk);
  ASSERT_EQ(receive_directly(m.rx(), core::Bytes(stream).subspan(20 + kHead)), RxStatus::kOk);
  const std::vector<ibv_wc> done = m.received();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
  EXPECT_EQ(done[0].byte_len, 30000u);
}

TEST(RxDirect, ASendBehindItWaitsForItsReceive) {
  Machine m({.crc = false, .wait_for_receive = true});
  Buffer to(m.memory, kMessage), second(m.memory, 100000);
  const uint32_t sink = read_into(m, {to.sge()});
  const Octets content = pattern(kMessage), sent = pattern(50000, 4);
  Octets stream = an_answer(sink, content);
  stream = concat(std::move(stream), a_send(1, sent, 50000));
  ASSERT_EQ(m.feed({stream.data(), kHead}), RxStatus::kOk);
  ASSERT_EQ(receive_directly(m.rx(), core::Bytes(stream).subspan(kHead)), RxStatus::kWantReceive);
  m.receive(RecvWr({second.sge()}, 9));
  ASSERT_EQ(m.rx().resume(), RxStatus::kOk);
  ASSERT_EQ(m.received().size(), 1u);
  EXPECT_TRUE(to.content() == content);
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), second.data()));
}

}  // namespace
}  // namespace uiw::test
