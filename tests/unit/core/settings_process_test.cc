// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a process makes of its environment. The settings are read once per process, so each test
// forks a child that reads them afresh; this program itself must not have read them before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "core/assert.h"
#include "core/log.h"
#include "core/settings.h"

namespace uiw::core {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

using Environment = std::vector<std::pair<const char*, const char*>>;

struct Outcome {
  int status;          // as waitpid() gives it
  std::string output;  // standard error
};

// Runs `body` in a child with just these UIWARP_ variables; its result is the exit status.
Outcome in_child(const Environment& environment, const std::function<int()>& body) {
  int fds[2];
  EXPECT_EQ(pipe(fds), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(fds[1], STDERR_FILENO);
    close(fds[0]);
    close(fds[1]);
    for (const SettingInfo& info : setting_table()) unsetenv(info.name);
    for (const auto& [name, value] : environment) setenv(name, value, 1);
    _exit(body());
  }
  close(fds[1]);
  Outcome outcome{};
  char buffer[512];
  for (ssize_t n; (n = read(fds[0], buffer, sizeof buffer)) > 0;)
    outcome.output.append(buffer, static_cast<size_t>(n));
  close(fds[0]);
  EXPECT_EQ(waitpid(child, &outcome.status, 0), child);
  return outcome;
}

int lines_of(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST(SettingsOfAProcess, DefaultsWithoutAWord) {
  Outcome outcome = in_child({}, [] {
    const Settings& s = settings();
    return settings_error() == 0 && s.crc == CrcPolicy::kAuto && s.connect_timeout_ms == 10000 ? 0
                                                                                               : 1;
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "");
}

TEST(SettingsOfAProcess, TakesWhatTheEnvironmentSays) {
  Outcome outcome = in_child(
      {{"UIWARP_CRC", "off"}, {"UIWARP_RNR_WAIT_MS", "0"}, {"UIWARP_MPA_REVISION", "1"}}, [] {
        const Settings& s = settings();
        bool good = s.crc == CrcPolicy::kOff && s.rnr_wait_ms == 0 && s.mpa_revision == 1 &&
                    settings_error() == 0;
        return good ? 0 : 1;
      });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "");
}

TEST(SettingsOfAProcess, ReportsAWrongValueOnceAndRemembersIt) {
  Outcome outcome = in_child({{"UIWARP_CRC", "maybe"}, {"UIWARP_RNR_WAIT_MS", "7"}}, [] {
    bool good =
        settings_error() == EINVAL && settings().rnr_wait_ms == 7 && settings_error() == EINVAL;
    return good ? 0 : 1;
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(lines_of(outcome.output), 1) << outcome.output;
  EXPECT_EQ(outcome.output.find("uiwarp: UIWARP_CRC='maybe' is not valid; allowed: auto|on|off"),
            0u)
      << outcome.output;
}

TEST(SettingsOfAProcess, ReportsEveryWrongValue) {
  Outcome outcome =
      in_child({{"UIWARP_LOG", "error"}, {"UIWARP_MODE", ""}, {"UIWARP_CLOSE_TIMEOUT_MS", "-3"}},
               [] { return settings_error() == EINVAL ? 0 : 1; });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(lines_of(outcome.output), 2) << outcome.output;
  EXPECT_NE(outcome.output.find("UIWARP_MODE=''"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("UIWARP_CLOSE_TIMEOUT_MS='-3'"), std::string::npos)
      << outcome.output;
}

TEST(SettingsOfAProcess, WarnsOfAMistypedName) {
  const Environment environment = {
      {"UIWARP_CRCC", "on"}, {"UIWARP_RUNTIME_DIR", "/run/x"}, {"UIWARP_TEST_X", "1"}};
  Outcome outcome = in_child(environment, [] { return settings_error(); });
  EXPECT_EQ(outcome.status, 0) << "a warning is no error";
  EXPECT_EQ(lines_of(outcome.output), 1) << outcome.output;
  EXPECT_NE(outcome.output.find("UIWARP_CRCC"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("Perhaps UIWARP_CRC;"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("`uiwarp settings` lists them"), std::string::npos)
      << outcome.output;
}

TEST(SettingsOfAProcess, KeepsWarningsBackWhenOnlyErrorsAreWanted) {
  Outcome outcome =
      in_child({{"UIWARP_LOG", "error"}, {"UIWARP_CRCC", "on"}}, [] { return settings_error(); });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "");
}

TEST(SettingsOfAProcess, AreParsedOnceByManyThreads) {
  Outcome outcome = in_child({{"UIWARP_CRC", "maybe"}, {"UIWARP_RNR_WAIT_MS", "7"}}, [] {
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int i = 0; i < 8; i++) {
      threads.emplace_back([&] {
        if (settings().rnr_wait_ms == 7 && settings_error() == EINVAL) good++;
      });
    }
    for (auto& thread : threads) thread.join();
    return good == 8 ? 0 : 1;
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(lines_of(outcome.output), 1) << outcome.output;
}

// A line of a log, as a pattern.
std::string record(const std::string& level, const std::string& message) {
  return "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z uiwarp\\[[0-9]+\\] " +
         level + ": " + message + "\n";
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Log, ShowsUpToTheLevelThatIsSet) {
  auto body = [] {
    log(LogLevel::kError, "%s %d", "error", 1);
    log(LogLevel::kWarn, "warn");
    log(LogLevel::kInfo, "info");
    log(LogLevel::kDebug, "debug");
    return log_enabled(LogLevel::kError) && !log_enabled(LogLevel::kDebug) ? 0 : 1;
  };
  EXPECT_EQ(in_child({}, body).output, "uiwarp: error 1\nuiwarp: warn\n");
  EXPECT_EQ(in_child({{"UIWARP_LOG", "error"}}, body).output, "uiwarp: error 1\n");
  EXPECT_THAT(
      in_child({{"UIWARP_LOG", "info"}}, body).output,
      MatchesRegex(record("error", "error 1") + record("warn", "warn") + record("info", "info")));
  Outcome outcome =
      in_child({{"UIWARP_LOG", "debug"}}, [] { return log_enabled(LogLevel::kDebug) ? 0 : 1; });
  EXPECT_EQ(outcome.status, 0);
}

TEST(Log, CutsLongMessagesButNotTheNewline) {
  Outcome outcome = in_child({}, [] {
    log(LogLevel::kError, "%s", std::string(5000, 'x').c_str());
    log(LogLevel::kError, "next");
    return 0;
  });
  size_t newline = outcome.output.find('\n');
  ASSERT_NE(newline, std::string::npos);
  EXPECT_LE(newline, 1023u);
  EXPECT_GT(newline, 900u);
  EXPECT_EQ(outcome.output.substr(newline + 1), "uiwarp: next\n");
}

TEST(Log, TimeIsThatOfTheClockInUtc) {
  const Outcome outcome = in_child({{"UIWARP_LOG", "info"}, {"TZ", "America/New_York"}}, [] {
    log(LogLevel::kInfo, "now");
    return 0;
  });
  std::tm told{};
  ASSERT_NE(strptime(outcome.output.c_str(), "%Y-%m-%dT%H:%M:%S", &told), nullptr)
      << outcome.output;
  EXPECT_NEAR(static_cast<double>(timegm(&told)), static_cast<double>(time(nullptr)), 600);
}

TEST(Log, FileGetsTheLinesOfEachProcessUnderItsName) {
  const std::string folder = testing::TempDir() + "uiwarp-log-" + std::to_string(getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  const std::string name = folder + "/of-%p-%p.log";
  const Outcome outcome = in_child({{"UIWARP_LOG_FILE", name.c_str()}}, [&] {
    log(LogLevel::kWarn, "of the parent");
    const pid_t child = fork();
    if (child == 0) {
      log(LogLevel::kError, "of the child");
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    log(LogLevel::kWarn, "later");
    const std::string ours = std::to_string(getpid()), its = std::to_string(child);
    return testing::Value(
               content_of(folder + "/of-" + ours + "-" + ours + ".log"),
               MatchesRegex(record("warn", "of the parent") + record("warn", "later"))) &&
                   testing::Value(content_of(folder + "/of-" + its + "-" + its + ".log"),
                                  MatchesRegex(record("error", "of the child")))
               ? 0
               : 1;
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "");
  EXPECT_EQ(std::filesystem::remove_all(folder), 3u);
}

TEST(Log, GoesToStandardErrorWhenTheFileCannotBeWritten) {
  const Outcome outcome = in_child({{"UIWARP_LOG_FILE", "/nonexistent/%p"}}, [] {
    log(LogLevel::kWarn, "one");
    log(LogLevel::kWarn, "two");
    return 0;
  });
  EXPECT_THAT(outcome.output,
              MatchesRegex("uiwarp: UIWARP_LOG_FILE: /nonexistent/[0-9]+: No such file or "
                           "directory; messages go to standard error\n" +
                           record("warn", "one") + record("warn", "two")));
}

// Who may write in that folder would have us write to any file of ours, or read what we write.
TEST(Log, WritesNeitherThroughALinkNorToAnotherUsersFile) {
  const std::string folder = testing::TempDir() + "uiwarp-log-" + std::to_string(getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  const std::string ours = folder + "/ours", link = folder + "/link", theirs = folder + "/theirs";
  std::ofstream(ours) << "keep\n";
  std::filesystem::create_symlink(ours, link);
  std::ofstream(theirs) << "keep\n";
  const auto warned = [](const std::string& name) {
    return in_child({{"UIWARP_LOG_FILE", name.c_str()}},
                    [] {
                      log(LogLevel::kWarn, "one");
                      return 0;
                    })
        .output;
  };
  EXPECT_THAT(warned(link), HasSubstr("it is a symbolic link: name the file itself"));
  EXPECT_EQ(content_of(ours), "keep\n");
  if (chown(theirs.c_str(), 65534, 65534) == 0) {  // root may
    EXPECT_THAT(warned(theirs), HasSubstr("it is another user's"));
    EXPECT_EQ(content_of(theirs), "keep\n");
  }
  EXPECT_EQ(std::filesystem::remove_all(folder), 4u);
}

TEST(Log, LeavesErrnoAlone) {
  Outcome outcome = in_child({}, [] {
    close(STDERR_FILENO);
    errno = 12345;
    log(LogLevel::kError, "nobody sees this");
    return errno == 12345 ? 0 : 1;
  });
  EXPECT_EQ(outcome.status, 0);
}

TEST(Assert, SaysWhatDoesNotHoldAndEndsTheProcess) {
  Outcome outcome = in_child({}, [] {
    UIW_ASSERT(1 + 1 == 2);
    UIW_ASSERT(1 + 1 == 3);
    return 0;
  });
  EXPECT_TRUE(WIFSIGNALED(outcome.status));
  EXPECT_NE(outcome.output.find("'1 + 1 == 3' does not hold"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace uiw::core
