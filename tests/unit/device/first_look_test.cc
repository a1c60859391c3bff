// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A fork while another thread looks for devices for the first time.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "device/device.h"

namespace uiw::device {
namespace {

// A full pipe in the place of standard error: who writes there waits.
class FullPipe {
 public:
  FullPipe() : before_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC | O_NONBLOCK), 0);
    const char octets[4096] = {};
    while (write(ends_[1], octets, sizeof octets) > 0) continue;
    while (write(ends_[1], octets, 1) > 0) continue;
    fcntl(ends_[1], F_SETFL, 0);
    dup2(ends_[1], STDERR_FILENO);
  }
  // From now on nobody waits.
  void drain() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    close(ends_[1]);
    fcntl(ends_[0], F_SETFL, 0);
    char octets[4096];
    while (read(ends_[0], octets, sizeof octets) > 0) continue;
    close(ends_[0]);
  }

 private:
  int before_;
  int ends_[2];
};

// The number of the system call that a thread waits in; "" where the host does not tell.
std::string call_of(int thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/syscall");
  std::string call;
  file >> call;
  return call;
}

constexpr int kTooLate = 77;

bool finds_devices() {
  return !devices().empty();
}

int status_of(pid_t child) {
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

// Run by the next one, in a process that has not looked yet and that logs what it finds.
TEST(FirstLook, DISABLED_MayTakeLongWhileAnotherThreadForks) {
  FullPipe full;
  std::atomic<int> thread{0};
  std::atomic<bool> looked{false};
  std::thread looking([&] {
    thread = static_cast<int>(syscall(SYS_gettid));
    EXPECT_TRUE(finds_devices());
    looked = true;
  });
  while (thread == 0) sched_yield();
  // It waits a moment for the pipe. Who looks too late here is run again.
  while (call_of(thread) != std::to_string(SYS_ppoll))
    if (looked) _exit(kTooLate);

  pid_t child = fork();
  if (child == 0) {
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    _exit(finds_devices() ? 0 : 1);
  }
  EXPECT_EQ(status_of(child), 0);
  full.drain();
  looking.join();

  child = fork();
  if (child == 0) _exit(finds_devices() ? 0 : 1);
  EXPECT_EQ(status_of(child), 0);
}

TEST(FirstLook, MayTakeLongWhileAnotherThreadForks) {
  if (call_of(getpid()).empty()) GTEST_SKIP() << "the host does not say what a thread waits for";
  const auto run = [] {
    const pid_t child = fork();
    if (child != 0) return status_of(child);
    setenv("UIWARP_LOG", "debug", 1);
    execl("/proc/self/exe", "test_device", "--gtest_also_run_disabled_tests",
          "--gtest_filter=FirstLook.DISABLED_*", nullptr);
    _exit(2);
  };
  int status = run();
  for (int tries = 0; tries < 20 && WIFEXITED(status) && WEXITSTATUS(status) == kTooLate; ++tries)
    status = run();
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace uiw::device
