// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Terminates said and heard over real TCP: what each leads to here (conformance 3.4), the ways that
// other stacks word theirs (conformance 5.1), and when ours goes out.
#include <gtest/gtest.h>

#include <thread>

#include "support/party.h"
#include "support/scene.h"

namespace uiw::test {
namespace {

using Statuses = std::vector<ibv_wc_status>;
using Events = std::vector<ibv_event_type>;
constexpr auto kOk = IBV_WC_SUCCESS, kFlush = IBV_WC_WR_FLUSH_ERR, kAccess = IBV_WC_REM_ACCESS_ERR,
               kInvalid = IBV_WC_REM_INV_REQ_ERR;

// A queue pair and its peer, in full operation.
class Terminates : public testing::Test {
 protected:
  void start(const HostOptions& options = {.initiator = true}, int mss = 0) {
    host = std::make_unique<Host>(*engine, options);
    const SocketEnds sockets = connect_sockets(mss);
    peer = std::make_unique<RawPeer>(sockets.theirs);
    ASSERT_EQ(host->attach(sockets.ours), 0);
  }
  static Statuses statuses(const std::vector<ibv_wc>& list) {
    Statuses out;
    for (const ibv_wc& wc : list) out.push_back(wc.status);
    return out;
  }
  // What the peer has not read yet, and FIN, not RST. The ULPDUs.
  std::vector<Octets> rest() {
    bool reset = true;
    const std::vector<Octets> out = ulpdus_of(peer->receive_all(&reset));
    EXPECT_FALSE(reset);
    return out;
  }

  std::unique_ptr<engine::Engine> engine{std::move(*engine::Engine::start())};
  std::unique_ptr<Host> host;
  std::unique_ptr<RawPeer> peer;
};

// A Terminate whose four octets of control word are given.
Octets terminate(std::string_view control, std::span<const uint8_t> rest = {}) {
  return fpdu(untagged(7, 2, 1, 0, concat(from_hex(control), rest)));
}

// --- heard ---

// Every code there is, and some that nobody defines (TE-04, TE-17), without headers: nobody is to
// blame.
TEST_F(Terminates, EveryCodeFlushesWhatIsOutstanding) {
  for (const char* code :
       {"0000", "00ab", "0100", "0101", "0102", "0103", "0104", "0109", "01ff",
        "0205", "0206", "0207", "0208", "0209", "02ff", "1000", "1100", "1101",
        "1102", "1103", "1104", "1201", "1202", "1203", "1204", "1205", "1206",
        "1300", "2001", "2002", "2003", "2004", "2005", "2006", "2007", "f5ff"}) {
    SCOPED_TRACE(code);
    start();
    Buffer sink(host->memory, 8);
    for (uint64_t id = 0; id < 2; ++id) ASSERT_EQ(host->receive(RecvWr({}, id)), 0);
    ASSERT_EQ(host->post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 0).to(1, 1).flags(0)), 0);
    ASSERT_EQ(host->post(SendWr(IBV_WR_SEND, {}, 1)), 0);
    ASSERT_EQ(peer->receive(52 + 24).size(), 76u);
    // Reserved bits in the control word are not looked at (TE-05).
    ASSERT_TRUE(peer->send(
        concat(terminate(std::string(code) + "0000"), fpdu(tagged(0, 1, 0, of_text("more"))))));
    EXPECT_TRUE(rest().empty());  // TE-02, TE-13: no answer to it
    peer->finish();
    ASSERT_TRUE(host->wait_for_end());
    EXPECT_EQ(statuses(host->sent()), (Statuses{kFlush, kFlush}));  // TE-14
    EXPECT_EQ(statuses(host->received()), (Statuses{kFlush, kFlush}));
    EXPECT_EQ(host->events(), Events{IBV_EVENT_QP_FATAL});
    EXPECT_EQ(host->end_error(), EPROTO);
    EXPECT_EQ(host->state(), IBV_QPS_ERR);
  }
}

struct Heard {
  const char* what;
  const char* control;  // the first four octets of the Terminate
  enum Echo { kRead, kReadWithoutRdmap, kReadWithWrongMsn } echo;
  ibv_wc_status status;
};

