// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The engine's operations, on real sockets.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/engine.h"
#include "unit/engine/support.h"

namespace uiw::engine {
namespace {

using test::Watched;

struct Outcome {
  int completions = 0;
  int result = 0;
  std::string data;
};

struct WatchedOp final : Op {
  void complete(int result, core::Bytes data) override {
    if (then) then(result);
    // Last: who waits for it may free this.
    outcome.change([&](Outcome& o) {
      ++o.completions;
      o.result = result;
      o.data.append(reinterpret_cast<const char*>(data.data()), data.size());
    });
  }
  Outcome wait(int completions = 1) {
    return outcome.wait([&](const Outcome& o) { return o.completions >= completions; });
  }
  Watched<Outcome> outcome;
  std::function<void(int result)> then;
};

struct EngineIo : testing::Test {
  std::unique_ptr<Engine> engine = test::start_engine();
};

TEST_F(EngineIo, ReceiveGivesOctetsThenEndOfStream) {
  const test::SocketPair pair = test::connected_pair();
  const int ours = pair.ours, theirs = pair.theirs;
  WatchedOp first, second;
  engine->run_sync([&] {
    engine->receive(first, ours);
    EXPECT_TRUE(first.in_flight());
  });
  ASSERT_EQ(write(theirs, "abc", 3), 3);
  const Outcome got = first.wait();
  EXPECT_EQ(got.result, 3);
  EXPECT_EQ(got.data, "abc");
  close(theirs);
  engine->run_sync([&] { engine->receive(second, ours); });
  EXPECT_EQ(second.wait().result, 0);
  engine->run_sync([&] { EXPECT_FALSE(second.in_flight()); });
  close(ours);
}

TEST_F(EngineIo, ReceiveFindsWhatWasThereBefore) {
  const test::SocketPair pair = test::connected_pair();
  const int ours = pair.ours, theirs = pair.theirs;
  ASSERT_EQ(write(theirs, "early", 5), 5);
  WatchedOp op;
  engine->run_sync([&] { engine->receive(op, ours); });
  EXPECT_EQ(op.wait().data, "early");
  close(ours);
  close(theirs);
}

TEST_F(EngineIo, OneOperationReceivesAgainAndAgainFromInsideItsCompletion) {
  const test::SocketPair pair = test::connected_pair();
  const int ours = pair.ours, theirs = pair.theirs;
  WatchedOp op;
  const int fd = ours;
  op.then = [&, fd](int result) {
    if (result > 0) engine->receive(op, fd);
  };
  engine->run_sync([&] { engine->receive(op, fd); });
  std::string sent;
  for (int i = 0; i < 500; ++i) {
    const std::string piece = std::to_string(i) + ",";
    ASSERT_EQ(write(theirs, piece.data(), piece.size()), static_cast<ssize_t>(piece.size()));
    sent += piece;
  }
  close(theirs);
  const Outcome got =
      op.outcome.wait([](const Outcome& o) { return o.result == 0 && o.completions; });
  EXPECT_EQ(got.data, sent);
  close(ours);
}

TEST_F(EngineIo, ReceiveFromABadDescriptorFails) {
  WatchedOp op;
  engine->run_sync([&] { engine->receive(op, -1); });
  EXPECT_EQ(op.wait().result, -EBADF);
}

// More sockets become readable in one turn than there are buffers: all must be served, whole.
TEST_F(EngineIo, ManySocketsShareFewBuffers) {
  constexpr int kSockets = 100;
  std::vector<test::SocketPair> pairs;
  std::vector<std::unique_ptr<WatchedOp>> ops;
  for (int i = 0; i < kSockets; ++i) {
    pairs.push_back(test::connected_pair());
    ops.push_back(std::make_unique<WatchedOp>());
  }
  for (int round = 1; round <= 3; ++round) {
    engine->run_sync([&] {
      for (int i = 0; i < kSockets; ++i) engine->receive(*ops[i], pairs[i].ours);
      // The engine cannot look until all have something.
      for (int i = 0; i < kSockets; ++i) {
        const std::string text = "socket " + std::to_string(i);
        ASSERT_EQ(write(pairs[i].theirs, text.data(), text.size()),
                  static_cast<ssize_t>(text.size()));
      }
    });
    for (int i = 0; i < kSockets; ++i) {
      std::string expected;
      for (int r = 0; r < round; ++r) expected += "socket " + std::to_string(i);
      EXPECT_EQ(ops[i]->wait(round).data, expected);
    }
  }
  for (auto& pair : pairs) {
    close(pair.ours);
    close(pair.theirs);
  }
}

TEST_F(EngineIo, CancelEndsAReceiveThatWaits) {
  const test::SocketPair pair = test::connected_pair();
  const int ours = pair.ours, theirs = pair.theirs;
  WatchedOp op;
  engine->run_sync([&] { engine->receive(op, ours); });
  engine->run_sync([&] { engine->cancel(op); });
  EXPECT_EQ(op.wait().result, -ECANCELED);
  engine->run_sync([&] {
    EXPECT_FALSE(op.in_flight());
    engine->cancel(op);  // of nothing
  });
  close(ours);
  close(theirs);
}

TEST_F(EngineIo, CancelInTheSameTurnEndsItToo) {
  const test::SocketPair pair = test::connected_pair();
  const int ours = pair.ours, theirs = pair.theirs;
  WatchedOp op;
  engine->run_sync([&] {
    engine->receive(op, ours);
    engine->cancel(op);
    engine->cancel(op);
  });
  EXPECT_EQ(op.wait().result, -ECANCELED);
  EXPECT_EQ(op.outcome.get().completions, 1);
  close(ours);
  close(theirs);
}

// Cancels racing with octets and with a lack of buffers: each operation ends exactly once.
TEST_F(EngineIo, CancelRacingWithOctetsEndsEachOnce) {
  constexpr int kSockets = 40;
  std::vector<test::SocketPair> pairs;
  for (int i = 0; i < kSockets; ++i) pairs.push_back(test::connected_pair());
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<WatchedOp>> ops;
    for (int i = 0; i < kSockets; ++i) ops.push_back(std::make_unique<WatchedOp>());
    engine->run_sync([&] {
      for (int i = 0; i < kSockets; ++i) engine->receive(*ops[i], pairs[i].ours);
      engine->flush();
      for (auto& pair : pairs) ASSERT_EQ(write(pair.theirs, "x", 1), 1);
      for (auto& op : ops) engine->cancel(*op);
    });
    for (auto& op : ops) {
      const Outcome outcome = op->wait();
      EXPECT_TRUE(outcome.result == -ECANCELED || outcome.result > 0) << outcome.result;
    }
    engine->run_sync([&] {
      for (auto& op : ops) {
        EXPECT_FALSE(op->in_flight());
        EXPECT_EQ(op->outcome.get().completions, 1);
      }
    });
  }
  for (auto& pair : pairs) {
    close(pair.ours);
    close(pair.theirs);
  }
}

TEST_F(EngineIo, FlushAfterCancelMakesTheKernelLetGo) {
  test::SocketPair pair = test::connected_pair();
  WatchedOp op;
  engine->run_sync([&] { engine->receive(op, pair.ours); });
  engine->run_sync([&] {
    engine->cancel(op);
    engine->flush();
    close(pair.ours);
  });
  // Nobody holds the socket any more: the peer sees the end.
  char octet;
  EXPECT_EQ(read(pair.theirs, &octet, 1), 0);
  op.wait();
  close(pair.theirs);
}

TEST_F(EngineIo, PollWritableWaitsForRoom) {
  const test::SocketPair pair = test::connected_pair();
  const int ours = pair.ours, theirs = pair.theirs;
  std::vector<char> block(1 << 20);
  long filled = 0;
  for (long n; (n = send(ours, block.data(), block.size(), MSG_DONTWAIT)) > 0;) filled += n;
  WatchedOp op;
  engine->run_sync([&] { engine->poll_writable(op, ours); });
  engine->run_sync([] {});
  EXPECT_EQ(op.outcome.get().completions, 0);
  while (filled > 0) {
    const long n = read(theirs, block.data(), block.size());
    ASSERT_GT(n, 0);
    filled -= n;
  }
  EXPECT_GT(op.wait().result, 0);
  close(ours);
  close(theirs);
}

TEST_F(EngineIo, PollReadableWaitsForSomethingAndTakesNothing) {
  const test::SocketPair pair = test::connected_pair();
  WatchedOp op;
  engine->run_sync([&] { engine->poll_readable(op, pair.ours); });
  engine->run_sync([] {});
  EXPECT_EQ(op.outcome.get().completions, 0);
  ASSERT_EQ(write(pair.theirs, "xy", 2), 2);
  EXPECT_GT(op.wait().result, 0);
  char octets[4];
  EXPECT_EQ(recv(pair.ours, octets, sizeof octets, MSG_DONTWAIT), 2);
  // Again, and cancelled this time.
  engine->run_sync([&] { engine->poll_readable(op, pair.ours); });
  engine->run_sync([&] { engine->cancel(op); });
  EXPECT_EQ(op.wait(2).result, -ECANCELED);
  close(pair.ours);
  close(pair.theirs);
}

TEST_F(EngineIo, MoreOperationsAtOnceThanTheRingHasEntries) {
  constexpr int kOps = 400;
  const test::SocketPair pair = test::connected_pair();
  std::vector<std::unique_ptr<WatchedOp>> ops;
  std::vector<int> fds;
  for (int i = 0; i < kOps; ++i) {
    ops.push_back(std::make_unique<WatchedOp>());
    fds.push_back(dup(pair.ours));
    ASSERT_GE(fds.back(), 0);
  }
  engine->run_sync([&] {
    for (int i = 0; i < kOps; ++i) engine->poll_writable(*ops[i], fds[i]);
  });
  for (auto& op : ops) EXPECT_GT(op->wait().result, 0);
  for (int fd : fds) close(fd);
  close(pair.ours);
  close(pair.theirs);
}

TEST_F(EngineIo, OneDescriptorReceivesAndWaitsToWrite) {
  const test::SocketPair pair = test::connected_pair();
  std::vector<char> block(1 << 20);
  long filled = 0;
  for (long n; (n = send(pair.ours, block.data(), block.size(), MSG_DONTWAIT)) > 0;) filled += n;
  WatchedOp in, out;
  engine->run_sync([&] {
    engine->receive(in, pair.ours);
    engine->poll_writable(out, pair.ours);
  });
  // One becomes ready and leaves the other waiting, several times.
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(write(pair.theirs, "x", 1), 1);
    EXPECT_EQ(in.wait(i).result, 1);
    EXPECT_EQ(out.outcome.get().completions, 0);
    engine->run_sync([&] { engine->receive(in, pair.ours); });
  }
  while (filled > 0) {
    const long n = read(pair.theirs, block.data(), block.size());
    ASSERT_GT(n, 0);
    filled -= n;
  }
  EXPECT_GT(out.wait().result, 0);
  ASSERT_EQ(write(pair.theirs, "y", 1), 1);
  EXPECT_EQ(in.wait(4).result, 1);
  close(pair.ours);
  close(pair.theirs);
}

