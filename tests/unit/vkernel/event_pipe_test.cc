// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/event_pipe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <semaphore>
#include <set>
#include <string>
#include <thread>

#include "support/in_child.h"

namespace uiw::vkernel {
namespace {

class EventPipeTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe_.create(O_CLOEXEC, fd_), 0); }
  void TearDown() override { close(fd_); }

  bool is_readable() const {
    pollfd polled = {fd_, POLLIN, 0};
    return poll(&polled, 1, 0) == 1 && (polled.revents & POLLIN) != 0;
  }

  EventPipe pipe_;
  int fd_ = -1;
};

TEST_F(EventPipeTest, IsReadableFromTellingToTakingBack) {
  EXPECT_FALSE(is_readable());
  EXPECT_FALSE(pipe_.take_back());
  for (int i = 0; i < 3; ++i) {
    pipe_.tell();
    EXPECT_TRUE(is_readable());
    EXPECT_TRUE(pipe_.take_back());
    EXPECT_FALSE(is_readable());
  }
}

TEST_F(EventPipeTest, AllThatWasToldIsTakenBackAtOnce) {
  for (const int times : {2, 1024, 2048, 2049}) {
    for (int i = 0; i < times; ++i) pipe_.tell();
    EXPECT_TRUE(pipe_.take_back());
    EXPECT_FALSE(is_readable());
  }
}

// As of the kernel's channel: also behind what was not fetched, and however much that is.
TEST_F(EventPipeTest, EachTellingIsAnEdge) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {EPOLLIN | EPOLLET, {}};
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd_, &event), 0);
  const int more_than_it_holds = fcntl(fd_, F_GETPIPE_SZ) + 10;
  int edges = 0;
  for (int i = 0; i < more_than_it_holds; ++i) {
    pipe_.tell();
    edges += epoll_wait(epoll, &event, 1, 0);
    EXPECT_TRUE(is_readable());
  }
  EXPECT_EQ(edges, more_than_it_holds);
  EXPECT_TRUE(pipe_.take_back());
  EXPECT_FALSE(is_readable());
  close(epoll);
}

TEST_F(EventPipeTest, FlagsOfTheApplicationAreItsOwn) {
  EXPECT_EQ(fcntl(fd_, F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(fcntl(fd_, F_GETFL) & O_ACCMODE, O_RDWR);
  EXPECT_EQ(fcntl(fd_, F_GETFD), FD_CLOEXEC);
  int other;
  EventPipe nonblocking;
  ASSERT_EQ(nonblocking.create(O_NONBLOCK, other), 0);
  EXPECT_EQ(fcntl(other, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
  EXPECT_EQ(fcntl(other, F_GETFD), 0);
  close(other);
}

TEST_F(EventPipeTest, WaitReturnsWhenAnEventComes) {
  int result = -1;
  std::thread waiter([&] { result = pipe_.wait(); });
  pipe_.tell();
  waiter.join();
  EXPECT_EQ(result, 0);
}

// poll() wakes the taker while tell() has not returned yet. On one processor the taker often runs
// before tell() goes on: nothing may be left behind that lets wait() return with no event queued.
TEST_F(EventPipeTest, WhatIsTakenBackAfterPollIsGoneForWaitToo) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  constexpr int kRounds = 200;
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
  std::binary_semaphore go_on{0}, told{0};
  std::thread teller([&] {
    for (int i = 0; i < kRounds; ++i) {
      go_on.acquire();
      pipe_.tell();
      told.release();
    }
  });
  pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
  struct sigaction action {
  }, old;
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, &old);
  int left = 0;
  for (int i = 0; i < kRounds; ++i) {
    go_on.release();
    pollfd polled = {fd_, POLLIN, 0};
    while (poll(&polled, 1, -1) != 1) {
    }
    EXPECT_TRUE(pipe_.take_back());
    told.acquire();
    // Again and again, because one that comes before the wait interrupts nothing.
    const itimerval soon = {{0, 1000}, {0, 1000}}, never = {};
    setitimer(ITIMER_REAL, &soon, nullptr);
    left += pipe_.wait() != EINTR;
    setitimer(ITIMER_REAL, &never, nullptr);
    pipe_.tell();  // whatever was left
    pipe_.take_back();
  }
  teller.join();
  sigaction(SIGALRM, &old, nullptr);
  sched_setaffinity(0, sizeof before, &before);
  EXPECT_EQ(left, 0);
}

TEST_F(EventPipeTest, SurvivesThatTheApplicationClosesItsSide) {
  close(fd_);
  pipe_.tell();
  EXPECT_EQ(pipe_.wait(), 0);
  EXPECT_TRUE(pipe_.take_back());
  fd_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

std::set<int> open_descriptors() {
  std::set<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    if (fcntl(fd, F_GETFD) >= 0) found.insert(fd);
  }
  return found;
}

TEST(EventPipe, ADescriptorThatTookOurNumberIsLeftAlone) {
  const std::set<int> before = open_descriptors();
  int fd;
  auto pipe = std::make_unique<EventPipe>();
  ASSERT_EQ(pipe->create(O_CLOEXEC, fd), 0);
  int ours = -1;
  for (int open : open_descriptors()) {
    if (!before.contains(open) && open != fd) ours = open;
  }
  ASSERT_GE(ours, 0);
  // As a program does that closes everything it does not know, and then opens a file.
  int file[2];
  ASSERT_EQ(::pipe(file), 0);
  ASSERT_EQ(dup2(file[1], ours), ours);
  pipe->tell();
  pollfd polled = {file[0], POLLIN, 0};
  EXPECT_EQ(poll(&polled, 1, 0), 0);
  EXPECT_EQ(pipe->wait(), EBADF);
  EXPECT_TRUE(pipe->take_back());
  pipe.reset();
  EXPECT_GE(fcntl(ours, F_GETFD), 0);  // not closed either
  for (int open : {ours, file[0], file[1], fd}) close(open);
}

TEST(EventPipe, LeavesNoDescriptorBehind) {
  const std::set<int> before = open_descriptors();
  {
    EventPipe pipe;
    int fd;
    ASSERT_EQ(pipe.create(O_CLOEXEC, fd), 0);
    close(fd);
  }
  EXPECT_EQ(open_descriptors(), before);
}

#ifndef __SANITIZE_THREAD__  // which bears no threads in a fork's child
TEST_F(EventPipeTest, IsMadeWhenTheMainThreadHasEnded) {
  uiw::test::in_child_without_main_thread([] {
    EventPipe pipe;
    int fd;
    return pipe.create(O_CLOEXEC, fd);
  });
}
#endif

}  // namespace
}  // namespace uiw::vkernel
