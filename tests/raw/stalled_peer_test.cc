// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Peers that take nothing more, or that make one mistake after the other: what is told about work
// that did not go out, what others notice, and what it costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "core/log.h"
#include "core/settings.h"
#include "core/tuning.h"
#include "support/host.h"
#include "support/scene.h"

namespace uiw::test {
namespace {

// One FPDU each; far more of them than two sockets hold.
constexpr size_t kMessage = 60000, kCount = 3500;

int buffer_of(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(getsockopt(fd, SOL_SOCKET, option, &value, &size), 0);
  return value;
}

class StalledPeer : public testing::Test {
 protected:
  StalledPeer()
      : engine(std::move(*engine::Engine::start())),
        host(*engine, {.initiator = true, .crc = false, .depth = kCount}),
        from(host.memory, pattern(kMessage)) {
    const SocketEnds sockets = connect_sockets();
    ours = sockets.ours;
    peer = std::make_unique<RawPeer>(sockets.theirs);
    EXPECT_EQ(host.attach(ours), 0);
  }
  void post_more_than_tcp_takes() {
    for (uint64_t i = 0; i < kCount; ++i) {
      const bool write = i % 2 == 0;
      ASSERT_EQ(
          host.post(
              SendWr(write ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, {from.sge()}, i).to(0x1000, 0x55)),
          0);
    }
  }
  // Each once and in order: some that went out, then only such that did not. Returns how many did.
  size_t successes() {
    const std::vector<ibv_wc> done = host.sent();
    EXPECT_EQ(done.size(), kCount);
    size_t count = 0;
    for (size_t i = 0; i < done.size(); ++i) {
      EXPECT_EQ(done[i].wr_id, i);
      if (done[i].status == IBV_WC_SUCCESS) {
        EXPECT_EQ(count, i) << "a success behind a failure";
        ++count;
      } else {
        EXPECT_EQ(done[i].status, IBV_WC_WR_FLUSH_ERR);
      }
    }
    return count;
  }

