// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A peer that does everything wrong, over real TCP: it gets the right Terminate and FIN, nobody
// else is affected, no memory is touched, and nothing hangs.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "core/settings.h"
#include "support/host.h"
#include "support/scene.h"

namespace uiw::test {

void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << outcome.id;
}

namespace {

// One engine with a well-behaved connection beside the one under attack.
class RawPeers : public testing::Test {
 protected:
  RawPeers()
      : engine(std::move(*engine::Engine::start())),
        bystander(*engine, {.initiator = true}),
        victim(*engine) {
    const SocketEnds quiet = connect_sockets(), attacked = connect_sockets();
    friendly = std::make_unique<RawPeer>(quiet.theirs);
    hostile = std::make_unique<RawPeer>(attacked.theirs);
    EXPECT_EQ(bystander.attach(quiet.ours), 0);
    EXPECT_EQ(victim.attach(attacked.ours), 0);
  }
  ~RawPeers() override {
    hostile.reset();
    expect_bystander_well();
  }
  void SetUp() override {
    ASSERT_EQ(core::settings().rnr_wait_ms, 0u) << "run by ctest, which sets the environment";
  }

  void expect_bystander_well() {
    ASSERT_EQ(bystander.post(SendWr(IBV_WR_SEND, {}, ++rounds)), 0);
    EXPECT_EQ(to_hex(friendly->receive(24)), to_hex(fpdu(untagged(3, 0, rounds, 0, {}))));
    EXPECT_FALSE(bystander.ended());
    EXPECT_TRUE(bystander.events().empty());
  }
  // What the hostile peer reads until the end: one Terminate at most, and FIN.
  void expect_terminate(uint16_t code, uint8_t flags) {
    bool reset = true;
    const std::vector<Octets> said = ulpdus_of(hostile->receive_all(&reset));
    EXPECT_FALSE(reset);
    ASSERT_EQ(said.size(), 1u);
    const Octets& t = said[0];
    ASSERT_GE(t.size(), 22u);
    EXPECT_EQ(to_hex({t.data(), 18}), to_hex(untagged(7, 2, 1, 0, {})));
    EXPECT_EQ(t[18] << 8 | t[19], code);
    EXPECT_EQ(t[20], flags);
    EXPECT_EQ(t[21], 0);
  }

