// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/blocked_thread.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "core/raw_sys.h"

namespace uiw::check {
namespace {

TEST(SystemCallLine, HasNumberArgumentsAndStackPointer) {
  const auto call = parse_system_call("0 0x5 0x7f00 0x8 0x0 0x1 0xffffffff 0x7ffd0 0x7f92\n");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->number, 0);
  EXPECT_EQ(call->arguments, (std::array<uint64_t, 6>{5, 0x7f00, 8, 0, 1, 0xffffffff}));
  EXPECT_EQ(call->stack_pointer, 0x7ffd0u);
}

TEST(SystemCallLine, OfAThreadThatRunsOrIsElsewhereIsNone) {
  EXPECT_FALSE(parse_system_call("running\n"));
  EXPECT_FALSE(parse_system_call("-1 0x7ffd0 0x7f92\n"));
  EXPECT_FALSE(parse_system_call(""));
  EXPECT_FALSE(parse_system_call("0 0x5 0x7f00\n"));
}

// A thread that runs `body`, which ends once the pipe has something.
class BlockedThread : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(ends_), 0);
    ASSERT_EQ(pipe(others_), 0);
  }
  void TearDown() override {
    if (thread_.joinable()) {
      ASSERT_EQ(write(ends_[1], "x", 1), 1);
      thread_.join();
    }
    for (const int fd : {ends_[0], ends_[1], others_[0], others_[1]}) close(fd);
  }
  void start(std::function<void()> body) {
    thread_ = std::thread([this, body] {
      tid_ = core::sys::gettid();
      body();
    });
  }
  // How it waits, once it does by that call.
  Wait wait_by(std::initializer_list<long> numbers) {
    for (int i = 0; i < 10000; ++i) {
      if (const auto call = blocked_in(tid_))
        for (const long number : numbers)
          if (call->number == number) return waits_for(*call, ends_[0]);
      usleep(1000);
    }
    ADD_FAILURE() << "it is not blocked there";
    return Wait::kOther;
  }

  int ends_[2], others_[2];
  std::atomic<int> tid_{0};
  std::thread thread_;
};

TEST_F(BlockedThread, ReadWaitsSolely) {
  start([this] {
    char byte;
    EXPECT_EQ(read(ends_[0], &byte, 1), 1);
  });
  EXPECT_EQ(wait_by({SYS_read}), Wait::kSolely);
  EXPECT_EQ(waits_for(*blocked_in(tid_), others_[0]), Wait::kOther);
}

#ifdef SYS_poll
constexpr std::initializer_list<long> kPolls = {SYS_poll, SYS_ppoll};
#else
constexpr std::initializer_list<long> kPolls = {SYS_ppoll};
#endif
#ifdef SYS_epoll_wait
constexpr std::initializer_list<long> kEpolls = {SYS_epoll_wait, SYS_epoll_pwait};
#else
constexpr std::initializer_list<long> kEpolls = {SYS_epoll_pwait};
#endif

TEST_F(BlockedThread, PollWaitsSolely) {
  start([this] {
    pollfd one{ends_[0], POLLIN, 0};
    EXPECT_EQ(poll(&one, 1, -1), 1);
  });
  EXPECT_EQ(wait_by(kPolls), Wait::kSolely);
}

TEST_F(BlockedThread, PollWaitsAmongOthers) {
  start([this] {
    pollfd both[] = {{others_[0], POLLIN, 0}, {ends_[0], POLLIN, 0}};
    EXPECT_EQ(poll(both, 2, -1), 1);
  });
  EXPECT_EQ(wait_by(kPolls), Wait::kAmong);
}

TEST_F(BlockedThread, PollWithATimeOutIsNoWait) {
  start([this] {
    pollfd one{ends_[0], POLLIN, 0};
    EXPECT_EQ(poll(&one, 1, 1'000'000), 1);
  });
  EXPECT_EQ(wait_by(kPolls), Wait::kOther);
}

TEST_F(BlockedThread, EpollWaitsSolelyOrAmongOthers) {
  const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  ASSERT_EQ(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ends_[0], &event), 0);
  start([=] {
    epoll_event ready;
    EXPECT_EQ(epoll_wait(epoll_fd, &ready, 1, -1), 1);
  });
  EXPECT_EQ(wait_by(kEpolls), Wait::kSolely);
  ASSERT_EQ(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, others_[0], &event), 0);
  EXPECT_EQ(wait_by(kEpolls), Wait::kAmong);
  ASSERT_EQ(write(ends_[1], "x", 1), 1);
  thread_.join();
  close(epoll_fd);
}

TEST(Futex, IsLookedForInARangeAndWithoutATimeOut) {
  SystemCall call;
  call.number = SYS_futex;
  call.arguments = {0x1010, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME};
  EXPECT_TRUE(waits_by_futex_in(call, 0x1000, 0x20));
  EXPECT_FALSE(waits_by_futex_in(call, 0x1000, 0x10));
  EXPECT_FALSE(waits_by_futex_in(call, 0x1014, 0x10));
  call.arguments[3] = 0x5000;
  EXPECT_FALSE(waits_by_futex_in(call, 0x1000, 0x20));
  call.arguments[3] = 0;
  call.arguments[1] = FUTEX_WAKE;
  EXPECT_FALSE(waits_by_futex_in(call, 0x1000, 0x20));
  call.number = SYS_read;
  EXPECT_FALSE(waits_by_futex_in(call, 0x1000, 0x20));
}

TEST(OwnMemory, ThatIsGoneIsNotRead) {
  void* const page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  *static_cast<int*>(page) = 7;
  int copy = 0;
  EXPECT_TRUE(read_own_memory(reinterpret_cast<uintptr_t>(page), &copy, sizeof copy));
  EXPECT_EQ(copy, 7);
  munmap(page, 4096);
  EXPECT_FALSE(read_own_memory(reinterpret_cast<uintptr_t>(page), &copy, sizeof copy));
}

}  // namespace
}  // namespace uiw::check
