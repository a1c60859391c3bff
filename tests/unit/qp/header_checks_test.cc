// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Every value that a DDP or RDMAP header may not have, and which of several mistakes is told
// (RFC 5041 7.1, RFC 5040 7.2; conformance A14).
#include <gtest/gtest.h>

#include "support/scene.h"

namespace uiw::test {
namespace {

using qp::RxStatus;

uint16_t code_of(Machine& m) {
  return static_cast<uint16_t>(m.rx().fault().terminate.code);
}

// A receiver that could take a Send, a Write and a Read Request; nothing of it may change.
struct Receiver {
  Receiver() : target(m.memory, pattern(64)), to(m.memory, 64) { m.receive(RecvWr({to.sge()}, 1)); }

  Octets write() const { return tagged(0, target.stag(), target.start(), of_text("payload.")); }
  Octets send() const { return untagged(3, 0, 1, 0, of_text("payload.")); }
  Octets request() const {
    return untagged(1, 1, 1, 0, read_request(5, 0, 8, target.stag(), target.start()));
  }

  void expect_refused(const Octets& ulpdu, uint16_t code) {
    SCOPED_TRACE(to_hex(ulpdu));
    EXPECT_EQ(m.feed(fpdu(ulpdu)), RxStatus::kFault);
    EXPECT_EQ(code_of(m), code);
    EXPECT_TRUE(target.content() == pattern(64));
    EXPECT_TRUE(to.content() == Octets(64));
    EXPECT_TRUE(m.transmit().empty());
    for (const ibv_wc& wc : m.received()) EXPECT_NE(wc.status, IBV_WC_SUCCESS);
  }

