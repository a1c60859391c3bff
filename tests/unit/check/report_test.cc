// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Each test is a process of its own: a report is the process's.
#include "check/report.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

namespace uiw::check {
namespace {

struct Ended {
  int status;
  std::string said;
};

// Of a child that reports, and ends as a program does.
Ended report(std::string_view options, const std::function<void(Report&)>& what) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    core::CheckOptions parsed;
    if (!core::parse_check_options(options, parsed)) _exit(100);
    if (!Report::instance().configure(parsed)) _exit(101);
    what(Report::instance());
    std::exit(3);
  }
  close(ends[1]);
  Ended ended{};
  char part[4096];
  for (ssize_t size; (size = read(ends[0], part, sizeof part)) > 0;)
    ended.said.append(part, static_cast<size_t>(size));
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

Finding finding(Kind kind, uintptr_t address = 0x10, bool hint = false) {
  Finding made{.kind = kind,
               .object = "thing",
               .wr_id = {},
               .what = "is wrong",
               .places = {{"made", {}}},
               .hint = hint};
  made.places[0].stack = Stack({.frames = {address}, .count = 1});
  return made;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Reports, NothingFoundLeavesTheStatusAlone) {
  const Ended ended = report("on", [](Report&) {});
  EXPECT_EQ(ended.status, 3);
  EXPECT_EQ(ended.said, "");
}

TEST(Reports, AFindingDecidesTheStatus) {
  const Ended ended = report("on", [](Report& to) { to.add(finding(Kind::kLeak)); });
  EXPECT_EQ(ended.status, 66);
  EXPECT_EQ(count(ended.said, "uiwarp check: leak: "), 1u) << ended.said;
  EXPECT_EQ(count(ended.said, "uiwarp check: 1 finding\n"), 1u) << ended.said;
  EXPECT_EQ(report("exit=7", [](Report& to) { to.add(finding(Kind::kLeak)); }).status, 7);
  EXPECT_EQ(report("exit=0", [](Report& to) { to.add(finding(Kind::kLeak)); }).status, 3);
}

TEST(Reports, WhatTheProgramPrintedIsFlushed) {
  const std::string path = testing::TempDir() + "uiwarp-report-" + std::to_string(getpid());
  report("on", [&](Report& to) {
    ASSERT_NE(std::freopen(path.c_str(), "w", stdout), nullptr);
    std::printf("last words");
    to.add(finding(Kind::kLeak));
  });
  EXPECT_EQ(content(path), "last words");
  unlink(path.c_str());
}

TEST(Reports, HintsAreShownWhenTheyAreWanted) {
  const auto hint = [](Report& to) { to.add(finding(Kind::kLeak, 0x10, true)); };
  EXPECT_EQ(report("on", hint).status, 3);
  const Ended shown = report("hints=1", hint);
  EXPECT_EQ(shown.status, 66);
  EXPECT_EQ(count(shown.said, "0 findings, 1 hint\n"), 1u) << shown.said;
}

TEST(Reports, TheSameIsCountedAndShownOnce) {
  const Ended ended = report("on", [](Report& to) {
    for (int i = 0; i < 5; ++i) to.add(finding(Kind::kLeak));
    to.add(finding(Kind::kLeak, 0x20));
    to.add(finding(Kind::kWrongState));
  });
  EXPECT_EQ(count(ended.said, "thing: is wrong"), 3u) << ended.said;
  EXPECT_EQ(count(ended.said, "3 findings, 4 repeated\n"), 1u) << ended.said;
}

TEST(Reports, NoMoreThanTheMostAreShown) {
  const Ended ended = report("max=2", [](Report& to) {
    for (uintptr_t i = 0; i < 5; ++i) to.add(finding(Kind::kLeak, 0x10 + i));
    to.add(finding(Kind::kLeak, 0x14));
  });
  EXPECT_EQ(count(ended.said, "thing: is wrong"), 2u) << ended.said;
  EXPECT_EQ(count(ended.said, "5 findings, 3 of them not shown (max=), 1 repeated"), 1u)
      << ended.said;
}

TEST(Reports, HaltEndsTheProcessAtTheFirst) {
  const Ended ended = report("halt=1,exit=9", [](Report& to) {
    to.add(finding(Kind::kLeak));
    _exit(100);
  });
  EXPECT_EQ(ended.status, 9);
  EXPECT_EQ(count(ended.said, "1 finding\n"), 1u) << ended.said;
}

TEST(Reports, FilesThatCannotBeUsedAreNamed) {
  const Ended ended = report("json=/nonexistent/x", [](Report&) {});
  EXPECT_EQ(ended.status, 101);
  EXPECT_EQ(ended.said, "uiwarp: UIWARP_CHECK: json=/nonexistent/x: No such file or directory\n");
  EXPECT_EQ(report("suppressions=/nonexistent/x", [](Report&) {}).status, 101);
}

// A shell may stand in a directory that was removed, and start a program there.
TEST(Reports, OfADirectoryThatIsGoneARelativeFileIsRefused) {
  std::string folder = testing::TempDir() + "uiwarp-gone-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(chdir(folder.c_str()), 0);
  ASSERT_EQ(rmdir(folder.c_str()), 0);
  const Ended ended = report("json=x", [](Report&) {});
  ASSERT_EQ(fchdir(before), 0);
  close(before);
  EXPECT_EQ(ended.status, 101);
  EXPECT_EQ(ended.said,
            "uiwarp: UIWARP_CHECK: json=x: the working directory has no path (No such file or "
            "directory): name the file by its whole path\n");
}

TEST(Reports, DoNotWaitForTheReaderOfAFifo) {
  const std::string path = testing::TempDir() + "uiwarp-fifo-" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const Ended unread = report("json=" + path, [](Report&) {});
  EXPECT_EQ(unread.status, 101);
  EXPECT_EQ(unread.said, "uiwarp: UIWARP_CHECK: json=" + path +
                             ": it is a FIFO that nobody reads: start its reader first\n");
  // Far more than there is room for.
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  const Ended full = report("max=2000,json=" + path, [](Report& to) {
    for (uintptr_t i = 1; i < 2000; ++i) to.add(finding(Kind::kLeak, i));
  });
  EXPECT_EQ(full.status, 66);
  char first = 0;
  EXPECT_EQ(read(reader, &first, 1), 1);
  EXPECT_EQ(first, '{');
  close(reader);
  unlink(path.c_str());
}

TEST(Reports, SuppressedFindingsAreCountedAndFailNothing) {
  const std::string path = testing::TempDir() + "uiwarp-suppressions-" + std::to_string(getpid());
  std::ofstream(path) << "leak:*\n";
  const Ended ended = report("suppressions=" + path, [](Report& to) {
    to.add(finding(Kind::kLeak));
    to.add(finding(Kind::kLeak));
  });
  EXPECT_EQ(ended.status, 3);
  EXPECT_EQ(count(ended.said, "0 findings, 2 suppressed\n"), 1u) << ended.said;
  std::ofstream(path) << "leaks:*\n";
  EXPECT_EQ(report("suppressions=" + path, [](Report&) {}).status, 101);
  unlink(path.c_str());
}

TEST(Reports, ProcessesAppendToOneJsonFile) {
  const std::string path = testing::TempDir() + "uiwarp-json-" + std::to_string(getpid());
  for (int i = 0; i < 2; ++i)
    report("json=" + path, [](Report& to) {
      to.add(finding(Kind::kLeak));
      if (fork() == 0) {
        to.add(finding(Kind::kWrongState));
        std::exit(0);
      }
      wait(nullptr);
    });
  const std::string all = content(path);
  EXPECT_EQ(count(all, "\"kind\":\"leak\""), 2u) << all;
  EXPECT_EQ(count(all, "\"kind\":\"wrong-state\""), 2u) << all;
  EXPECT_EQ(count(all, "\"findings\":1"), 4u) << all;
  unlink(path.c_str());
}

// libdwfl wants more than 64 KiB of stack; what sanitizers have instrumented wants some by itself.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kSmallStack = 512 * 1024;
#else
constexpr size_t kSmallStack = 32 * 1024;
#endif

TEST(Reports, AThreadWithASmallStackReportsToo) {
  const Ended ended = report("on", [](Report& to) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kSmallStack);
    pthread_t thread;
    const auto run = [](void* report) -> void* {
      Finding found = finding(Kind::kLeak);
      capture(found.places[0].stack);
      static_cast<Report*>(report)->add(found);
      return nullptr;
    };
    if (pthread_create(&thread, &attributes, run, &to) != 0) _exit(102);
    pthread_join(thread, nullptr);
  });
  EXPECT_EQ(ended.status, 66);
  EXPECT_EQ(count(ended.said, "thing: is wrong"), 1u) << ended.said;
}

TEST(Reports, AThreadThatIsCancelledReportsFirst) {
  const Ended ended = report("on", [](Report& to) {
    pthread_t thread;
    const auto run = [](void* report) -> void* {
      pthread_cancel(pthread_self());
      static_cast<Report*>(report)->add(finding(Kind::kLeak));
      static_cast<Report*>(report)->add(finding(Kind::kWrongState));
      return nullptr;
    };
    if (pthread_create(&thread, nullptr, run, &to) != 0) _exit(102);
    pthread_join(thread, nullptr);
  });
  EXPECT_EQ(count(ended.said, "thing: is wrong"), 2u) << ended.said;
}

TEST(Reports, WhatOnlyTheEndShowsIsReportedThen) {
  const Ended ended = report("on", [](Report& to) {
    to.before_end([] { Report::instance().add(finding(Kind::kLeak)); });
  });
  EXPECT_EQ(ended.status, 66);
  EXPECT_EQ(count(ended.said, "thing: is wrong"), 1u) << ended.said;
}

}  // namespace
}  // namespace uiw::check