  std::unique_ptr<engine::Engine> engine;
  Host bystander, victim;
  std::unique_ptr<RawPeer> friendly, hostile;
  uint32_t rounds = 0;
};

class RawNegatives : public RawPeers, public testing::WithParamInterface<Outcome> {};

TEST_P(RawNegatives, GetTheRightTerminateAndFin) {
  const Outcome& expected = GetParam();
  Scene scene(victim.memory, expected.id);
  const std::vector<RecvWr> receives = scene.receive_list(expected.id);
  for (const RecvWr& wr : receives) ASSERT_EQ(victim.receive(wr), 0);
  Octets octets = with_stags(negative(expected.id).octets, scene.stags);
  // What follows an error is not looked at; a Write that would be right shows it.
  const Octets good =
      with_stags(fpdu(tagged(0, kVectorTarget, kVectorStart, of_text("again"))), scene.stags);
  if (!expected.fine) octets.insert(octets.end(), good.begin(), good.end());
  ASSERT_TRUE(hostile->send(octets));
  if (expected.fine) hostile->finish();

  if (expected.fine || expected.quiet) {
    bool reset = true;
    const Octets said = hostile->receive_all(&reset);
    EXPECT_FALSE(reset);
    if (expected.id == "N39") {
      EXPECT_EQ(to_hex(said), to_hex(fpdu(tagged(2, 1, 0, {}))));
    } else {
      EXPECT_EQ(to_hex(said), "");
    }
  } else {
    expect_terminate(expected.code, expected.flags);
  }
  hostile->finish();
  ASSERT_TRUE(victim.wait_for_end());
  EXPECT_EQ(victim.end_error(), expected.fine ? 0 : EPROTO);
  std::vector<ibv_wc_status> statuses;
  for (const ibv_wc& wc : victim.received()) statuses.push_back(wc.status);
  std::vector<ibv_wc_status> wanted = expected.receives;
  wanted.resize(receives.size(), IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(statuses, wanted);
  if (expected.fine) {
    EXPECT_TRUE(victim.events().empty());
  } else {
    EXPECT_EQ(victim.events(), std::vector<ibv_event_type>{expected.event});
  }
  scene.expect_untouched(expected.id);
}

INSTANTIATE_TEST_SUITE_P(All, RawNegatives, testing::ValuesIn(outcomes()),
                         [](const auto& the) { return std::string(the.param.id); });

TEST_F(RawPeers, HalfAnFpduAndFin) {
  ASSERT_EQ(victim.receive(RecvWr({}, 1)), 0);
  const Octets send = vector("V03-send5-crc").octets;
  ASSERT_TRUE(hostile->send({send.data(), send.size() - 1}));
  hostile->finish();
  ASSERT_TRUE(victim.wait_for_end());
  EXPECT_EQ(victim.end_error(), ECONNRESET);
  EXPECT_EQ(victim.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_FATAL});
  ASSERT_EQ(victim.received().size(), 1u);
  EXPECT_EQ(victim.received()[0].status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(RawPeers, HalfAMessageAndFin) {
  Buffer to(victim.memory, 64);
  ASSERT_EQ(victim.receive(RecvWr({to.sge()}, 1)), 0);
  ASSERT_TRUE(hostile->send(fpdu(untagged(3, 0, 1, 0, of_text("half"), false))));
  hostile->finish();
  ASSERT_TRUE(victim.wait_for_end());
  EXPECT_EQ(victim.end_error(), ECONNRESET);
  EXPECT_EQ(victim.received().at(0).status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(RawPeers, HalfAnFpduAndReset) {
  const Octets send = vector("V03-send5-crc").octets;
  ASSERT_TRUE(hostile->send({send.data(), 9}));
  hostile->reset();
  ASSERT_TRUE(victim.wait_for_end());
  EXPECT_EQ(victim.end_error(), ECONNRESET);
  EXPECT_EQ(victim.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_FATAL});
}

TEST_F(RawPeers, ALengthThatNeverComes) {
  ASSERT_TRUE(hostile->send(from_hex("ffff41430000")));
  hostile->finish();
  ASSERT_TRUE(victim.wait_for_end());
  EXPECT_EQ(victim.end_error(), ECONNRESET);
}

// MF-13: the largest ULPDU the length field can say is accepted.
TEST_F(RawPeers, TheLargestUlpduThereIs) {
  Buffer to(victim.memory, 65535);
  ASSERT_EQ(victim.receive(RecvWr({to.sge()}, 1)), 0);
  const Octets payload = pattern(65535 - 18);
  ASSERT_TRUE(hostile->send(fpdu(untagged(3, 0, 1, 0, payload))));
  ASSERT_TRUE(wait_until([&] { return victim.received().size() == 1; }));
  EXPECT_EQ(victim.received()[0].byte_len, payload.size());
  EXPECT_TRUE(std::equal(payload.begin(), payload.end(), to.data()));
}

TEST_F(RawPeers, OneOctetAtATime) {
  Buffer to(victim.memory, 64);
  for (uint64_t i = 1; i <= 3; ++i) ASSERT_EQ(victim.receive(RecvWr({to.sge()}, i)), 0);
  const int on = 1;
  setsockopt(hostile->fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  for (uint32_t msn = 1; msn <= 3; ++msn)
    for (const uint8_t& octet : fpdu(untagged(3, 0, msn, 0, of_text("slowly"))))
      ASSERT_TRUE(hostile->send({&octet, 1}));
  ASSERT_TRUE(wait_until([&] { return victim.received().size() == 3; }));
  for (const ibv_wc& wc : victim.received()) EXPECT_EQ(wc.byte_len, 6u);
}

TEST_F(RawPeers, Garbage) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Host host(*engine, {.crc = seed % 2 == 0});
    Scene scene(host.memory);
    for (const RecvWr& wr : scene.receive_list("")) ASSERT_EQ(host.receive(wr), 0);
    const SocketEnds sockets = connect_sockets();
    RawPeer peer(sockets.theirs);
    ASSERT_EQ(host.attach(sockets.ours), 0);
    std::mt19937 random(seed);
    Octets noise(200000);
    for (uint8_t& octet : noise) octet = static_cast<uint8_t>(random());
    peer.send(noise);
    peer.finish();
    peer.receive_all();
    ASSERT_TRUE(host.wait_for_end());
    EXPECT_NE(host.end_error(), 0);
    scene.expect_untouched("");
  }
}

// A peer that asks for much and reads nothing: others go on, and its queue pair can be destroyed.
TEST_F(RawPeers, APeerThatNeverReads) {
  Buffer source(victim.memory, pattern(4 << 20));
  for (uint32_t msn = 1; msn <= 4; ++msn)
    ASSERT_TRUE(hostile->send(
        fpdu(untagged(1, 1, msn, 0, read_request(1, 0, 4 << 20, source.stag(), source.start())))));
  for (int i = 0; i < 20; ++i) expect_bystander_well();
  source.deregister();  // does not wait for the peer
  victim.destroy();
  expect_bystander_well();
}

TEST_F(RawPeers, APeerThatNeverReadsItsTerminate) {
  Buffer source(victim.memory, pattern(4 << 20));
  for (uint32_t msn = 1; msn <= 4; ++msn)
    ASSERT_TRUE(hostile->send(
        fpdu(untagged(1, 1, msn, 0, read_request(1, 0, 4 << 20, source.stag(), source.start())))));
  // One more than the four it may have outstanding, unless the first was answered already.
  for (uint32_t msn = 5; msn <= 30; ++msn)
    hostile->send(
        fpdu(untagged(1, 1, msn, 0, read_request(1, 0, 4 << 20, source.stag(), source.start()))));
  ASSERT_TRUE(wait_until([&] { return !victim.events().empty(); }));
  EXPECT_EQ(victim.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_REQ_ERR});
  expect_bystander_well();
  source.deregister();
  ASSERT_TRUE(victim.wait_for_end());  // the patience of the close timer
  expect_bystander_well();
}

// MS-20: nothing at all before the first FPDU, however much is posted.
TEST_F(RawPeers, NothingIsSaidBeforeTheFirstFpdu) {
  for (uint64_t i = 0; i < 10; ++i) ASSERT_EQ(victim.post(SendWr(IBV_WR_SEND, {}, i)), 0);
  for (int i = 0; i < 20; ++i) expect_bystander_well();  // the engine has had its turns
  uint8_t octet;
  EXPECT_EQ(recv(hostile->fd(), &octet, 1, MSG_DONTWAIT), -1);
  EXPECT_TRUE(victim.sent().empty());
  ASSERT_TRUE(hostile->send(vector("V17-write-zero").octets));
  EXPECT_EQ(to_hex(hostile->receive(24)), to_hex(fpdu(untagged(3, 0, 1, 0, {}))));
  ASSERT_TRUE(wait_until([&] { return victim.sent().size() == 10; }));
}

// RO-18: more Reads than were granted.
TEST_F(RawPeers, MoreReadsThanGranted) {
  Buffer source(victim.memory, pattern(1 << 20));
  Octets all;
  for (uint32_t msn = 1; msn <= 20; ++msn)
    all = concat(all, fpdu(untagged(1, 1, msn, 0,
                                    read_request(msn, 0, 1 << 20, source.stag(), source.start()))));
  ASSERT_TRUE(hostile->send(all));
  bool reset = true;
  const std::vector<Octets> said = ulpdus_of(hostile->receive_all(&reset));
  EXPECT_FALSE(reset);
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said.back()[1] & 0xf, 7);
  EXPECT_EQ(said.back()[18] << 8 | said.back()[19], 0x1202);
  EXPECT_EQ(victim.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_REQ_ERR});
}

