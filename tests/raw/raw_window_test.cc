// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A raw peer and memory windows: what it was lent it may use and give back, to the octet and no
// more.
#include <gtest/gtest.h>

#include "support/host.h"
#include "support/window.h"

namespace uiw::test {
namespace {

constexpr uint32_t kThisQp = 42, kOtherQp = 43;  // Host's, another
constexpr size_t kSize = 4096, kOffset = 1000, kLength = 500;
constexpr uint8_t kMd = 0xc0, kMdr = 0xe0;

// What a peer may get hold of: everything is bound to a part of one region, for reading and
// writing.
struct Loans {
  explicit Loans(mem::Table& memory)
      : region(memory, pattern(kSize), kBindable | mem::kRemoteRead),
        foreign(memory, pattern(kSize, 1), kAllAccess, kOtherPd),
        receives(memory, 64),
        mine(memory),
        write_only(memory),
        theirs(memory),
        shared(memory, IBV_MW_TYPE_1),
        unbound(memory) {
    mine.bind_now(kThisQp, region, kOffset, kLength, mem::kRemoteRead | mem::kRemoteWrite);
    write_only.bind_now(kThisQp, region, kOffset, kLength, mem::kRemoteWrite);
    theirs.bind_now(kOtherQp, region, kOffset, kLength, mem::kRemoteRead | mem::kRemoteWrite);
    shared.bind_now(kOtherQp, region, kOffset, kLength, mem::kRemoteRead | mem::kRemoteWrite);
  }
  uint64_t start() const { return region.start() + kOffset; }
  void expect_untouched() {
    EXPECT_TRUE(region.content() == pattern(kSize));
    EXPECT_TRUE(foreign.content() == pattern(kSize, 1));
    EXPECT_TRUE(theirs.bound() && shared.bound());
  }
  Buffer region, foreign, receives;
  Window mine, write_only, theirs, shared, unbound;
};

struct Attack {
  const char* name;
  uint16_t code;
  uint8_t flags;
  Octets (*ulpdu)(Loans&);
};

Octets write(uint64_t to, uint32_t stag, size_t size = 8) {
  return tagged(0, stag, to, pattern(size, 9));
}
Octets read(uint64_t from, uint32_t stag, uint32_t size = 8) {
  return untagged(1, 1, 1, 0, read_request(1, 0, size, stag, from));
}
Octets send_inv(uint32_t stag) {
  return untagged(4, 0, 1, 0, of_text("inv"), true, stag);
}

const std::vector<Attack>& attacks() {
  static const std::vector<Attack> all = {
      // The octet before and the octet behind, both inside the region.
      {"WriteBefore", 0x1101, kMd, [](Loans& l) { return write(l.start() - 1, l.mine.stag(), 2); }},
      {"WriteBeyond", 0x1101, kMd,
       [](Loans& l) { return write(l.start(), l.mine.stag(), kLength + 1); }},
      {"WriteBehind", 0x1101, kMd,
       [](Loans& l) { return write(l.start() + kLength, l.mine.stag(), 1); }},
      {"WriteWrap", 0x1103, kMd, [](Loans& l) { return write(~0ull, l.mine.stag(), 2); }},
      {"WriteOtherStream", 0x1102, kMd, [](Loans& l) { return write(l.start(), l.theirs.stag()); }},
      {"WriteUnbound", 0x1100, kMd, [](Loans& l) { return write(l.start(), l.unbound.stag()); }},
      {"WriteStaleKey", 0x1100, kMd, [](Loans& l) { return write(l.start(), l.mine.stag() - 1); }},
      {"WriteRegion", 0x1100, kMd, [](Loans& l) { return write(l.start(), l.region.stag()); }},
      {"ReadBefore", 0x0101, kMdr, [](Loans& l) { return read(l.start() - 1, l.mine.stag(), 2); }},
      {"ReadBeyond", 0x0101, kMdr,
       [](Loans& l) { return read(l.start(), l.mine.stag(), kLength + 1); }},
      {"ReadWriteOnly", 0x0102, kMdr,
       [](Loans& l) { return read(l.start(), l.write_only.stag()); }},
      {"ReadOtherStream", 0x0103, kMdr, [](Loans& l) { return read(l.start(), l.theirs.stag()); }},
      {"ReadUnbound", 0x0100, kMdr, [](Loans& l) { return read(l.start(), l.unbound.stag()); }},
      {"InvalidateRegion", 0x0209, kMd, [](Loans& l) { return send_inv(l.region.stag()); }},
      {"InvalidateForeignRegion", 0x0109, kMd, [](Loans& l) { return send_inv(l.foreign.stag()); }},
      {"InvalidateOtherStream", 0x0109, kMd, [](Loans& l) { return send_inv(l.theirs.stag()); }},
      {"InvalidateType1", 0x0209, kMd, [](Loans& l) { return send_inv(l.shared.stag()); }},
      {"InvalidateUnbound", 0x0209, kMd, [](Loans& l) { return send_inv(l.unbound.stag()); }},
      {"InvalidateStaleKey", 0x0209, kMd, [](Loans& l) { return send_inv(l.mine.stag() - 1); }},
      {"InvalidateZero", 0x0209, kMd, [](Loans&) { return send_inv(0); }},
  };
  return all;
}

void PrintTo(const Attack& attack, std::ostream* out) {
  *out << attack.name;
}

class RawWindows : public testing::Test {
 protected:
  RawWindows() : engine(std::move(*engine::Engine::start())), host(*engine), loans(host.memory) {
    attach();
  }