// The Read that a Terminate names completes with what it says; what was posted behind it is
// flushed, and an event would tell nothing more.
TEST_F(Terminates, AReadThatIsNamedIsBlamed) {
  const Heard rows[] = {
      {"invalid STag", "0100e000", Heard::kRead, kAccess},
      {"bounds", "0101e000", Heard::kRead, kAccess},
      {"rights", "0102e000", Heard::kRead, kAccess},
      {"not associated", "0103e000", Heard::kRead, kAccess},
      {"wrap", "0104e000", Heard::kRead, kAccess},
      {"unspecified protection error", "01ffe000", Heard::kRead, kAccess},
      {"reserved bits set", "0100ffff", Heard::kRead, kAccess},
      {"by its MSN alone", "0100c000", Heard::kReadWithoutRdmap, kAccess},
      {"beyond IRD", "1202c000", Heard::kReadWithoutRdmap, kInvalid},
      {"opcode not known", "0206c000", Heard::kReadWithoutRdmap, kInvalid},
      {"stream catastrophe", "0207c000", Heard::kReadWithoutRdmap, kInvalid},
      {"cxgb4: beyond IRD", "1203c000", Heard::kReadWithoutRdmap, kInvalid},
      {"irdma: beyond IRD", "02ffc000", Heard::kReadWithoutRdmap, kInvalid},
      {"irdma: bad key, a code that no RFC has", "0200e000", Heard::kRead, kAccess},
      {"siw: word in the order of its bits", "10020700", Heard::kReadWithWrongMsn, kAccess},
      {"siw: invalid STag", "10000700", Heard::kReadWithWrongMsn, kAccess},
      {"siw: beyond IRD", "20070300", Heard::kReadWithoutRdmap, kInvalid},
  };
  for (const Heard& row : rows) {
    SCOPED_TRACE(row.what);
    start();
    Buffer sink(host->memory, 24);
    for (uint64_t id = 0; id < 3; ++id)
      ASSERT_EQ(host->post(SendWr(IBV_WR_RDMA_READ, {sink.sge(id * 8, 8)}, id).to(id, 1).flags(0)),
                0);
    ASSERT_EQ(host->post(SendWr(IBV_WR_SEND, {}, 3)), 0);
    std::vector<Octets> asked;
    for (int i = 0; i < 3; ++i) asked.push_back(ulpdus_of(peer->receive(52)).at(0));
    // The first is answered, the second is what is wrong.
    ASSERT_TRUE(peer->send(fpdu(tagged(2, read_be32(&asked[0][18]), 0, pattern(8)))));
    Octets echo = asked[1];
    if (row.echo == Heard::kReadWithoutRdmap) echo.resize(18);
    // siw puts the Read's length where the MSN was.
    if (row.echo == Heard::kReadWithWrongMsn)
      std::copy_n(Octets{0, 0, 0, 8}.begin(), 4, echo.begin() + 10);
    Octets body;
    append_be16(body,
                row.echo == Heard::kReadWithWrongMsn ? 0 : 46);  // siw: the payload's length only
    ASSERT_TRUE(peer->send(terminate(row.control, concat(body, echo))));
    EXPECT_EQ(rest().size(), 1u);  // the Send, and no Terminate
    peer->finish();
    ASSERT_TRUE(host->wait_for_end());
    EXPECT_EQ(statuses(host->sent()),
              (Statuses{row.status, kFlush, kFlush}));  // unsignaled ones that succeed say nothing
    EXPECT_EQ(host->sent()[0].wr_id, 1u);
    EXPECT_EQ(host->events(), Events{});
    EXPECT_EQ(host->end_error(), EPROTO);
  }
}