// SE-14: what one stream has asked for takes nothing from another.
TEST_F(RawPeers, InboundReadsAreCountedForEachStream) {
  Buffer large(victim.memory, pattern(4 << 20)), small(bystander.memory, pattern(100));
  for (uint32_t msn = 1; msn <= 4; ++msn)  // all that it may; it reads no answer
    ASSERT_TRUE(hostile->send(
        fpdu(untagged(1, 1, msn, 0, read_request(1, 0, 4 << 20, large.stag(), large.start())))));
  Octets requests, answers;
  for (uint32_t msn = 1; msn <= 4; ++msn) {
    requests = concat(
        requests,
        fpdu(untagged(1, 1, msn, 0, read_request(msn, 0, 100, small.stag(), small.start()))));
    answers = concat(answers, fpdu(tagged(2, msn, 0, small.content())));
  }
  ASSERT_TRUE(friendly->send(requests));
  EXPECT_EQ(to_hex(friendly->receive(answers.size())), to_hex(answers));
  EXPECT_TRUE(victim.events().empty());
}

// AT-16: the same for atomics; none beyond the fourth is executed.
TEST_F(RawPeers, MoreAtomicsThanGranted) {
  Buffer words(victim.memory, Octets(64));
  // All of them come at once, before any is answered.
  Octets all = fpdu(untagged(1, 1, 1, 0, read_request(1, 0, 0, 1, 0)));
  for (uint32_t msn = 2; msn <= 8; ++msn)
    all = concat(
        all,
        fpdu(untagged(0xa, 1, msn, 0,
                      atomic_request(0, msn, words.stag(), words.start() + 8 * (msn - 1), 1, 0))));
  ASSERT_TRUE(hostile->send(all));
  const std::vector<Octets> said = ulpdus_of(hostile->receive_all());
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said.back()[1] & 0xf, 7);
  EXPECT_EQ(said.back()[18] << 8 | said.back()[19], 0x1202);
  ASSERT_TRUE(wait_until([&] { return !victim.events().empty(); }));
  EXPECT_EQ(victim.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_REQ_ERR});
  const Octets after = words.content();
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(after[i * 8], i >= 1 && i <= 3) << i;
}

