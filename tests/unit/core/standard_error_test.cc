// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/standard_error.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "support/descriptor_limit.h"

namespace uiw::core {
namespace {

// Standard error is a pipe.
class StandardErrorTest : public testing::Test {
 protected:
  void SetUp() override {
    before_ = dup(STDERR_FILENO);
    int ends[2];
    ASSERT_EQ(0, pipe(ends));
    reader_ = ends[0];
    ASSERT_EQ(STDERR_FILENO, dup2(ends[1], STDERR_FILENO));
    close(ends[1]);
  }
  void TearDown() override {
    dup2(before_, STDERR_FILENO);
    close(before_);
    close_reader();
  }
  void close_reader() {
    if (reader_ >= 0) close(reader_);
    reader_ = -1;
  }
  void fill() {
    fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
    const std::string some(4096, 'x');
    while (write(STDERR_FILENO, some.data(), some.size()) > 0) {
    }
    fcntl(STDERR_FILENO, F_SETFL, 0);
  }
  std::string read_all() {
    fcntl(reader_, F_SETFL, O_NONBLOCK);
    std::string all;
    char some[4096];
    for (ssize_t got; (got = read(reader_, some, sizeof some)) > 0;)
      all.append(some, static_cast<size_t>(got));
    return all;
  }

  int reader_ = -1;

 private:
  int before_ = -1;
};

TEST_F(StandardErrorTest, AllOfATextIsThere) {
  std::string text(20000, 'a');
  text += "end\n";
  write_to_standard_error(text);
  EXPECT_EQ(text, read_all());
}

// The default of SIGPIPE would end the process.
TEST_F(StandardErrorTest, AReaderThatHasGoneIsNoSignal) {
  close_reader();
  write_to_standard_error("nobody\n");
  sigset_t pending;
  sigpending(&pending);
  EXPECT_FALSE(sigismember(&pending, SIGPIPE));
}

TEST_F(StandardErrorTest, ASignalOfTheProgramsOwnStays) {
  close_reader();
  sigset_t pipe, before, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  raise(SIGPIPE);
  write_to_standard_error("nobody\n");
  sigpending(&pending);
  EXPECT_TRUE(sigismember(&pending, SIGPIPE));
  constexpr timespec kNow{};
  EXPECT_EQ(SIGPIPE, sigtimedwait(&pipe, nullptr, &kNow));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// poll() refuses more descriptors than that.
TEST_F(StandardErrorTest, NoDescriptorIsLeft) {
  const test::DescriptorLimit none(0);
  write_to_standard_error("no descriptor\n");
  EXPECT_EQ("no descriptor\n", read_all());
}

TEST_F(StandardErrorTest, WhoDoesNotReadHoldsNobodyUp) {
  fill();
  for (int i = 0; i < 1000; ++i) write_to_standard_error("dropped\n");
  EXPECT_EQ(std::string::npos, read_all().find("dropped"));
  write_to_standard_error("again\n");
  EXPECT_EQ("again\n", read_all());
}

// Each ends a wait in poll() before its time.
TEST_F(StandardErrorTest, SignalsDoNotMakeItWaitForEver) {
  fill();
  struct sigaction act {
  }, before;
  act.sa_handler = [](int) {};
  sigaction(SIGALRM, &act, &before);
  const itimerval often{{0, 20'000}, {0, 20'000}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  write_to_standard_error("dropped\n");
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_EQ(std::string::npos, read_all().find("dropped"));
  write_to_standard_error("again\n");
}

TEST_F(StandardErrorTest, WhoReadsSlowlyGetsAll) {
  fill();
  std::string got;
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    got = read_all();
  });
  write_to_standard_error("late\n");
  reader.join();
  got += read_all();
  EXPECT_TRUE(got.ends_with("late\n"));
}

}  // namespace
}  // namespace uiw::core