// A Write that is still being sent; siw, cxgb4 and irdma word the missing right differently.
TEST_F(Terminates, AWriteThatIsNamedIsBlamed) {
  for (const char* control :
       {"1100c000", "1101c000", "1102c000", "1103c000", "0102c000", "0200c000", "11000300"}) {
    SCOPED_TRACE(control);
    start();
    Buffer from(host->memory, Octets(64 << 20));
    ASSERT_EQ(host->post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, 0).to(0x10000, 0x5500)), 0);
    ASSERT_EQ(host->post(SendWr(IBV_WR_RDMA_WRITE, {from.sge(0, 8)}, 1).to(0x10000, 0x6600)), 0);
    Octets body;
    append_be16(body, 1000);
    ASSERT_TRUE(peer->send(terminate(control, concat(body, tagged(0, 0x5500, 0x10000, {})))));
    ASSERT_TRUE(wait_until([&] { return host->sent().size() == 2; }));
    EXPECT_EQ(statuses(host->sent()), (Statuses{kAccess, kFlush}));
    // TE-13: what was begun is finished, then FIN.
    const std::vector<Octets> said = rest();
    for (const Octets& ulpdu : said) EXPECT_EQ(ulpdu[1] & 0xf, 0);
    peer->finish();
    ASSERT_TRUE(host->wait_for_end());
    EXPECT_EQ(host->events(), Events{});
  }
}

// siw's words without headers: CRC, no receive.
TEST_F(Terminates, SiwsOrderOfBits) {
  for (const char* control : {"02020000", "21020000", "21020300"}) {
    SCOPED_TRACE(control);
    start();
    Octets body;
    if (std::string_view(control) == "21020300") {
      append_be16(body, 5);
      body = concat(body, untagged(3, 0, 9, 0, {}));
    }
    ASSERT_TRUE(peer->send(terminate(control, body)));
    EXPECT_TRUE(rest().empty());
    peer->finish();
    ASSERT_TRUE(host->wait_for_end());
    EXPECT_EQ(host->events(), Events{IBV_EVENT_QP_FATAL});
  }
}

// TE-12: whatever is on queue 2 ends the stream, is told once, and is not answered.
TEST_F(Terminates, MalformedOnesAreNotAnswered) {
  const Octets rows[] = {
      untagged(7, 2, 2, 0, from_hex("20020000")),          // MSN
      untagged(7, 2, 1, 4, from_hex("20020000")),          // MO
      untagged(7, 2, 1, 0, from_hex("20020000"), false),   // not the last segment
      untagged(7, 2, 1, 0, {}),                            // no word at all
      untagged(7, 2, 1, 0, from_hex("2002")),              // half of it
      untagged(7, 2, 1, 0, from_hex("0100e0000000")),      // headers that are not there
      untagged(7, 2, 1, 0, from_hex("0100a00000000000")),  // R without D
      untagged(7, 2, 1, 0, concat(from_hex("1100c00000ff"), Octets(1400, 0xff))),
  };
  for (const Octets& ulpdu : rows) {
    SCOPED_TRACE(to_hex(ulpdu).substr(0, 60));
    start();
    ASSERT_EQ(host->receive(RecvWr({}, 1)), 0);
    ASSERT_TRUE(peer->send(concat(fpdu(ulpdu), terminate("20020000"))));
    EXPECT_TRUE(rest().empty());
    peer->finish();
    ASSERT_TRUE(host->wait_for_end());
    EXPECT_EQ(statuses(host->received()), Statuses{kFlush});
    EXPECT_EQ(host->events(), Events{IBV_EVENT_QP_FATAL});
  }
}

// --- said ---

// TE-02, TE-08: one Terminate, about the first mistake.
TEST_F(Terminates, OnlyTheFirstMistakeIsTold) {
  const Octets bad_stag = tagged(0, 0x7777, 0, of_text("first")),
               bad_queue = untagged(3, 5, 1, 0, {});
  Octets bad_crc = fpdu(tagged(0, 1, 0, {}));
  bad_crc.back() ^= 1;
  const struct {
    Octets stream;
    Octets answer;
  } rows[] = {
      {concat(concat(fpdu(bad_stag), bad_crc), fpdu(bad_queue)),
       terminate_for(0x1100, 0xc0, bad_stag)},
      {concat(concat(bad_crc, fpdu(bad_stag)), fpdu(bad_queue)), terminate_for(0x2002, 0, {})},
      {concat(concat(fpdu(bad_queue), bad_crc), terminate("20020000")),
       terminate_for(0x1201, 0xc0, bad_queue)},
  };
  for (const auto& row : rows) {
    start();
    ASSERT_TRUE(peer->send(row.stream));
    const std::vector<Octets> said = rest();
    ASSERT_EQ(said.size(), 1u);
    EXPECT_EQ(to_hex(said[0]), to_hex(row.answer));
    peer->finish();
    ASSERT_TRUE(host->wait_for_end());
    EXPECT_EQ(host->events().size(), 1u);
  }
}