// AT-17: answers that do not fit, and one that comes twice.
TEST_F(RawPeers, WrongAnswersToAtomics) {
  enum Wrong { kNothing, kMsn, kId, kShort, kTwice, kRead };
  for (Wrong wrong : {kNothing, kMsn, kId, kShort, kTwice, kRead}) {
    SCOPED_TRACE(wrong);
    Host host(*engine, {.initiator = true});
    const SocketEnds sockets = connect_sockets();
    hostile = std::make_unique<RawPeer>(sockets.theirs);
    ASSERT_EQ(host.attach(sockets.ours), 0);
    Buffer sink(host.memory, 8);
    uint32_t id = 1;
    if (wrong != kNothing) {
      ASSERT_EQ(host.post(SendWr(IBV_WR_ATOMIC_FETCH_AND_ADD, {sink.sge()}, 5).atomic(8, 1, 1)), 0);
      const Octets request = hostile->receive(76);
      ASSERT_EQ(request.size(), 76u);
      id = read_be32(&request[24]);
    }
    const auto response = [](uint32_t msn, const Octets& header) {
      return fpdu(untagged(0xb, 3, msn, 0, header));
    };
    const Octets right = atomic_response(id, 0x0807060504030201);
    switch (wrong) {
      case kNothing:
        hostile->send(response(1, right));
        break;
      case kMsn:
        hostile->send(response(2, right));
        break;
      case kId:
        hostile->send(response(1, atomic_response(id + 1, 7)));
        break;
      case kShort:
        hostile->send(response(1, Octets(right.begin(), right.end() - 1)));
        break;
      case kTwice:
        hostile->send(concat(response(1, right), response(2, right)));
        break;
      case kRead:
        hostile->send(fpdu(tagged(2, id, 0, pattern(8))));
        break;
    }
    const uint16_t codes[] = {0x1202, 0x1203, 0x02ff, 0x02ff, 0x1202, 0x0206};
    expect_terminate(codes[wrong], 0xc0);
    hostile->finish();
    ASSERT_TRUE(host.wait_for_end());
    EXPECT_EQ(host.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_FATAL});
    if (wrong != kNothing) {
      ASSERT_EQ(host.sent().size(), 1u);
      EXPECT_EQ(host.sent()[0].status, wrong == kTwice ? IBV_WC_SUCCESS : IBV_WC_BAD_RESP_ERR);
    }
    EXPECT_EQ(to_hex(sink.content()), wrong == kTwice ? "0102030405060708" : "0000000000000000");
  }
}