  std::unique_ptr<engine::Engine> engine;
  Host host;
  Buffer from;
  std::unique_ptr<RawPeer> peer;
  int ours = -1;
};

// DS-17: TCP has taken what the peer has read and what lies in two socket buffers. Nothing beyond
// that was completed as sent.
TEST_F(StalledPeer, WhatTcpHasNotTakenIsNoSuccess) {
  post_more_than_tcp_takes();
  constexpr size_t kRead = 100 * kMessage;
  EXPECT_EQ(peer->receive(kRead).size(), kRead);
  ASSERT_TRUE(wait_until([&] { return host.sent().size() >= 90; }));
  const size_t held = static_cast<size_t>(buffer_of(ours, SO_SNDBUF)) +
                      static_cast<size_t>(buffer_of(peer->fd(), SO_RCVBUF)) +
                      (1 << 20);  // one packet over
  ASSERT_LT(kRead + held, kMessage * kCount);
  peer->reset();
  ASSERT_TRUE(host.wait_for_end());
  const size_t count = successes();
  EXPECT_GE(count, 90u);
  EXPECT_LE(count * kMessage, kRead + held);
}

// What was posted before the end goes out to a reader that is only slow, though that lasts longer
// than the close timeout. It is in seconds here: a reader that the machine keeps from its processor
// for a quarter of one has not stopped reading.
TEST_F(StalledPeer, WhoReadsSlowlyGetsEverything) {
  const core::Nanoseconds limit = core::settings().close_timeout_ms * core::kMillisecond;
  ASSERT_GT(limit, core::kSecond) << "run by ctest, which sets it";
  post_more_than_tcp_takes();
  ASSERT_TRUE(wait_until_nothing_moves(peer->fd()));
  host.end_by(Host::Ending::kDisconnect);
  // Small steps: what two sockets hold comes behind the FIN, and must not last as long.
  constexpr size_t kSteps = 60;
  size_t bytes = 0;
  const core::Nanoseconds start = core::now();
  for (size_t i = 0; i < kSteps; ++i) {
    bytes += peer->receive(kCount * kMessage / kSteps).size();
    std::this_thread::sleep_for(std::chrono::nanoseconds(limit / (kSteps - 10)));
  }
  EXPECT_GT(core::now() - start, limit);
  bool reset = true;
  bytes += peer->receive_all(&reset).size();
  EXPECT_FALSE(reset);
  EXPECT_GE(bytes, kCount * kMessage);
  peer->finish();
  ASSERT_TRUE(host.wait_for_end());
  EXPECT_EQ(host.end_error(), 0);
  EXPECT_EQ(successes(), kCount);
}

// OC-15: after the peer's Terminate nothing more is begun. What was completed as sent is all there
// when the peer reads on.
TEST_F(StalledPeer, AfterATerminateWhatWasNotSentCompletesInError) {
  post_more_than_tcp_takes();
  constexpr size_t kRead = 100 * kMessage;
  EXPECT_EQ(peer->receive(kRead).size(), kRead);
  ASSERT_TRUE(wait_until([&] { return host.sent().size() >= 90; }));
  ASSERT_TRUE(peer->send(fpdu(untagged(7, 2, 1, 0, from_hex("12050000")), false)));
  ASSERT_TRUE(wait_until([&] { return !host.events().empty(); }));
  const size_t count = successes();  // all are told before the event is
  EXPECT_GE(count, 90u);
  EXPECT_LT(count, kCount);
  bool reset = true;
  const size_t rest = peer->receive_all(&reset).size();
  EXPECT_FALSE(reset);
  EXPECT_GE(kRead + rest, count * kMessage);
  peer->finish();
  ASSERT_TRUE(host.wait_for_end());
  EXPECT_EQ(host.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_FATAL});
  EXPECT_EQ(host.sent().size(), kCount);
}

// SE-14: somebody whose Reads fill all of its slots, and who reads none of the answers, leaves
// those of another stream free.
TEST_F(StalledPeer, FillsNoSlotsButItsOwn) {
  Host stuck(*engine), lively(*engine);
  const SocketEnds one = connect_sockets(), other = connect_sockets();
  RawPeer greedy(one.theirs), modest(other.theirs);
  ASSERT_EQ(stuck.attach(one.ours), 0);
  ASSERT_EQ(lively.attach(other.ours), 0);
  constexpr uint32_t kHuge = 32 << 20;
  Buffer much(stuck.memory, kHuge), little(lively.memory, pattern(100));
  const auto ask = [&](RawPeer& asker, uint32_t msn, const Buffer& source) {
    const Octets request =
        read_request(msn, 0, static_cast<uint32_t>(source.size()), source.stag(), source.start());
    ASSERT_TRUE(asker.send(fpdu(untagged(1, 1, msn, 0, request))));
  };
  for (uint32_t msn = 1; msn <= stuck.options.ird; ++msn) ask(greedy, msn, much);
  for (uint32_t msn = 1; msn <= 5u * lively.options.ird; ++msn) {
    ask(modest, msn, little);
    if (msn % lively.options.ird != 0) continue;
    for (uint32_t answered = msn + 1 - lively.options.ird; answered <= msn; ++answered) {
      const Octets expected = fpdu(tagged(2, answered, 0, little.content()));
      EXPECT_EQ(to_hex(modest.receive(expected.size())), to_hex(expected));
    }
  }
  EXPECT_TRUE(stuck.events().empty());
  ask(greedy, stuck.options.ird + 1u, much);  // one too many: its own error
  ASSERT_TRUE(wait_until([&] { return !stuck.events().empty(); }));
  EXPECT_EQ(stuck.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_REQ_ERR});
  EXPECT_TRUE(lively.events().empty());
  ask(modest, 5u * lively.options.ird + 1, little);
  EXPECT_EQ(modest.receive(20 + 100).size(), 120u);
  much.deregister();
}

// A queue pair whose answer to a Read of `size` octets lies in a full socket.
struct StalledReader {
  StalledReader(engine::Engine& engine, uint32_t size)
      : source(engine, {.crc = false}), much(source.memory, pattern(size)) {}
  void fill_the_socket() {
    ASSERT_EQ(source.attach(sockets.ours), 0);
    const auto size = static_cast<uint32_t>(much.size());
    ASSERT_TRUE(reader.send(
        fpdu(untagged(1, 1, 1, 0, read_request(1, 0, size, much.stag(), much.start())), false)));
    EXPECT_TRUE(wait_until_nothing_moves(reader.fd()));
  }