// TE-03: it needs no receive, also where there are none at all.
TEST_F(Terminates, HeardWithoutAnyReceive) {
  start({.initiator = false, .receives = 1});
  ASSERT_TRUE(peer->send(vector("V20-term-ddp-stag").octets));
  peer->finish();
  ASSERT_TRUE(host->wait_for_end());
  EXPECT_EQ(host->end_error(), EPROTO);
}

// TE-09, OC-15: said between two FPDUs of a long message, of which no more follows.
TEST_F(Terminates, InTheMiddleOfALongWrite) {
  for (int mss : {0, 1460}) {
    start({.initiator = true}, mss);
    Buffer from(host->memory, pattern(64 << 20));
    ASSERT_EQ(host->post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, 0).to(0, 9)), 0);
    const Octets wrong = tagged(0, 0x7777, 0, of_text("x"));
    ASSERT_TRUE(peer->send(fpdu(wrong)));
    ASSERT_TRUE(wait_until([&] { return !host->events().empty(); }));
    const std::vector<Octets> said = rest();
    ASSERT_GT(said.size(), 1u);
    uint64_t octets = 0;
    for (size_t i = 0; i + 1 < said.size(); ++i) {
      ASSERT_EQ(read_be64(&said[i][6]), octets);
      octets += said[i].size() - 14;
    }
    EXPECT_LT(octets, from.size());
    EXPECT_EQ(to_hex(said.back()), to_hex(terminate_for(0x1100, 0xc0, wrong)));
    peer->finish();
    ASSERT_TRUE(host->wait_for_end());
    EXPECT_EQ(statuses(host->sent()), Statuses{kFlush});
    EXPECT_EQ(host->events(), Events{IBV_EVENT_QP_ACCESS_ERR});
  }
}

// TE-10: a Read whose memory goes while it is answered; the echo says how far we came.
TEST_F(Terminates, AReadStoppedHalfWay) {
  start({.initiator = false});
  constexpr uint32_t kSize = 64 << 20;
  Buffer source(host->memory, Octets(kSize));
  const Octets request =
      untagged(1, 1, 1, 0, read_request(0xaabbccdd, 0x7000, kSize, source.stag(), source.start()));
  const uint64_t start_of_source = source.start();
  const uint32_t stag = source.stag();
  ASSERT_TRUE(peer->send(fpdu(request)));
  // Some of it is there, and the peer takes no more; deregistration does not wait for it.
  Octets first = peer->receive(100000);
  source.deregister();
  bool reset = true;
  const std::vector<Octets> said = ulpdus_of(concat(std::move(first), peer->receive_all(&reset)));
  EXPECT_FALSE(reset);
  uint32_t octets = 0;
  for (size_t i = 0; i + 1 < said.size(); ++i) octets += static_cast<uint32_t>(said[i].size() - 14);
  EXPECT_GT(octets, 0u);
  EXPECT_LT(octets, kSize);
  Octets echoed(request.begin(), request.begin() + 18);
  echoed = concat(echoed, read_request(0xaabbccdd, 0x7000 + octets, kSize - octets, stag,
                                       start_of_source + octets));
  EXPECT_EQ(to_hex(said.back()), to_hex(terminate_for(0x0100, 0xe0, echoed)));
  peer->finish();
  ASSERT_TRUE(host->wait_for_end());
  EXPECT_EQ(host->events(), Events{IBV_EVENT_QP_ACCESS_ERR});
}

// TE-15: instead of a message that cannot be built, behind everything that could.
TEST_F(Terminates, AMistakeOfOurOwn) {
  for (ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    start();
    Buffer from(host->memory, of_text("hello"));
    ASSERT_EQ(host->post(SendWr(IBV_WR_SEND, {from.sge()}, 0)), 0);
    ASSERT_EQ(host->post(SendWr(opcode, {{from.start(), 5, from.stag() ^ 1}}, 1).to(1, 1)), 0);
    // Posting goes on until the error is known.
    ASSERT_EQ(host->post(SendWr(IBV_WR_SEND, {}, 2)), 0);
    const std::vector<Octets> said = rest();
    ASSERT_EQ(said.size(), 2u);
    EXPECT_EQ(to_hex(said[0]), to_hex(untagged(3, 0, 1, 0, of_text("hello"))));
    EXPECT_EQ(to_hex(said[1]), to_hex(terminate_for(0x0000, 0, {})));
    peer->finish();
    ASSERT_TRUE(host->wait_for_end());
    EXPECT_EQ(statuses(host->sent()), (Statuses{kOk, IBV_WC_LOC_PROT_ERR, kFlush}));
  }
}

