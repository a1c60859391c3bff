// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A child that fork() made has all sockets, too, and lives on: the peer hears the end all the same.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include "unit/transport/support.h"

namespace uiw::transport {
namespace {

using test::Recorder;

class CloseInFork : public test::ConnectedPair {
 protected:
  ~CloseInFork() override {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  void fork_child() {
    child_ = fork();
    if (child_ == 0)
      for (;;) pause();
    ASSERT_GT(child_, 0);
    const timeval at_most{.tv_sec = 20, .tv_usec = 0};
    setsockopt(pair.theirs, SOL_SOCKET, SO_RCVTIMEO, &at_most, sizeof at_most);
  }
  // 0: the peer has got FIN; else errno.
  int end_at_peer() {
    char octet;
    return recv(pair.theirs, &octet, 1, 0) < 0 ? errno : 0;
  }

 private:
  pid_t child_ = -1;
};

TEST_F(CloseInFork, TheStreamEndsByFin) {
  Recorder ours(*engine);
  ours.adopt(pair.ours);
  fork_child();
  engine->run_sync([&] { ours.stream.reset(); });
  EXPECT_EQ(end_at_peer(), 0);
}

TEST_F(CloseInFork, AnAbortiveOneByReset) {
  Recorder ours(*engine);
  ours.adopt(pair.ours);
  fork_child();
  engine->run_sync([&] {
    ours.stream->set_abortive();
    ours.stream.reset();
  });
  EXPECT_EQ(end_at_peer(), ECONNRESET);
}

TEST_F(CloseInFork, OneWithUnreadInputByReset) {
  StreamPtr stream = TcpStream::adopt(*engine, pair.ours);
  fork_child();
  test::write_all(pair.theirs, "nobody reads this");
  engine->run_sync([&] {
    test::poll_until([&] { return stream->has_unread(); });
    stream.reset();
  });
  EXPECT_EQ(end_at_peer(), ECONNRESET);
}

}  // namespace
}  // namespace uiw::transport