// The owner of a descriptor may close it as soon as nothing is in flight, and get its number again
// for something else in the same turn.
TEST_F(EngineIo, ADescriptorNumberMayBeUsedAgainAtOnce) {
  test::SocketPair first = test::connected_pair();
  test::SocketPair second = test::connected_pair();
  WatchedOp before, after;
  before.then = [&](int) {
    ASSERT_EQ(dup3(second.ours, first.ours, O_CLOEXEC), first.ours);
    engine->receive(after, first.ours);
  };
  engine->run_sync([&] { engine->receive(before, first.ours); });
  ASSERT_EQ(write(first.theirs, "one", 3), 3);
  EXPECT_EQ(before.wait().data, "one");
  ASSERT_EQ(write(second.theirs, "two", 3), 3);
  EXPECT_EQ(after.wait().data, "two");
  for (int fd : {first.ours, first.theirs, second.ours, second.theirs}) close(fd);
}

TEST_F(EngineIo, CountsWhatItReceives) {
  const test::SocketPair pair = test::connected_pair();
  const int ours = pair.ours, theirs = pair.theirs;
  for (int i = 0; i < 10; ++i) {
    WatchedOp op;
    engine->run_sync([&] { engine->receive(op, ours); });
    ASSERT_EQ(write(theirs, "12345", 5), 5);
    op.wait();
    engine->run_sync([] {});
  }
  engine->run_sync([] {});
  EXPECT_EQ(engine->counters().receives, 10u);
  EXPECT_EQ(engine->counters().received_octets, 50u);
  EXPECT_GT(engine->counters().wakes, 0u);
  close(ours);
  close(theirs);
}

TEST_F(EngineIo, StoppingWaitsForCancelledOperations) {
  const test::SocketPair pair = test::connected_pair();
  const int ours = pair.ours, theirs = pair.theirs;
  WatchedOp op;
  engine->run_sync([&] { engine->receive(op, ours); });
  engine->run_sync([&] { engine->cancel(op); });
  engine.reset();
  EXPECT_EQ(op.outcome.get().completions, 1);
  close(ours);
  close(theirs);
}

}  // namespace
}  // namespace uiw::engine