  void attach() {
    const SocketEnds sockets = connect_sockets();
    peer = std::make_unique<RawPeer>(sockets.theirs);
    ASSERT_EQ(host.attach(sockets.ours), 0);
  }
  void expect_terminate(uint16_t code, uint8_t flags, const Octets& offending) {
    bool reset = true;
    const std::vector<Octets> said = ulpdus_of(peer->receive_all(&reset));
    EXPECT_FALSE(reset);
    ASSERT_EQ(said.size(), 1u);
    const Octets& t = said[0];
    ASSERT_GE(t.size(), 24u);
    EXPECT_EQ(t[1] & 0xf, 7);
    EXPECT_EQ(t[18] << 8 | t[19], code);
    EXPECT_EQ(t[20], flags);
    EXPECT_EQ(t[22] << 8 | t[23], static_cast<int>(offending.size()));
    const size_t header = offending[0] & 0x80 ? 14 : 18;
    ASSERT_GE(t.size(), 24 + header);
    EXPECT_EQ(to_hex({t.data() + 24, header}), to_hex({offending.data(), header}));
  }
  // The engine has looked at everything that was sent before.
  void expect_answer() {
    ASSERT_TRUE(peer->send(fpdu(untagged(1, 1, ++request_msn, 0, read_request(7, 0, 0, 0, 0)))));
    EXPECT_EQ(to_hex(peer->receive(20)), to_hex(fpdu(tagged(2, 7, 0, {}))));
  }

