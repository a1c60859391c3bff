// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "transport/tcp_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include <thread>
#include <vector>

#include "engine/fixed_files.h"
#include "unit/transport/support.h"

namespace uiw::transport {
namespace {

using test::Heard;
using test::Recorder;

using TcpStreamTest = test::ConnectedPair;

TEST_F(TcpStreamTest, EchoesEverySize) {
  Recorder echo(*engine);
  echo.then = [&](core::Bytes octets) {
    const iovec piece{const_cast<uint8_t*>(octets.data()), octets.size()};
    EXPECT_EQ(echo.stream->send(&piece, 1), static_cast<long>(octets.size()));
  };
  echo.adopt(pair.ours);
  for (size_t size : {1u, 2u, 64u, 1448u, 1449u, 4096u, 65535u, 65536u, 65537u, 262143u, 262144u,
                      262145u, 1000000u}) {
    SCOPED_TRACE(size);
    const std::string sent = test::pattern(size, static_cast<unsigned>(size));
    std::thread writer([&] { test::write_all(pair.theirs, sent); });
    EXPECT_EQ(test::read_exactly(pair.theirs, size), sent);
    writer.join();
  }
}

TEST_F(TcpStreamTest, SendsPiecesInOrderAndInOneCall) {
  Recorder ours(*engine);
  ours.adopt(pair.ours);
  std::string texts[] = {"one ", "", "two ", "three"};
  iovec pieces[4];
  for (int i = 0; i < 4; ++i) pieces[i] = {texts[i].data(), texts[i].size()};
  EXPECT_EQ(ours.stream->send(pieces, 4), 13);
  EXPECT_EQ(test::read_exactly(pair.theirs, 13), "one two three");
}

TEST_F(TcpStreamTest, MorePiecesThanACallTakesAreAPartialSend) {
  Recorder ours(*engine);
  ours.adopt(pair.ours);
  char octet = 'x';
  std::vector<iovec> pieces(3000, iovec{&octet, 1});
  EXPECT_EQ(ours.stream->send(pieces.data(), pieces.size()), 1024);
  EXPECT_EQ(test::read_exactly(pair.theirs, 1024), std::string(1024, 'x'));
}

// A sender with much to send against a reader that starts late: part goes out, the rest when
// on_writable() says so, and every octet arrives in order.
TEST_F(TcpStreamTest, CarriesOnWhenTheSocketTakesOctetsAgain) {
  const std::string sent = test::pattern(32 << 20);
  size_t done = 0;
  int full = 0;
  Recorder ours(*engine);
  auto carry_on = [&] {
    while (done < sent.size()) {
      const iovec piece{const_cast<char*>(sent.data()) + done, sent.size() - done};
      const long n = ours.stream->send(&piece, 1);
      if (n == -EAGAIN) {
        ++full;
        ours.stream->want_writable();
        return;
      }
      ASSERT_GT(n, 0);
      done += static_cast<size_t>(n);
    }
  };
  ours.then_writable = carry_on;
  ours.adopt(pair.ours);
  engine->run_sync([&] {
    carry_on();
    EXPECT_EQ(full, 1);
    EXPECT_LT(done, sent.size());
  });
  EXPECT_EQ(test::read_exactly(pair.theirs, sent.size()), sent);
  engine->run_sync([&] { EXPECT_EQ(done, sent.size()); });
  EXPECT_GE(ours.heard.get().writable, 1);
}

TEST_F(TcpStreamTest, WantWritableIsOnce) {
  Recorder ours(*engine);
  ours.adopt(pair.ours);
  engine->run_sync([&] {
    ours.stream->want_writable();
    ours.stream->want_writable();
  });
  ours.heard.wait([](const Heard& h) { return h.writable == 1; });
  engine->run_sync([] {});
  engine->run_sync([] {});
  EXPECT_EQ(ours.heard.get().writable, 1);
}

TEST_F(TcpStreamTest, PausedItLeavesOctetsToTheWindow) {
  Recorder ours(*engine);
  ours.adopt(pair.ours);
  engine->run_sync([&] { ours.stream->pause_receive(); });
  test::write_all(pair.theirs, "a");
  ours.wait_octets(1);  // the receive that was under way
  // Now nothing is asked for: the peer's octets pile up until it cannot send.
  const int blocks = [&] {
    int n = 0;
    const std::string block(64 << 10, 'b');
    while (send(pair.theirs, block.data(), block.size(), MSG_DONTWAIT) > 0) ++n;
    return n;
  }();
  EXPECT_GT(blocks, 0);
  engine->run_sync([] {});
  EXPECT_EQ(ours.heard.get().octets, "a");
  engine->run_sync([&] { ours.stream->resume_receive(); });
  shutdown(pair.theirs, SHUT_WR);
  const Heard heard = ours.heard.wait([](const Heard& h) { return h.ends == 1; });
  EXPECT_GT(heard.octets.size(), 64u << 10);
  EXPECT_EQ(heard.octets.find_first_not_of('b', 1), std::string::npos);
}

TEST_F(TcpStreamTest, PauseAndResumeInsideACall) {
  Recorder ours(*engine);
  ours.then = [&](core::Bytes) {
    ours.stream->pause_receive();
    ours.stream->resume_receive();
    ours.stream->resume_receive();
  };
  ours.adopt(pair.ours);
  std::string sent;
  for (int i = 0; i < 100; ++i) {
    test::write_all(pair.theirs, std::to_string(i));
    sent += std::to_string(i);
  }
  EXPECT_EQ(ours.wait_octets(sent.size()).octets, sent);
}

TEST_F(TcpStreamTest, TellsTheEndOfTheStreamAfterTheOctets) {
  Recorder ours(*engine);
  ours.adopt(pair.ours);
  test::write_all(pair.theirs, "last words");
  shutdown(pair.theirs, SHUT_WR);
  const Heard heard = ours.heard.wait([](const Heard& h) { return h.ends == 1; });
  EXPECT_EQ(heard.octets, "last words");
  EXPECT_EQ(heard.error, 0);
  // Only their half ended: ours still sends.
  EXPECT_EQ(ours.send("answer"), 6);
  EXPECT_EQ(test::read_exactly(pair.theirs, 6), "answer");
  engine->run_sync([&] { ours.stream->shutdown_write(); });
  char octet;
  EXPECT_EQ(read(pair.theirs, &octet, 1), 0);
  EXPECT_EQ(ours.send("x"), -EPIPE);
}

TEST_F(TcpStreamTest, TellsAReset) {
  Recorder ours(*engine);
  ours.adopt(pair.ours);
  reset_theirs();
  const Heard heard = ours.heard.wait([](const Heard& h) { return h.error != 0 || h.ends != 0; });
  EXPECT_EQ(heard.error, ECONNRESET);
  EXPECT_EQ(heard.ends, 0);
}

TEST_F(TcpStreamTest, AResetReleasesWhoWaitsForRoom) {
  Recorder ours(*engine);
  ours.adopt(pair.ours);
  engine->run_sync([&] {
    ours.stream->pause_receive();
    const std::string block(1 << 20, 'x');
    while (ours.send(block) > 0) {
    }
    ours.stream->want_writable();
  });
  reset_theirs();
  ours.heard.wait([](const Heard& h) { return h.error != 0 || h.writable != 0; });
  engine->run_sync([&] { EXPECT_LT(ours.send("x"), 0); });
}

TEST_F(TcpStreamTest, ResetBeforeItWasAdopted) {
  reset_theirs();
  Recorder ours(*engine);
  ours.adopt(pair.ours);
  EXPECT_EQ(ours.heard.wait([](const Heard& h) { return h.error != 0; }).error, ECONNRESET);
}

TEST_F(TcpStreamTest, AbortiveCloseSendsReset) {
  Recorder ours(*engine);
  ours.adopt(pair.ours);
  engine->run_sync([&] { ours.stream->set_abortive(); });
  ours.end();
  char octet;
  EXPECT_EQ(read(pair.theirs, &octet, 1), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(TcpStreamTest, OrderlyCloseSendsFin) {
  Recorder ours(*engine);
  ours.adopt(pair.ours);
  EXPECT_EQ(ours.send("bye"), 3);
  ours.end();
  EXPECT_EQ(test::read_exactly(pair.theirs, 3), "bye");
  char octet;
  EXPECT_EQ(read(pair.theirs, &octet, 1), 0);
}

// The ring knows a socket that receives much by a number of its own, and holds it by that, too.
// More of them than it has numbers, one after the other.
TEST_F(TcpStreamTest, ClosingFreesTheSocketOfWhoReceivedMuch) {
  constexpr int kReceives = 80;
  for (unsigned i = 0; i < engine::FixedFiles::kCount + 10; ++i) {
    SCOPED_TRACE(i);
    Recorder echo(*engine);
    echo.then = [&](core::Bytes octets) {
      const iovec piece{const_cast<uint8_t*>(octets.data()), octets.size()};
      EXPECT_EQ(echo.stream->send(&piece, 1), static_cast<long>(octets.size()));
    };
    echo.adopt(pair.ours);
    for (int k = 0; k < kReceives; ++k) {
      test::write_all(pair.theirs, "x");
      ASSERT_EQ(test::read_exactly(pair.theirs, 1), "x");
    }
    // Paused it does nothing in the kernel, so that nobody else is to be asked to end.
    engine->run_sync([&] { echo.stream->pause_receive(); });
    echo.end();
    char octet;
    EXPECT_EQ(read(pair.theirs, &octet, 1), 0);
    close_theirs();
    pair = test::connected_pair();
  }
  close(pair.ours);
}

TEST_F(TcpStreamTest, ClosingWithOperationsInFlightIsSilentAndFreesTheSocket) {
  {
    Recorder ours(*engine);
    ours.adopt(pair.ours);
    engine->run_sync([&] {
      const std::string block(1 << 20, 'x');
      while (ours.send(block) > 0) {
      }
      ours.stream->want_writable();
      engine->flush();
      ours.stream.reset();
    });
    test::write_all(pair.theirs, "too late");
    engine->run_sync([] {});
    EXPECT_EQ(ours.heard.get().octets, "");
    EXPECT_EQ(ours.heard.get().writable, 0);
  }
  engine.reset();
  close_theirs();
  EXPECT_EQ(test::open_descriptors(), descriptors_before);
}

TEST_F(TcpStreamTest, MayBeClosedInsideEachOfItsCalls) {
  for (int call = 0; call < 4; ++call) {
    SCOPED_TRACE(call);
    test::SocketPair sockets = test::connected_pair();
    test::Watched<bool> closed(false);
    Recorder ours(*engine);
    auto close_it = [&] {
      ours.stream.reset();
      closed.set(true);
    };
    if (call == 0) ours.then = [&](core::Bytes) { close_it(); };
    if (call == 1 || call == 2) ours.then_end = close_it;
    if (call == 3) ours.then_writable = close_it;
    ours.adopt(sockets.ours);
    switch (call) {
      case 0:
        test::write_all(sockets.theirs, "abc");
        break;
      case 1:
        shutdown(sockets.theirs, SHUT_WR);
        break;
      case 2: {
        const linger now{1, 0};
        setsockopt(sockets.theirs, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close(std::exchange(sockets.theirs, -1));
        break;
      }
      case 3:
        engine->run_sync([&] { ours.stream->want_writable(); });
        break;
    }
    closed.wait_for(true);
    engine->run_sync([&] { EXPECT_FALSE(ours.stream); });
    if (sockets.theirs >= 0) close(sockets.theirs);
  }
  engine.reset();
  close(pair.ours);
  close_theirs();
  EXPECT_EQ(test::open_descriptors(), descriptors_before);
}

TEST_F(TcpStreamTest, TheHandlerMayBeExchangedInsideACall) {
  Recorder second(*engine);
  Recorder first(*engine);
  first.then = [&](core::Bytes) { first.stream->set_handler(&second); };
  first.adopt(pair.ours);
  test::write_all(pair.theirs, "first");
  first.wait_octets(5);
  test::write_all(pair.theirs, "second");
  EXPECT_EQ(second.wait_octets(6).octets, "second");
  EXPECT_EQ(first.heard.get().octets, "first");
}

TEST_F(TcpStreamTest, WithoutAHandlerNothingIsLost) {
  Recorder later(*engine);
  Recorder first(*engine);
  first.adopt(pair.ours);
  engine->run_sync([&] { first.stream->set_handler(nullptr); });
  // The receive under way takes the first piece, the rest stays in the socket.
  test::write_all(pair.theirs, "kept,");
  engine->run_sync([] {});
  test::write_all(pair.theirs, "waiting");
  shutdown(pair.theirs, SHUT_WR);
  engine->run_sync([] {});
  EXPECT_EQ(first.heard.get().octets, "");
  bool told_inside = true;
  engine->run_sync([&] {
    first.stream->set_handler(&later);
    told_inside = later.heard.get().pieces > 0;
  });
  EXPECT_FALSE(told_inside);
  const Heard heard = later.heard.wait([](const Heard& h) { return h.ends == 1; });
  EXPECT_EQ(heard.octets, "kept,waiting");
}

TEST_F(TcpStreamTest, ClosedWhileOctetsAreKept) {
  Recorder first(*engine);
  first.adopt(pair.ours);
  engine->run_sync([&] { first.stream->set_handler(nullptr); });
  test::write_all(pair.theirs, "kept");
  engine->run_sync([] {});
  engine->run_sync([&] {
    first.stream->set_handler(&first);  // posts itself
    first.stream.reset();
  });
  engine->run_sync([] {});
  EXPECT_EQ(first.heard.get().octets, "");
}

TEST_F(TcpStreamTest, NeverStartedItReceivesNothing) {
  StreamPtr stream = TcpStream::adopt(*engine, pair.ours);
  ASSERT_TRUE(stream);
  test::write_all(pair.theirs, "x");
  engine->run_sync([&] { stream.reset(); });
  EXPECT_EQ(engine->counters().receives, 0u);
}

TEST_F(TcpStreamTest, KnowsBothEnds) {
  const sockaddr_storage ours = test::name_of(pair.ours);
  const sockaddr_storage theirs = test::name_of(pair.theirs);
  StreamPtr stream = TcpStream::adopt(*engine, pair.ours);
  EXPECT_EQ(memcmp(&stream->local_address(), &ours, sizeof(sockaddr_in)), 0);
  EXPECT_EQ(memcmp(&stream->peer_address(), &theirs, sizeof(sockaddr_in)), 0);
  EXPECT_TRUE(stream->peer_is_local());
  EXPECT_GT(stream->emss(), 500u);
  engine->run_sync([&] { stream.reset(); });
}

TEST_F(TcpStreamTest, SetsTheOptionsOfALocalConnection) {
  StreamPtr stream = TcpStream::adopt(*engine, pair.ours);
  int value = 0;
  socklen_t size = sizeof value;
  getsockopt(pair.ours, IPPROTO_TCP, TCP_NODELAY, &value, &size);
  EXPECT_EQ(value, 1);
  char algorithm[16] = {};
  size = sizeof algorithm;
  getsockopt(pair.ours, IPPROTO_TCP, TCP_CONGESTION, algorithm, &size);
  EXPECT_STREQ(algorithm, "reno");
  engine->run_sync([&] { stream.reset(); });
}

TEST_F(TcpStreamTest, ManyLocalConnectionsHaveSmallBuffersEach) {
  std::vector<test::SocketPair> pairs;
  std::vector<StreamPtr> streams;
  const auto another = [&] {
    pairs.push_back(test::connected_pair());
    streams.push_back(TcpStream::adopt(*engine, pairs.back().ours));
    return test::buffer_of(pairs.back().ours, SO_SNDBUF);
  };
  const int first = another();
  if (first < 2 * (768 << 10)) GTEST_SKIP() << "this host does not allow large buffers";
  EXPECT_EQ(another(), first);
  EXPECT_EQ(another(), first);
  EXPECT_EQ(another(), 2 * (256 << 10));
  engine->run_sync([&] { streams.clear(); });
  EXPECT_EQ(another(), first) << "the others have gone";
  engine->run_sync([&] { streams.clear(); });
  for (const test::SocketPair& each : pairs) close(each.theirs);
}

TEST_F(TcpStreamTest, TwoHundredAtOnce) {
  constexpr int kStreams = 200;
  constexpr int kRounds = 5;
  std::vector<std::unique_ptr<Recorder>> ours;
  std::vector<int> theirs;
  for (int i = 0; i < kStreams; ++i) {
    test::SocketPair sockets = test::connected_pair();
    theirs.push_back(sockets.theirs);
    ours.push_back(std::make_unique<Recorder>(*engine));
    Recorder& echo = *ours.back();
    echo.then = [&echo](core::Bytes octets) {
      const iovec piece{const_cast<uint8_t*>(octets.data()), octets.size()};
      EXPECT_EQ(echo.stream->send(&piece, 1), static_cast<long>(octets.size()));
    };
    echo.adopt(sockets.ours);
  }
  for (int round = 0; round < kRounds; ++round) {
    auto text = [&](int i) { return test::pattern(1000 + i, i + round * kStreams); };
    for (int i = 0; i < kStreams; ++i) test::write_all(theirs[i], text(i));
    for (int i = 0; i < kStreams; ++i) EXPECT_EQ(test::read_exactly(theirs[i], 1000 + i), text(i));
  }
  for (int fd : theirs) close(fd);
  for (auto& each : ours) each->heard.wait([](const Heard& h) { return h.ends == 1; });
}

TEST_F(TcpStreamTest, OverIpv6) {
  test::SocketPair sockets = test::connected_pair(test::loopback6());
  Recorder ours(*engine);
  ours.adopt(sockets.ours);
  EXPECT_TRUE(ours.stream->peer_is_local());
  test::write_all(sockets.theirs, "six");
  EXPECT_EQ(ours.wait_octets(3).octets, "six");
  close(sockets.theirs);
}

// Though an operation on it is in flight, and the kernel has not said yet that it has ended.
TEST_F(TcpStreamTest, ItsDescriptorIsFreeWhenItIsClosed) {
  Recorder peer(*engine);
  peer.adopt(pair.ours);
  engine->run_sync([&] {
    EXPECT_NE(fcntl(pair.ours, F_GETFD), -1);
    peer.stream->want_writable();
    peer.stream.reset();
    EXPECT_EQ(fcntl(pair.ours, F_GETFD), -1);
  });
  uint8_t octet;
  EXPECT_EQ(read(pair.theirs, &octet, 1), 0);
}

}  // namespace
}  // namespace uiw::transport