// MF-06: nothing of a damaged Write is placed, wherever the damage is.
TEST_F(Terminates, ADamagedWriteIsNotPlaced) {
  for (size_t at : {size_t{3}, size_t{9}, size_t{16}, size_t{1015}, size_t{1017}, size_t{1019}}) {
    start();
    Buffer target(host->memory, 1000);
    Octets write = fpdu(tagged(0, target.stag(), target.start(), pattern(1000)));
    ASSERT_EQ(write.size(), 1020u);
    write[at] ^= 0x20;
    ASSERT_TRUE(peer->send(write));
    EXPECT_EQ(to_hex(peer->receive_all()), to_hex(vector("V27-term-llp-crc").octets));
    EXPECT_TRUE(target.content() == Octets(1000)) << at;
    peer->finish();
    ASSERT_TRUE(host->wait_for_end());
  }
}

// --- the end of the connection ---

// TD-11: what TCP took from us arrives although we leave with octets unread.
TEST_F(Terminates, LeavingWithUnreadInputLosesNothing) {
  start();
  Buffer from(host->memory, pattern(100000)), target(host->memory, 65000);
  ASSERT_EQ(host->post(SendWr(IBV_WR_SEND, {from.sge()}, 0)), 0);
  ASSERT_TRUE(wait_until([&] { return host->sent().size() == 1; }));
  std::thread sender([&, write = fpdu(tagged(0, target.stag(), target.start(), pattern(60000)))] {
    for (int i = 0; i < 170 && peer->send(write); ++i) {
    }
    peer->finish();
  });
  host->destroy();
  Octets got;
  for (const Octets& ulpdu : rest()) got.insert(got.end(), ulpdu.begin() + 18, ulpdu.end());
  sender.join();
  EXPECT_TRUE(got == from.content());
}

// TD-07: as many completions as requests, whatever ends it.
TEST_F(Terminates, EveryRequestCompletesOnce) {
  enum End { kTerminate, kFin, kReset, kGarbage, kModify };
  for (End end : {kTerminate, kFin, kReset, kGarbage, kModify}) {
    SCOPED_TRACE(end);
    start();
    Buffer from(host->memory, Octets(1 << 20)), sink(host->memory, 8);
    for (uint64_t id = 0; id < 40; ++id) {
      ASSERT_EQ(host->receive(RecvWr({}, id)), 0);
      const ibv_wr_opcode opcode = id % 3 == 0   ? IBV_WR_RDMA_READ
                                   : id % 3 == 1 ? IBV_WR_RDMA_WRITE
                                                 : IBV_WR_SEND;
      ASSERT_EQ(
          host->post(
              SendWr(opcode, {opcode == IBV_WR_RDMA_READ ? sink.sge() : from.sge()}, id).to(1, 1)),
          0);
    }
    switch (end) {
      case kTerminate:
        peer->send(terminate("00000000"));
        break;
      case kFin:
        peer->send({from.data(), 5});
        break;
      case kReset:
        peer->reset();
        break;
      case kGarbage:
        peer->send(Octets(100, 0xff)), peer->send(Octets(70000));
        break;
      case kModify:
        ASSERT_EQ(host->modify(IBV_QPS_ERR), 0);
        break;
    }
    if (end != kReset) {
      peer->finish();
      peer->receive_all();
    }
    ASSERT_TRUE(host->wait_for_end());
    for (const auto& list : {host->sent(), host->received()}) {
      ASSERT_EQ(list.size(), 40u);
      for (uint64_t id = 0; id < 40; ++id) EXPECT_EQ(list[id].wr_id, id);
      EXPECT_EQ(list.back().status, kFlush);
    }
  }
}

}  // namespace
}  // namespace uiw::test
