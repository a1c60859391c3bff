// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Programs of the system, started with the library in their environment.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

namespace fs = std::filesystem;

constexpr char kPreload[] = UIWARP_TEST_LIBRARY_DIR "/libuiwarp-preload.so";

struct Outcome {
  int status;
  std::string output;  // standard output and error
};

// Runs a shell command; `preload` is its LD_PRELOAD.
Outcome run(const std::string& command, const std::string& preload = kPreload) {
  const std::string line =
      "LD_PRELOAD='" UIWARP_TEST_SANITIZER_RUNTIME + preload + "' sh -c '" + command + "' 2>&1";
  FILE* output = popen(line.c_str(), "r");
  Outcome outcome{-1, {}};
  char buffer[512];
  while (fgets(buffer, sizeof buffer, output) != nullptr) outcome.output += buffer;
  const int status = pclose(output);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

bool is_there(const char* program) {
  return run(std::string("command -v ") + program).status == 0;
}

class Programs : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "libtsan.so alone, preloaded into a shell, crashes it";
#endif
  }
};

TEST_F(Programs, CoreutilsSeeTheTree) {
  EXPECT_EQ(run("cat /sys/class/infiniband/uiw_lo/node_type").output, "4: RNIC\n");
  Outcome listed = run("ls -l /sys/class/infiniband");
  EXPECT_EQ(listed.status, 0) << listed.output;
  EXPECT_NE(listed.output.find(" uiw_lo\n"), std::string::npos) << listed.output;
  EXPECT_EQ(run("ls /sys/class/infiniband/uiw_lo/device/net").output, "lo\n");
  EXPECT_EQ(run("test -c /dev/infiniband/rdma_cm && test -d /sys/class/infiniband/uiw_lo").status,
            0);
  EXPECT_EQ(run("readlink -f /sys/class/infiniband/uiw_lo/ports/..").output,
            "/sys/class/infiniband/uiw_lo\n");
}

// `cd` and what it leads to, as ibstatus has it.
TEST_F(Programs, ShellsGoThere) {
  for (const char* shell : {"dash", "bash"}) {
    if (!is_there(shell)) continue;
    const std::string begin = std::string(shell) + " -c \"cd /sys/class/infiniband && ";
    EXPECT_EQ(run(begin + "for name in uiw_l*; do cat \\$name/node_type; done\"").output,
              "4: RNIC\n")
        << shell;
    EXPECT_EQ(run(begin + "pwd; cd uiw_lo/ports; pwd; pwd -P; echo *; cd ../..; pwd\"").output,
              "/sys/class/infiniband\n/sys/class/infiniband/uiw_lo/ports\n"
              "/sys/class/infiniband/uiw_lo/ports\n1\n/sys/class/infiniband\n")
        << shell;
    EXPECT_NE(run(std::string(shell) + " -c \"cd /sys/class/infiniband/mlx5_0\"").status, 0)
        << shell;
  }
}

TEST_F(Programs, PythonSeesTheTree) {
  if (!is_there("/usr/bin/python3")) GTEST_SKIP() << "no python3";
  const Outcome outcome =
      run("/usr/bin/python3 -c \"import os, subprocess\n"
          "print(sorted(os.listdir(\\\"/sys/class/infiniband/uiw_lo/ports/1/gids\\\"))[0],\n"
          "      os.path.realpath(\\\"/sys/class/infiniband/uiw_lo\\\"),\n"
          "      subprocess.run([\\\"cat\\\", \\\"/sys/class/infiniband/uiw_lo/node_type\\\"],\n"
          "                     stdout=subprocess.PIPE, text=True).stdout.strip())\"");
  EXPECT_EQ(outcome.output, "0 /sys/class/infiniband/uiw_lo 4: RNIC\n");
}

TEST_F(Programs, NothingIsLoadedUntilAnRdmaPathIsNamed) {
  EXPECT_EQ(run("grep libuiwarp.so /proc/self/maps").output, "");
  EXPECT_NE(
      run("cat /sys/class/infiniband/uiw_lo/node_type /proc/self/maps").output.find("libuiwarp.so"),
      std::string::npos);
}

TEST_F(Programs, WithoutStandardStreams) {
  EXPECT_EQ(run("exec test -d /sys/class/infiniband/uiw_lo <&- >&- 2>&-").status, 0);
  EXPECT_EQ(run("exec test -d /sys/class/infiniband/mlx5_0 <&- >&- 2>&-").status, 1);
}

TEST_F(Programs, BesideLibrspreloadInBothOrders) {
  const char* found = nullptr;
  for (const char* path : {"/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so",
                           "/usr/lib/aarch64-linux-gnu/rsocket/librspreload.so",
                           "/usr/lib64/rsocket/librspreload.so"}) {
    if (fs::exists(path)) found = path;
  }
  if (found == nullptr) GTEST_SKIP() << "librspreload is not installed";
  for (const std::string& both :
       {std::string(kPreload) + ":" + found, std::string(found) + ":" + kPreload}) {
    const Outcome outcome = run("cat /sys/class/infiniband/uiw_lo/node_type", both);
    EXPECT_EQ(outcome.output, "4: RNIC\n") << both;
    EXPECT_EQ(outcome.status, 0) << both;
  }
}

TEST_F(Programs, WhoseLibrariesUseItBeforeItIsSetUp) {
  for (const std::string& both : {std::string(kPreload) + ":" UIWARP_TEST_EARLY,
                                  std::string(UIWARP_TEST_EARLY ":") + kPreload}) {
    EXPECT_EQ(run("echo $UIWARP_TEST_EARLY_RESULT", both).output, "read\n") << both;
  }
}

class Broken : public Programs {
 protected:
  void SetUp() override {
    Programs::SetUp();
    if (IsSkipped()) return;
    std::string pattern = testing::TempDir() + "/uiwarp-broken-XXXXXX";
    directory_ = mkdtemp(pattern.data());
    preload_ = directory_ + "/libuiwarp-preload.so";
    fs::copy_file(kPreload, preload_);
  }
  void TearDown() override {
    if (!directory_.empty()) fs::remove_all(directory_);
  }

  std::string directory_, preload_;
};

TEST_F(Broken, ALibraryThatIsMissingIsSaidOnceAndTheProgramGoesOn) {
  const Outcome outcome =
      run("cat /sys/class/infiniband/a /sys/class/infiniband/b; echo went on", preload_);
  const std::string message = "uiwarp: cannot load libuiwarp.so.0";
  const size_t first = outcome.output.find(message);
  EXPECT_NE(first, std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find(message, first + 1), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("went on\n"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("uiwarp doctor"), std::string::npos) << outcome.output;
}

TEST_F(Broken, AnotherLibraryOfThatNameIsRefused) {
  fs::copy_file(UIWARP_TEST_EARLY, directory_ + "/libuiwarp.so.0");
  const Outcome outcome = run("cat /sys/class/infiniband/a; echo went on", preload_);
  EXPECT_NE(outcome.output.find("not of the same version"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("went on\n"), std::string::npos) << outcome.output;
}

TEST_F(Programs, ARuntimeDirectoryThatCannotBeUsedIsNotTheEnd) {
  // The next ones in the row still do, and it is said.
  EXPECT_EQ(
      run("UIWARP_RUNTIME_DIR=/proc/none exec cat /sys/class/infiniband/uiw_lo/node_type").output,
      "uiwarp: UIWARP_RUNTIME_DIR is not used, another directory is. /proc/none: No such file or "
      "directory\n4: RNIC\n");
}

}  // namespace