  Host source;
  const SocketEnds sockets = connect_sockets();
  RawPeer reader{sockets.theirs};
  Buffer much;
};

// SE-06: a region that somebody reads who takes nothing more can be deregistered, though it lies in
// a full socket. What was built of the answer arrives as it was then, and a Terminate behind it.
TEST_F(StalledPeer, KeepsNoRegionFromItsOwner) {
  constexpr uint32_t kHuge = 64 << 20;
  StalledReader x(*engine, kHuge);
  const Octets expected = x.much.content();
  x.fill_the_socket();
  x.much.deregister();  // waits for ever if the references stay
  std::fill_n(x.much.data(), x.much.size(), 0);
  const std::vector<Octets> said = ulpdus_of(x.reader.receive_all(), false);
  ASSERT_GT(said.size(), 1u);
  size_t place = 0;
  for (const Octets& segment : std::span(said).first(said.size() - 1)) {
    const auto payload = std::span(segment).subspan(14);
    ASSERT_TRUE(std::equal(payload.begin(), payload.end(), expected.begin() + place)) << place;
    place += payload.size();
  }
  EXPECT_LT(place, size_t{kHuge});
  EXPECT_EQ(said.back()[1] & 0xf, 7) << "a Terminate";
  x.reader.finish();
  ASSERT_TRUE(x.source.wait_for_end());
}

// The same of a queue pair that has ended, in each way, while it lay there.
TEST_F(StalledPeer, WhoHasEndedKeepsNoRegion) {
  for (const Host::Ending ending : Host::kEndings) {
    StalledReader x(*engine, 16 << 20);
    x.fill_the_socket();
    x.source.end_by(ending);
    x.much.deregister();  // waits for ever if the references stay
  }
}

// And of one that is connected by number, and stays as it is when its peer has gone.
TEST_F(StalledPeer, WhoHasLostItsPeerKeepsNoRegion) {
  StalledReader x(*engine, 16 << 20);
  ASSERT_EQ(x.source.qp->expect_peer(), 0);
  ASSERT_EQ(x.source.modify(IBV_QPS_RTS), 0);
  x.fill_the_socket();
  x.reader.finish();
  ASSERT_TRUE(x.source.wait_for_end());
  EXPECT_EQ(x.source.state(), IBV_QPS_RTS);
  x.much.deregister();  // waits for ever if the references stay
}

size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

size_t count_of(const std::string& part, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// SE-26: one mistake is one Terminate, one event, one line for who asked for such lines, and the
// end of the stream, however much follows it; and it leaves nothing behind. What was wrong is said
// of so many queue pairs only.
TEST_F(StalledPeer, AMistakeCostsLittle) {
  ASSERT_TRUE(core::log_enabled(core::LogLevel::kInfo))
      << "run by ctest, which sets the environment";
  constexpr size_t kMistakes = 100;
  const size_t descriptors = open_descriptors();
  Octets bad = fpdu(tagged(0, 0xdeadbeef, 0, pattern(8)));
  for (int i = 0; i < 500; ++i) bad = concat(bad, fpdu(tagged(0, 0xdeadbeef, 0, pattern(8))));
  testing::internal::CaptureStderr();
  for (size_t i = 0; i < kMistakes; ++i) {
    Host victim(*engine);
    const SocketEnds sockets = connect_sockets();
    RawPeer hostile(sockets.theirs);
    ASSERT_EQ(victim.attach(sockets.ours), 0);
    hostile.send(bad);
    const std::vector<Octets> said = ulpdus_of(hostile.receive_all());
    EXPECT_EQ(said.size(), 1u);
    hostile.finish();
    ASSERT_TRUE(victim.wait_for_end());
    EXPECT_EQ(victim.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_ACCESS_ERR});
  }
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of("ending the connection", lines), kMistakes) << lines;
  EXPECT_EQ(count_of("refused an RDMA Write", lines), core::tuning::kMostExplained) << lines;
  EXPECT_EQ(count_of("\n", lines), kMistakes + core::tuning::kMostExplained) << lines;
  ASSERT_TRUE(wait_until([&] { return open_descriptors() <= descriptors; }));
}

}  // namespace
}  // namespace uiw::test