  std::unique_ptr<engine::Engine> engine;
  Host host;
  Loans loans;
  std::unique_ptr<RawPeer> peer;
  uint32_t request_msn = 0;
};

class RawWindowAttacks : public RawWindows, public testing::WithParamInterface<Attack> {};

TEST_P(RawWindowAttacks, EndTheConnectionAndNothingElse) {
  const bool sends = std::string(GetParam().name).starts_with("Invalidate");
  for (uint64_t id = 0; id < 2; ++id)
    ASSERT_EQ(host.receive(RecvWr({loans.receives.sge()}, id)), 0);
  const Octets ulpdu = GetParam().ulpdu(loans);
  Octets octets = fpdu(ulpdu);
  // Behind the mistake nothing counts any more.
  octets = concat(octets, fpdu(write(loans.start(), loans.mine.stag())));
  octets = concat(octets, fpdu(untagged(4, 0, sends ? 2 : 1, 0, {}, true, loans.mine.stag())));
  ASSERT_TRUE(peer->send(octets));
  expect_terminate(GetParam().code, GetParam().flags, ulpdu);
  peer->finish();
  ASSERT_TRUE(host.wait_for_end());
  EXPECT_EQ(host.end_error(), EPROTO);
  EXPECT_EQ(host.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_ACCESS_ERR});
  const std::vector<ibv_wc> got = host.received();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].status, sends ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(got[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_TRUE(loans.mine.bound());
  loans.expect_untouched();
}

INSTANTIATE_TEST_SUITE_P(All, RawWindowAttacks, testing::ValuesIn(attacks()),
                         [](const auto& the) { return std::string(the.param.name); });

TEST_F(RawWindows, UsedToTheLastOctetAndGivenBack) {
  ASSERT_EQ(host.receive(RecvWr({loans.receives.sge()}, 5)), 0);
  const Octets content = pattern(kLength, 4);
  ASSERT_TRUE(peer->send(fpdu(tagged(0, loans.mine.stag(), loans.start(), content))));
  ASSERT_TRUE(peer->send(fpdu(untagged(
      1, 1, ++request_msn, 0, read_request(3, 0, kLength, loans.mine.stag(), loans.start())))));
  const Octets answer = fpdu(tagged(2, 3, 0, content));
  EXPECT_EQ(to_hex(peer->receive(answer.size())), to_hex(answer));
  ASSERT_TRUE(peer->send(fpdu(untagged(6, 0, 1, 0, of_text("done"), true, loans.mine.stag()))));
  ASSERT_TRUE(wait_until([&] { return host.received().size() == 1; }));
  const ibv_wc got = host.received()[0];
  EXPECT_EQ(got.status, IBV_WC_SUCCESS);
  EXPECT_EQ(got.byte_len, 4u);
  EXPECT_EQ(got.wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
  EXPECT_EQ(got.invalidated_rkey, loans.mine.stag());
  EXPECT_FALSE(loans.mine.bound());
  Octets expected = pattern(kSize);
  std::copy(content.begin(), content.end(), expected.begin() + kOffset);
  EXPECT_TRUE(loans.region.content() == expected);

  const Octets late = write(loans.start(), loans.mine.stag());
  ASSERT_TRUE(peer->send(fpdu(late)));
  expect_terminate(0x1100, kMd, late);
  EXPECT_TRUE(loans.region.content() == expected);
}

// What has no octets looks at no STag (RFC 5041 5.2, RFC 5040 5.2.1), not even at a foreign one.
TEST_F(RawWindows, ZeroLengthMessagesAreFine) {
  ASSERT_TRUE(peer->send(fpdu(tagged(0, loans.theirs.stag(), 1, {}))));
  ASSERT_TRUE(peer->send(
      fpdu(untagged(1, 1, ++request_msn, 0, read_request(2, 0, 0, loans.theirs.stag(), 1)))));
  EXPECT_EQ(to_hex(peer->receive(20)), to_hex(fpdu(tagged(2, 2, 0, {}))));
  expect_answer();
  EXPECT_TRUE(host.events().empty());
}

// A window that goes while its answer is being sent: the Terminate says how far it got (conformance
// TE-10).
TEST_F(RawWindows, AWindowGoesWhileItIsRead) {
  Buffer large(host.memory, pattern(16 << 20), kBindable);
  Window window(host.memory);
  window.bind_now(kThisQp, large, 0, large.size(), mem::kRemoteRead);
  const uint32_t size = static_cast<uint32_t>(large.size());
  const Octets request =
      untagged(1, 1, 1, 0, read_request(3, 0x100, size, window.stag(), large.start()));
  ASSERT_TRUE(peer->send(fpdu(request)));
  uint8_t first;
  ASSERT_EQ(recv(peer->fd(), &first, 1, MSG_PEEK),
            1);  // it is on its way, and there is no room for all of it
  EXPECT_EQ(host.memory.invalidate({kPd, kThisQp}, window.stag()), mem::Invalidation::kDone);
  std::fill_n(large.data(), large.size(), 0);

  bool reset = true;
  const std::vector<Octets> said = ulpdus_of(peer->receive_all(&reset));
  EXPECT_FALSE(reset);
  ASSERT_GT(said.size(), 1u);
  size_t answered = 0;
  const Octets content = pattern(large.size());
  for (size_t i = 0; i + 1 < said.size(); ++i) {
    const size_t length = said[i].size() - 14;
    ASSERT_TRUE(std::equal(said[i].begin() + 14, said[i].end(),
                           content.begin() + static_cast<std::ptrdiff_t>(answered)));
    answered += length;
  }
  const Octets& t = said.back();
  ASSERT_EQ(t.size(), 18u + 6 + 18 + 28);
  EXPECT_EQ(t[18] << 8 | t[19], 0x0100);
  EXPECT_EQ(t[20], kMdr);
  EXPECT_LT(answered, large.size());
  EXPECT_EQ(to_hex({t.data() + 42, 28}),
            to_hex(read_request(3, 0x100 + answered, size - static_cast<uint32_t>(answered),
                                window.stag(), large.start() + answered)));
  EXPECT_EQ(host.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_ACCESS_ERR});
}

// The peer of the next connection inherits nothing.
TEST_F(RawWindows, ABindingDoesNotOutliveTheReset) {
  expect_answer();
  peer->finish();
  ASSERT_TRUE(host.wait_for_end());
  EXPECT_TRUE(loans.mine.bound());
  EXPECT_EQ(host.memory.remove(loans.region.stag()), EBUSY);
  ASSERT_EQ(host.modify(IBV_QPS_RESET), 0);
  EXPECT_FALSE(loans.mine.bound());
  EXPECT_TRUE(loans.theirs.bound() && loans.shared.bound());
  ASSERT_EQ(host.modify(IBV_QPS_INIT), 0);
  attach();
  const Octets ulpdu = write(loans.start(), loans.mine.stag());
  ASSERT_TRUE(peer->send(fpdu(ulpdu)));
  expect_terminate(0x1100, kMd, ulpdu);
  loans.expect_untouched();
}

// Nor does anybody when the queue pair has gone; what other queue pairs bound stays.
TEST_F(RawWindows, ABindingEndsWithItsQueuePair) {
  expect_answer();
  host.destroy();
  EXPECT_FALSE(loans.mine.bound());
  EXPECT_TRUE(loans.theirs.bound() && loans.shared.bound());
}

}  // namespace
}  // namespace uiw::test
