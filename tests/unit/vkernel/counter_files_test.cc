// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/counter_files.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "temporary_directory.h"

namespace uiw::vkernel {
namespace {

// A process that has published that it has sent so many bytes, and does nothing any more.
class Publisher {
 public:
  Publisher(const std::string& path, uint64_t bytes) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const int fd = create_counter_file(path);
      counters::Row row;
      row.device = "uiw_lo";
      row.bytes_sent = bytes;
      const std::vector<uint8_t> file = counters::file_of(std::span(&row, 1));
      const bool good =
          fd >= 0 && pwrite(fd, file.data(), file.size(), 0) == static_cast<ssize_t>(file.size());
      if (write(ready[1], good ? "y" : "n", 1) == 1)
        for (;;) pause();
      _exit(1);
    }
    char said = 0;
    EXPECT_EQ(read(ready[0], &said, 1), 1);
    EXPECT_EQ(said, 'y');
    close(ready[0]);
    close(ready[1]);
  }
  ~Publisher() { end(); }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

uint64_t sent(const std::string& path, int own = -1) {
  uint64_t bytes = 0;
  for (const counters::Row& row : counted_by_device(path, own))
    if (row.device == "uiw_lo") bytes += row.bytes_sent;
  return bytes;
}

size_t files(const std::string& path) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    count += entry.path().filename() != "sums";
  return count;
}

class CounterFiles : public testing::Test {
 protected:
  TemporaryDirectory base;
  const std::string path = base.path() + "/counters";
};

TEST_F(CounterFiles, NobodyElseMayReadThem) {
  const Publisher publisher(path, 1);
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    struct stat status {};
    ASSERT_EQ(stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600u) << entry.path();
  }
}

TEST_F(CounterFiles, AllProcessesAreCounted) {
  const Publisher one(path, 100), other(path, 20);
  EXPECT_EQ(sent(path), 120u);
}

TEST_F(CounterFiles, WhatAKilledProcessHasCountedStays) {
  Publisher killed(path, 100);
  const Publisher other(path, 20);
  killed.end();
  EXPECT_EQ(sent(path), 120u);
  const Publisher next(path, 3);  // adds it to the sums
  EXPECT_EQ(sent(path), 123u);
  EXPECT_EQ(files(path), 2u);
}

TEST_F(CounterFiles, AHundredThatEndLeaveNoFiles) {
  for (int i = 0; i < 100; ++i) Publisher(path, 1).end();
  const Publisher last(path, 1);
  EXPECT_EQ(files(path), 1u);
  EXPECT_EQ(sent(path), 101u);
}

TEST_F(CounterFiles, ReadingDoesNotLetGoOfOnesOwn) {
  const int own = create_counter_file(path);
  ASSERT_GE(own, 0);
  EXPECT_EQ(sent(path, own), 0u);
  const Publisher other(path, 5);  // would take it for an ended process's, and remove it
  EXPECT_EQ(files(path), 2u);
  close(own);
}

TEST_F(CounterFiles, AThreadThatIsCancelledMeanwhileReadsToTheEnd) {
  const Publisher publisher(path, 5), other(path, 6);
  struct Reader {
    const std::string& path;
    std::atomic<bool> cancelled = false;
    uint64_t sent = 0;
  } reader{path};
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* argument) -> void* {
                  auto& self = *static_cast<Reader*>(argument);
                  while (!self.cancelled) sched_yield();
                  self.sent = sent(self.path);
                  pthread_testcancel();
                  return nullptr;
                },
                &reader),
            0);
  pthread_cancel(thread);
  reader.cancelled = true;
  void* result = nullptr;
  pthread_join(thread, &result);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_EQ(reader.sent, 11u);
}

// Children that are made while a thread reads, and live on, keep nobody from adding.
TEST_F(CounterFiles, AForksChildDoesNotHoldTheSums) {
  Publisher(path, 5).end();
  const Publisher publisher(path, 6);
  std::atomic<bool> over = false;
  std::thread reader([&] {
    while (!over) sent(path);
  });
  std::vector<pid_t> children;
  for (int i = 0; i < 30; ++i) {
    children.push_back(fork());
    if (children.back() == 0)
      for (;;) pause();
    usleep(500);
  }
  over = true;
  reader.join();
  for (int i = 0; i < 3; ++i) Publisher(path, 1).end();
  const Publisher last(path, 1);
  EXPECT_EQ(files(path), 2u);
  EXPECT_EQ(sent(path), 15u);
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

// To close a file ends the locks of all threads on it. The threads are in a process of their own: a
// Publisher that was forked beside them could not allocate under AddressSanitizer.
TEST_F(CounterFiles, ThreadsThatReadDoNotLetGoOfEachOthersSums) {
  Publisher(path, 1000).end();
  int hold[2];
  ASSERT_EQ(pipe(hold), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(hold[1]);
    std::atomic<bool> over = false, right = true;
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i)
      readers.emplace_back([&] {
        uint64_t before = 1000;
        while (!over) {
          const uint64_t now = sent(path);
          if (now < before) right = false;
          before = now;
        }
      });
    char octet;
    over = read(hold[0], &octet, 1) == 0;
    for (std::thread& reader : readers) reader.join();
    _exit(right ? 0 : 1);
  }
  close(hold[0]);
  for (int i = 0; i < 30; ++i) Publisher(path, 1).end();
  close(hold[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(sent(path), 1030u);
}

TEST_F(CounterFiles, WhatIsNoFileOfOursIsLeftOut) {
  const Publisher publisher(path, 5);
  ASSERT_EQ(mkfifo((path + "/0123456789abcdef").c_str(), 0600), 0);
  ASSERT_EQ(symlink("/dev/zero", (path + "/0123456789abcde0").c_str()), 0);
  EXPECT_EQ(sent(path), 5u);
}

TEST_F(CounterFiles, ALimitOfFilesDoesNotEndTheProgram) {
  Publisher(path, 5).end();  // there is something to add
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
    create_counter_file(path);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(sent(path), 5u);
}

TEST_F(CounterFiles, AFolderThatOthersMayWriteToIsNotUsed) {
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  ASSERT_EQ(chmod(path.c_str(), 0777), 0);
  EXPECT_EQ(create_counter_file(path), -EPERM);
}

}  // namespace
}  // namespace uiw::vkernel
