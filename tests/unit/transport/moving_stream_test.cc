// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A stream that goes to another engine.
#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "transport/tcp_stream.h"
#include "unit/transport/support.h"

namespace uiw::transport {
namespace {

using test::Heard;
using test::Recorder;

struct MovingStream : test::ConnectedPair {
  // As a queue pair takes a stream over (session/): one engine waits for the other.
  static void move(Recorder& from, Recorder& to, engine::Engine& where) {
    where.run_sync([&] {
      EXPECT_TRUE(from.stream->move_to(where));
      to.stream = std::move(from.stream);
      EXPECT_EQ(&to.stream->engine(), &where);
      to.stream->set_handler(&to);
    });
  }

  std::unique_ptr<engine::Engine> another = test::start_engine();
};

TEST_F(MovingStream, WhatComesLaterComesOnTheNewEngine) {
  std::atomic<int> elsewhere = 0;
  Recorder first(*engine), second(*another);
  second.then = [&](core::Bytes) { elsewhere += !another->on_engine_thread(); };
  second.then_end = [&] { elsewhere += !another->on_engine_thread(); };
  first.adopt(pair.ours);
  test::write_all(pair.theirs, "before");
  first.wait_octets(6);
  engine->run_sync([&] { move(first, second, *another); });
  test::write_all(pair.theirs, "behind");
  EXPECT_EQ(second.wait_octets(6).octets, "behind");
  EXPECT_EQ(second.send("answer"), 6);
  EXPECT_EQ(test::read_exactly(pair.theirs, 6), "answer");
  close_theirs();
  second.heard.wait([](const Heard& h) { return h.ends == 1; });
  EXPECT_EQ(elsewhere, 0);
  EXPECT_EQ(first.heard.get().octets, "before");
  EXPECT_EQ(first.heard.get().ends, 0);
}

// A receive is in flight, or octets are on their way to the handler, while the peer goes on.
TEST_F(MovingStream, NoOctetIsLostOrComesTwice) {
  const std::string sent = test::pattern(3 << 20);
  Recorder first(*engine), second(*another);
  first.then = [&](core::Bytes) {
    if (first.heard.get().octets.size() > sent.size() / 3) move(first, second, *another);
  };
  first.adopt(pair.ours);
  std::thread writer([&] { test::write_all(pair.theirs, sent); });
  second.heard.wait([&](const Heard& h) {
    return h.octets.size() + first.heard.get().octets.size() == sent.size();
  });
  writer.join();
  EXPECT_TRUE(first.heard.get().octets + second.heard.get().octets == sent);
}

TEST_F(MovingStream, WhatWasKeptGoesWithIt) {
  Recorder first(*engine), second(*another);
  first.adopt(pair.ours);
  engine->run_sync([&] { first.stream->set_handler(nullptr); });
  test::write_all(pair.theirs, "kept");
  const auto kept = [&] {
    bool so = false;
    engine->run_sync([&] { so = !first.stream->quiet() && !first.stream->has_unread(); });
    return so;
  };
  test::poll_until(kept);
  engine->run_sync([&] { move(first, second, *another); });
  EXPECT_EQ(second.wait_octets(4).octets, "kept");
  test::write_all(pair.theirs, " and more");
  EXPECT_EQ(second.wait_octets(13).octets, "kept and more");
}

TEST_F(MovingStream, MovesOnAndBack) {
  Recorder first(*engine), second(*another), third(*engine);
  first.adopt(pair.ours);
  engine->run_sync([&] { move(first, second, *another); });
  test::write_all(pair.theirs, "there");
  second.wait_octets(5);
  another->run_sync([&] { move(second, third, *engine); });
  test::write_all(pair.theirs, "back");
  EXPECT_EQ(third.wait_octets(4).octets, "back");
}

TEST_F(MovingStream, TellsTheNewHandlerOfAnEndThatCameBefore) {
  Recorder first(*engine), second(*another);
  first.adopt(pair.ours);
  engine->run_sync([&] {
    first.stream->set_handler(nullptr);
    reset_theirs();
    move(first, second, *another);
  });
  second.heard.wait([](const Heard& h) { return h.error == ECONNRESET; });
}

TEST_F(MovingStream, ClosedOnTheWayItIsSilentAndTheSocketIsFree) {
  const int with_engines = test::open_descriptors();
  for (int i = 0; i < 100; ++i) {
    test::SocketPair sockets = test::connected_pair();
    Recorder first(*engine), second(*another);
    first.adopt(sockets.ours);
    test::write_all(sockets.theirs, "x");
    engine->run_sync([&] {
      move(first, second, *another);
      another->run_sync([&] { second.stream.reset(); });
    });
    close(sockets.theirs);
    EXPECT_EQ(second.heard.get().octets, "");
  }
  test::poll_until([&] {
    engine->run_sync([] {});
    another->run_sync([] {});
    return test::open_descriptors() == with_engines;
  });
}

// As at the end of a process: the one that streams come from first.
TEST_F(MovingStream, OnTheWayWhenItsFirstEngineStops) {
  Recorder second(*another);
  {
    Recorder first(*engine);
    first.adopt(pair.ours);
    engine->run_sync([&] { move(first, second, *another); });
  }
  engine.reset();
  test::write_all(pair.theirs, "there");
  EXPECT_EQ(second.wait_octets(5).octets, "there");
}

}  // namespace
}  // namespace uiw::transport