// AT-10, IM-08: what is told of a peer that knows neither.
TEST_F(RawPeers, APeerWithoutAtomicsOrImmediateData) {
  for (const bool atomic : {true, false}) {
    SCOPED_TRACE(atomic);
    Host host(*engine, {.initiator = true});
    const SocketEnds sockets = connect_sockets();
    hostile = std::make_unique<RawPeer>(sockets.theirs);
    ASSERT_EQ(host.attach(sockets.ours), 0);
    Buffer sink(host.memory, 8);
    if (atomic) {
      ASSERT_EQ(host.post(SendWr(IBV_WR_ATOMIC_FETCH_AND_ADD, {sink.sge()}, 5).atomic(8, 1, 1)), 0);
    } else {
      ASSERT_EQ(host.post(SendWr(IBV_WR_RDMA_WRITE_WITH_IMM, {}, 5).to(0, 1)), 0);
      hostile->receive(20);
    }
    const Octets frame = hostile->receive(atomic ? 76 : 32);
    ASSERT_EQ(frame.size(), atomic ? 76u : 32u);
    Octets body = from_hex("0206c0000046");
    body.insert(body.end(), frame.begin() + 2, frame.begin() + 20);
    ASSERT_TRUE(hostile->send(fpdu(untagged(7, 2, 1, 0, body))));
    EXPECT_TRUE(hostile->receive_all().empty());
    hostile->finish();
    ASSERT_TRUE(host.wait_for_end());
    ASSERT_EQ(host.sent().size(), 1u);
    // The Immediate Data had completed when TCP had it; the event tells then.
    EXPECT_EQ(host.sent()[0].status, atomic ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS);
    EXPECT_EQ(host.events().size(), atomic ? 0u : 1u);
  }
}

// RO-32, SE-28: the sink STag that a Read shows on the wire opens no memory.
TEST_F(RawPeers, ASinkCannotBeWrittenTo) {
  Buffer sink(victim.memory, 64);
  ASSERT_TRUE(hostile->send(vector("V17-write-zero").octets));
  ASSERT_EQ(victim.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 5).to(1, 1)), 0);
  const Octets request = hostile->receive(52);
  ASSERT_EQ(request.size(), 52u);
  ASSERT_TRUE(hostile->send(fpdu(tagged(0, read_be32(&request[20]), 0, of_text("surprise")))));
  expect_terminate(0x1100, 0xc0);
  hostile->finish();
  ASSERT_TRUE(victim.wait_for_end());
  EXPECT_EQ(victim.sent().at(0).status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_TRUE(sink.content() == Octets(64));
}

