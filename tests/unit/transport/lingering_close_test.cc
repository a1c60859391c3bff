// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "transport/lingering_close.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "unit/transport/support.h"

namespace uiw::transport {
namespace {

class LingeringCloseTest : public test::ConnectedPair {
 protected:
  // With `size` bytes that the socket had no room for; how many it had room for.
  size_t close_with_rest(size_t size, core::Nanoseconds at_most) {
    size_t before = 0;
    engine->run_sync([&] {
      StreamPtr stream = TcpStream::adopt(*engine, pair.ours);
      const std::string filler(1 << 16, 'f');
      const iovec piece{const_cast<char*>(filler.data()), filler.size()};
      for (long taken; size > 0 && (taken = stream->send(&piece, 1)) > 0;)
        before += static_cast<size_t>(taken);
      Unsent rest{std::make_unique<uint8_t[]>(size), 0, size};
      std::memset(rest.bytes.get(), 'r', size);
      lingering_close(*engine, std::move(stream), at_most, engine::Standing::kPeer,
                      std::move(rest));
    });
    return before;
  }
};

TEST_F(LingeringCloseTest, DropsInputUntilThePeerClosesToo) {
  close_with_rest(0, 60 * core::kSecond);
  char octet;
  EXPECT_EQ(recv(pair.theirs, &octet, 1, 0), 0);  // FIN, no RST
  test::write_all(pair.theirs, std::string(1000, 'x'));
  shutdown(pair.theirs, SHUT_WR);
  EXPECT_EQ(recv(pair.theirs, &octet, 1, 0), 0);
}

TEST_F(LingeringCloseTest, TheRestIsSentAlsoToAPeerThatHasClosedItsSide) {
  shutdown(pair.theirs, SHUT_WR);
  const size_t before = close_with_rest(500, 60 * core::kSecond);
  EXPECT_EQ(test::read_exactly(pair.theirs, before), std::string(before, 'f'));
  EXPECT_EQ(test::read_exactly(pair.theirs, 500), std::string(500, 'r'));
  char octet;
  EXPECT_EQ(recv(pair.theirs, &octet, 1, 0), 0);
}

// A handler before has been told: nobody is told twice.
TEST_F(LingeringCloseTest, ClosesAtOnceWhenThePeerHadClosedBefore) {
  test::Recorder first(*engine);
  first.adopt(pair.ours);
  shutdown(pair.theirs, SHUT_WR);
  first.heard.wait([](const test::Heard& h) { return h.ends == 1; });
  engine->run_sync([&] {
    lingering_close(*engine, std::move(first.stream), 60 * core::kSecond, engine::Standing::kPeer);
    EXPECT_EQ(fcntl(pair.ours, F_GETFD), -1);
  });
  char octet;
  EXPECT_EQ(recv(pair.theirs, &octet, 1, 0), 0);  // FIN, no RST
}

TEST_F(LingeringCloseTest, AfterItsTimeARestIsNoOrderlyEnd) {
  close_with_rest(500, 20 * core::kMillisecond);
  pollfd reset{pair.theirs, 0, 0};
  EXPECT_EQ(poll(&reset, 1, -1), 1);
  std::string all(1 << 20, ' ');
  long got;
  while ((got = recv(pair.theirs, all.data(), all.size(), 0)) > 0) {
  }
  EXPECT_EQ(got, -1);
  EXPECT_EQ(errno, ECONNRESET);
}

}  // namespace
}  // namespace uiw::transport