  Machine m{MachineOptions{.initiator = false}};
  Buffer target, to;
};

TEST(HeaderChecks, TheSegmentsTheyStartFromAreRight) {
  Receiver r;
  for (const Octets& ulpdu : {r.write(), r.send(), r.request()})
    EXPECT_EQ(r.m.feed(fpdu(ulpdu)), RxStatus::kOk);
  EXPECT_EQ(r.m.received().size(), 1u);
  EXPECT_EQ(to_hex(r.m.transmit()), to_hex(fpdu(tagged(2, 5, 0, of_text("payload.")))));
}

TEST(HeaderChecks, EveryOtherDdpVersion) {
  for (uint8_t version : {0, 2, 3}) {
    for (Octets (Receiver::*make)() const :
         {&Receiver::write, &Receiver::send, &Receiver::request}) {
      Receiver r;
      Octets ulpdu = (r.*make)();
      ulpdu[0] = static_cast<uint8_t>((ulpdu[0] & ~3) | version);
      r.expect_refused(ulpdu, ulpdu[0] & 0x80 ? 0x1104 : 0x1206);
    }
  }
}

TEST(HeaderChecks, EveryOtherRdmapVersion) {
  for (uint8_t version : {0, 2, 3}) {
    for (Octets (Receiver::*make)() const :
         {&Receiver::write, &Receiver::send, &Receiver::request}) {
      Receiver r;
      Octets ulpdu = (r.*make)();
      ulpdu[1] = static_cast<uint8_t>((ulpdu[1] & ~0xc0) | version << 6);
      r.expect_refused(ulpdu, 0x0205);
    }
  }
}

// RFC 5040 figure 4, RFC 7306 figure 2: all sixteen on the kind of buffer where they mean nothing.
TEST(HeaderChecks, EveryOpcodeThatHasNoMeaning) {
  for (uint8_t opcode : {0x1, 0x3, 0x4, 0x5, 0x6, 0x7, 0x8, 0x9, 0xa, 0xb, 0xc, 0xd, 0xe, 0xf}) {
    Receiver r;
    r.expect_refused(tagged(opcode, r.target.stag(), r.target.start(), of_text("payload.")),
                     0x0206);
  }
  for (uint8_t opcode : {0x0, 0x2, 0xc, 0xd, 0xe, 0xf}) {
    for (uint32_t queue : {0u, 1u, 2u, 3u}) {
      Receiver r;
      r.expect_refused(untagged(opcode, queue, 1, 0, of_text("payload.")), 0x0206);
    }
  }
}

// Sends on another queue than 0, Read Requests on another than 1, Terminates on another than 2.
TEST(HeaderChecks, EveryOtherQueue) {
  for (uint32_t queue : {0u, 1u, 2u, 3u, 4u, 0x100u, 0x80000000u, 0xffffffffu}) {
    for (uint8_t opcode : {3, 4, 5, 6, 1, 7}) {
      if (queue == (opcode == 1 ? 1u : opcode == 7 ? 2u : 0u)) continue;
      Receiver r;
      Octets ulpdu = opcode == 1 ? r.request() : untagged(opcode, queue, 1, 0, of_text("payload."));
      const Octets other = untagged(opcode, queue, 1, 0, {});
      std::copy(other.begin(), other.end(), ulpdu.begin());
      r.expect_refused(ulpdu, 0x1201);
    }
  }
}

TEST(HeaderChecks, EveryOtherFirstMsn) {
  for (uint32_t msn : {0u, 2u, 3u, 0x01000000u, 0x7fffffffu, 0x80000001u, 0xffffffffu}) {
    Receiver sent, asked;
    sent.expect_refused(untagged(3, 0, msn, 0, of_text("payload.")), 0x1203);
    Octets ulpdu = asked.request();
    const Octets other = untagged(1, 1, msn, 0, {});
    std::copy(other.begin(), other.end(), ulpdu.begin());
    asked.expect_refused(ulpdu, 0x1203);
  }
}

TEST(HeaderChecks, EveryOtherFirstMo) {
  for (uint32_t mo : {1u, 4u, 8u, 64u, 0x80000000u, 0xfffffff8u, 0xffffffffu}) {
    Receiver sent, asked;
    sent.expect_refused(untagged(3, 0, 1, mo, of_text("payload.")), 0x1204);
    Octets ulpdu = asked.request();
    const Octets other = untagged(1, 1, 1, mo, {});
    std::copy(other.begin(), other.end(), ulpdu.begin());
    asked.expect_refused(ulpdu, 0x1204);
  }
  // A Read Request is one segment.
  Receiver r;
  Octets ulpdu = r.request();
  ulpdu[0] = 0x01;
  r.expect_refused(ulpdu, 0x1204);
}

// Reserved bits, and the STag to invalidate of what invalidates nothing: one at a time.
TEST(HeaderChecks, NoneForWhatIsReserved) {
  for (Octets (Receiver::*make)() const : {&Receiver::write, &Receiver::send, &Receiver::request}) {
    for (size_t bit = 0; bit < 48; ++bit) {
      const uint8_t mask = static_cast<uint8_t>(0x80 >> bit % 8);
      if (bit < 8 && !(mask & 0x3c)) continue;
      if (bit >= 8 && bit < 16 && !(mask & 0x30)) continue;
      Receiver r;
      Octets ulpdu = (r.*make)();
      if (bit >= 16 && ulpdu[0] & 0x80) continue;  // the STag of a tagged message
      ulpdu[bit / 8] = static_cast<uint8_t>(ulpdu[bit / 8] | mask);
      EXPECT_EQ(r.m.feed(fpdu(ulpdu)), RxStatus::kOk) << to_hex(ulpdu);
    }
  }
}

// Everything wrong at once, then one mistake less each time.
TEST(HeaderChecks, TheFirstMistakeIsTold) {
  struct {
    uint8_t version, control;
    uint32_t qn, msn;
    bool receive;
    uint32_t mo;
    size_t size;
    uint16_t code;
  } untagged_ones[] = {
      {2, 0x8c, 4, 9, false, 4, 65, 0x1206}, {1, 0x8c, 4, 9, false, 4, 65, 0x0205},
      {1, 0x4c, 4, 9, false, 4, 65, 0x0206}, {1, 0x43, 4, 9, false, 4, 65, 0x1201},
      {1, 0x43, 0, 9, false, 4, 65, 0x1203}, {1, 0x43, 0, 1, false, 4, 65, 0x1202},
      {1, 0x43, 0, 1, true, 4, 65, 0x1204},  {1, 0x43, 0, 1, true, 0, 65, 0x1205},
  };
  for (const auto& one : untagged_ones) {
    Machine m;
    Buffer to(m.memory, 64);
    if (one.receive) m.receive(RecvWr({to.sge()}, 1));
    Octets ulpdu = untagged(3, one.qn, one.msn, one.mo, pattern(one.size));
    ulpdu[0] = static_cast<uint8_t>(0x40 | one.version);
    ulpdu[1] = one.control;
    EXPECT_EQ(m.feed(fpdu(ulpdu)), RxStatus::kFault);
    EXPECT_EQ(code_of(m), one.code);
    EXPECT_TRUE(to.content() == Octets(64));
  }

  enum Region { kNone, kForeign, kSealed, kGood };
  struct {
    uint8_t version, control;
    Region region;
    uint64_t to;
    uint16_t code;
  } tagged_ones[] = {
      {2, 0x80, kNone, ~0ull - 3, 0x1104},   {1, 0x80, kNone, ~0ull - 3, 0x0205},
      {1, 0x40, kNone, ~0ull - 3, 0x1100},   {1, 0x40, kForeign, ~0ull - 3, 0x1102},
      {1, 0x40, kSealed, ~0ull - 3, 0x1100}, {1, 0x40, kGood, ~0ull - 3, 0x1103},
      {1, 0x40, kGood, 0x1000 + 64, 0x1101},
  };
  for (const auto& one : tagged_ones) {
    Machine m;
    Buffer good(m.memory, 64, kAllAccess, kPd, 0x1000),
        sealed(m.memory, 64, mem::kRemoteRead, kPd, 0x1000),
        foreign(m.memory, 64, mem::kRemoteRead, kOtherPd, 0x1000);
    const uint32_t stags[] = {good.stag() ^ 1, foreign.stag(), sealed.stag(), good.stag()};
    Octets ulpdu = tagged(0, stags[one.region], one.to, pattern(8));
    ulpdu[0] = static_cast<uint8_t>(0xc0 | one.version);
    ulpdu[1] = one.control;
    EXPECT_EQ(m.feed(fpdu(ulpdu)), RxStatus::kFault);
    EXPECT_EQ(code_of(m), one.code);
    for (const Buffer* buffer : {&good, &sealed, &foreign})
      EXPECT_TRUE(buffer->content() == Octets(64));
  }
}

}  // namespace
}  // namespace uiw::test