// RO-20: an answer that does not fit its question.
TEST_F(RawPeers, WrongAnswers) {
  enum Wrong { kStag, kOffset, kShort, kLong, kTwice };
  for (Wrong wrong : {kStag, kOffset, kShort, kLong, kTwice}) {
    SCOPED_TRACE(wrong);
    Host host(*engine, {.initiator = true});
    const SocketEnds sockets = connect_sockets();
    hostile = std::make_unique<RawPeer>(sockets.theirs);
    ASSERT_EQ(host.attach(sockets.ours), 0);
    Buffer sink(host.memory, 8);
    ASSERT_EQ(host.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 5).to(1, 1)), 0);
    const Octets request = hostile->receive(52);
    ASSERT_EQ(request.size(), 52u);
    const uint32_t stag = read_be32(&request[20]);
    const Octets right = pattern(8);
    switch (wrong) {
      case kStag:
        hostile->send(fpdu(tagged(2, stag ^ 1, 0, right)));
        break;
      case kOffset:
        hostile->send(fpdu(tagged(2, stag, 1, right)));
        break;
      case kShort:
        hostile->send(fpdu(tagged(2, stag, 0, pattern(7))));
        break;
      case kLong:
        hostile->send(fpdu(tagged(2, stag, 0, pattern(9))));
        break;
      case kTwice:
        hostile->send(concat(fpdu(tagged(2, stag, 0, right)), fpdu(tagged(2, stag, 0, right))));
        break;
    }
    expect_terminate(wrong == kStag ? 0x1100 : wrong == kTwice ? 0x0206 : 0x1101, 0xc0);
    hostile->finish();
    ASSERT_TRUE(host.wait_for_end());
    EXPECT_EQ(host.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_FATAL});
    ASSERT_EQ(host.sent().size(), 1u);
    EXPECT_EQ(host.sent()[0].status, wrong == kTwice ? IBV_WC_SUCCESS : IBV_WC_BAD_RESP_ERR);
    EXPECT_TRUE(sink.content() == (wrong == kTwice ? right : Octets(8)));
  }
}

// TD-10: a peer that closes its side after its last request still gets the answer.
TEST_F(RawPeers, AnAnswerAfterTheFin) {
  Buffer source(victim.memory, pattern(3 << 20));
  ASSERT_TRUE(hostile->send(
      fpdu(untagged(1, 1, 1, 0, read_request(9, 0, 3 << 20, source.stag(), source.start())))));
  hostile->finish();
  bool reset = true;
  Octets got;
  for (const Octets& ulpdu : ulpdus_of(hostile->receive_all(&reset)))
    got.insert(got.end(), ulpdu.begin() + 14, ulpdu.end());
  EXPECT_FALSE(reset);
  EXPECT_TRUE(got == source.content());
  ASSERT_TRUE(victim.wait_for_end());
  EXPECT_EQ(victim.end_error(), 0);
}

// TE-11: the Terminate reaches a peer that has megabytes on their way to us.
TEST_F(RawPeers, TheTerminateReachesAPeerThatIsSending) {
  Buffer target(victim.memory, 1 << 20);
  Octets flood = fpdu(tagged(0, target.stag() ^ 1, target.start(), pattern(8)));
  const Octets write = fpdu(tagged(0, target.stag(), target.start(), pattern(60000)));
  for (int i = 0; i < 170; ++i) flood.insert(flood.end(), write.begin(), write.end());
  std::thread sender([&] { hostile->send(flood); });
  expect_terminate(0x1100, 0xc0);
  sender.join();
  hostile->finish();
  ASSERT_TRUE(victim.wait_for_end());
  EXPECT_TRUE(target.content() == Octets(1 << 20));
}

// TE-02, TE-12: two ends never terminate each other in turns.
TEST_F(RawPeers, ATerminateIsNotAnswered) {
  for (const char* id : {"N48", "N49", "N50"}) {
    Host host(*engine, {.initiator = true});
    const SocketEnds sockets = connect_sockets();
    RawPeer peer(sockets.theirs);
    ASSERT_EQ(host.attach(sockets.ours), 0);
    ASSERT_TRUE(peer.send(negative(id).octets));
    EXPECT_TRUE(peer.receive_all().empty());
    peer.finish();
    ASSERT_TRUE(host.wait_for_end());
  }
}

}  // namespace
}  // namespace uiw::test
