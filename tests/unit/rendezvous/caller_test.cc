// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Whoever holds the port that a queue pair calls, without being its peer, is not taken for it.
#include <functional>
#include <utility>

#include "core/settings.h"
#include "mpa/startup_frame.h"
#include "rendezvous/wishes.h"
#include "unit/rendezvous/party.h"

namespace uiw::rendezvous {
namespace {

class Calls : public OnEngine {
 protected:
  Calls() {
    sockaddr_storage address = address_of(loopback_gid(), 0, 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(sockaddr_in)), 0);
    EXPECT_EQ(listen(listener_, 4), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    peer = {
        loopback_gid(),
        static_cast<uint32_t>(ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port)) << 8 | 3};
  }
  ~Calls() override { close(listener_); }

  // The next call, after its Request.
  RawPeer answer(const Party& party, mpa::StartupFrame& request) {
    RawPeer caller(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    const Octets octets =
        caller.receive(mpa::kStartupHeaderSize + mpa::kEnhancedBlockSize + kGreetingSize);
    uint32_t consumed = 0;
    EXPECT_EQ(mpa::parse(octets, mpa::FrameKind::kRequest, request, consumed),
              mpa::ParseStatus::kComplete);
    EXPECT_EQ(decode_greeting({request.private_data, request.private_size}),
              (Greeting{party.name, peer}));
    return caller;
  }
  static Octets reply_to(const mpa::StartupFrame& request, const Greeting& greeting) {
    mpa::Agreement agreement;
    mpa::StartupFrame frame = mpa::make_reply(wishes(true, 1), request, agreement);
    frame.private_size = kGreetingSize;
    encode(frame.private_data, greeting);
    Octets octets(mpa::kMaxStartupFrame);
    octets.resize(mpa::encode(octets.data(), frame));
    return octets;
  }

  Name peer;

 private:
  const int listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

TEST_F(Calls, OnlyThePeersAnswerCounts) {
  Party party(*engine);
  // The greater of the two names, which calls.
  party.name.gid = gid("::ffff:127.0.0.2");
  ASSERT_LT(peer, party.name);
  ASSERT_EQ(party.meet(peer), 0);
  const Greeting right{peer, party.name};
  const auto with = [](const Greeting& greeting) {
    return [greeting](const mpa::StartupFrame& request) { return reply_to(request, greeting); };
  };
  const std::pair<const char*, std::function<Octets(const mpa::StartupFrame&)>> answers[] = {
      {"another protocol",
       [](const mpa::StartupFrame&) { return of_text("HTTP/1.1 400 Bad Request\r\n\r\n"); }},
      {"a neighbour of the peer", with({{peer.gid, peer.qp_num ^ 1}, party.name})},
      {"the peer of a neighbour", with({peer, {party.name.gid, party.name.qp_num ^ 1}})},
      {"our own words", with({party.name, peer})},
      {"no greeting",
       [&](const mpa::StartupFrame& request) {
         Octets octets = reply_to(request, right);
         octets[mpa::kStartupHeaderSize + mpa::kEnhancedBlockSize] ^= 1;
         return octets;
       }},
      {"a refusal",
       [&](const mpa::StartupFrame& request) {
         Octets octets = reply_to(request, right);
         octets[16] |= 0x20;
         return octets;
       }},
      {"half an answer",  // the last: nothing of it may be in the next
       [&](const mpa::StartupFrame& request) {
         Octets octets = reply_to(request, right);
         octets.resize(octets.size() / 2);
         return octets;
       }},
  };
  mpa::StartupFrame request;
  for (const auto& [what, says] : answers) {
    SCOPED_TRACE(what);
    RawPeer caller = answer(party, request);
    ASSERT_TRUE(caller.send(says(request)));
    caller.finish();
    EXPECT_EQ(caller.receive_all(), Octets());  // no RTR
  }
  EXPECT_EQ(party.host.state(), IBV_QPS_RTR);
  RawPeer caller = answer(party, request);
  ASSERT_TRUE(caller.send(reply_to(request, right)));
  // An RTR: the queue pair has the stream.
  EXPECT_FALSE(caller.receive(20).empty());
}

// Run as test_rendezvous.timeouts. A door lets callers wait as long as this, counted from later: it
// has to be the one that ends it, or its answer might cross our leaving and meet nobody.
TEST_F(Calls, TimeoutsAreLongerThanADoors) {
  const core::Nanoseconds door = core::settings().reply_timeout_ms * core::kMillisecond;
  if (door > core::kSecond) GTEST_SKIP() << "the time-outs set are too long";
  Party party(*engine);
  party.name.gid = gid("::ffff:127.0.0.2");
  ASSERT_EQ(party.meet(peer), 0);
  mpa::StartupFrame request;
  RawPeer caller = answer(party, request);
  const core::Nanoseconds called = core::now();
  EXPECT_EQ(caller.receive_all(), Octets());
  EXPECT_GT(core::now() - called, door + door / 2);
  // And he comes again.
  RawPeer again = answer(party, request);
  ASSERT_TRUE(again.send(reply_to(request, {peer, party.name})));
  EXPECT_FALSE(again.receive(20).empty());
}

}  // namespace
}  // namespace uiw::rendezvous
