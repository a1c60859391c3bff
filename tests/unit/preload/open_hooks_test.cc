// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// open, openat and fopen in all their forms. The loopback device is always there.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <functional>
#include <string>

// What fortified headers call, declared by none.
extern "C" {
int __open_2(const char*, int);
int __open64_2(const char*, int);
int __openat_2(int, const char*, int);
int __openat64_2(int, const char*, int);
}

namespace {

constexpr char kFile[] = "/sys/class/infiniband/uiw_lo/node_type";
constexpr char kContent[] = "4: RNIC\n";
constexpr int kAnyDirectory = 12345;  // not open: an absolute path makes it irrelevant

struct Opener {
  const char* name;
  std::function<int(const char*, int)> open;
};

const Opener kOpeners[] = {
    {"open", [](const char* p, int f) { return open(p, f); }},
    {"open64", [](const char* p, int f) { return open64(p, f); }},
    {"openat", [](const char* p, int f) { return openat(kAnyDirectory, p, f); }},
    {"openat64", [](const char* p, int f) { return openat64(kAnyDirectory, p, f); }},
    {"__open_2", [](const char* p, int f) { return __open_2(p, f); }},
    {"__open64_2", [](const char* p, int f) { return __open64_2(p, f); }},
    {"__openat_2", [](const char* p, int f) { return __openat_2(kAnyDirectory, p, f); }},
    {"__openat64_2", [](const char* p, int f) { return __openat64_2(kAnyDirectory, p, f); }},
};

std::string contents(int fd) {
  char text[64] = "";
  EXPECT_GE(read(fd, text, sizeof text - 1), 0);
  return text;
}

// Leaves errno alone. The caller closes it.
int open_by(const Opener& opener, const char* path) {
  errno = 4711;
  const int fd = opener.open(path, O_RDONLY | O_CLOEXEC);
  EXPECT_GE(fd, 0) << opener.name;
  EXPECT_EQ(errno, 4711) << opener.name;
  return fd;
}

TEST(Open, ReadsFilesOfTheTree) {
  for (const Opener& opener : kOpeners) {
    const int fd = open_by(opener, kFile);
    EXPECT_EQ(contents(fd), kContent) << opener.name;
    close(fd);
  }
}

TEST(Open, ADeviceIsThereAlready) {
  for (const Opener& opener : kOpeners) {
    if (opener.name[0] == '_') continue;  // they create nothing
    EXPECT_EQ(opener.open("/dev/infiniband/rdma_cm", O_RDWR | O_CREAT | O_EXCL), -1) << opener.name;
    EXPECT_EQ(errno, EEXIST) << opener.name;
    const int fd = opener.open("/dev/infiniband/rdma_cm", O_RDWR | O_CREAT | O_CLOEXEC);
    EXPECT_GE(fd, 0) << opener.name;
    close(fd);
  }
}

constexpr char kCounter[] = "/sys/class/infiniband/uiw_lo/ports/1/counters/port_xmit_data";

bool is_number(const std::string& text) {
  return text.size() > 1 && text.back() == '\n' &&
         text.find_first_not_of("0123456789") == text.size() - 1;
}

TEST(Open, ReadsCounters) {
  for (const Opener& opener : kOpeners) {
    const int fd = open_by(opener, kCounter);
    const std::string text = contents(fd);
    EXPECT_TRUE(is_number(text)) << opener.name << ": " << text;
    EXPECT_EQ(write(fd, "0", 1), -1) << opener.name;
    close(fd);
    EXPECT_EQ(opener.open(kCounter, O_RDWR), -1) << opener.name;
    EXPECT_EQ(errno, EACCES) << opener.name;
  }
}

TEST(Fopen, ReadsCounters) {
  for (const auto call : {fopen, fopen64}) {
    FILE* const stream = call(kCounter, "re");
    ASSERT_NE(stream, nullptr);
    char line[64] = "";
    EXPECT_NE(fgets(line, sizeof line, stream), nullptr);
    EXPECT_TRUE(is_number(line)) << line;
    fclose(stream);
    EXPECT_EQ(call(kCounter, "r+"), nullptr);
    EXPECT_EQ(errno, EACCES);
  }
}

TEST(Open, OpensDevices) {
  for (const Opener& opener : kOpeners) {
    const int fd = opener.open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0) << opener.name;
    EXPECT_EQ(write(fd, "", 1), -1) << opener.name;  // not a command
    EXPECT_EQ(errno, EINVAL) << opener.name;
    close(fd);
  }
}

TEST(Open, WhatIsNotThereIsNotThere) {
  for (const Opener& opener : kOpeners) {
    for (const char* path : {"/sys/class/infiniband/mlx5_0", "/dev/infiniband/uverbs0",
                             "/sys/class/infiniband_mad/abi_version"}) {
      EXPECT_EQ(opener.open(path, O_RDONLY | O_CLOEXEC), -1) << opener.name << " " << path;
      EXPECT_EQ(errno, ENOENT) << opener.name << " " << path;
    }
    EXPECT_EQ(opener.open((std::string(kFile) + "/x").c_str(), O_RDONLY | O_CLOEXEC), -1);
    EXPECT_EQ(errno, ENOTDIR) << opener.name;
  }
}

TEST(Open, TheTreeCannotBeWrittenTo) {
  for (const Opener& opener : kOpeners) {
    for (int flags : {O_WRONLY, O_RDWR, O_RDONLY | O_TRUNC}) {
      EXPECT_EQ(opener.open(kFile, flags | O_CLOEXEC), -1) << opener.name;
      EXPECT_EQ(errno, EACCES) << opener.name;
    }
  }
  EXPECT_EQ(open("/sys/class/infiniband/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), -1);
  EXPECT_EQ(errno, EACCES);
  EXPECT_EQ(access("/sys/class/infiniband/new", F_OK), -1);
}

TEST(Open, OtherPathsAreLeftAlone) {
  for (const Opener& opener : kOpeners) {
    const int fd = opener.open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0) << opener.name;
    EXPECT_FALSE(contents(fd).empty()) << opener.name;
    close(fd);
    EXPECT_EQ(opener.open("/no/such/file", O_RDONLY), -1) << opener.name;
    EXPECT_EQ(errno, ENOENT) << opener.name;
    EXPECT_EQ(opener.open("", O_RDONLY), -1) << opener.name;
    EXPECT_EQ(errno, ENOENT) << opener.name;
  }
}

TEST(Open, ANullPathIsForTheKernelToRefuse) {
  // By the library's own symbols: headers and sanitizers know that null is wrong here.
  void* preload = dlopen(UIWARP_TEST_LIBRARY_DIR "/libuiwarp-preload.so", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(preload, nullptr) << dlerror();
  for (const char* name : {"open", "open64", "__open_2", "__open64_2"}) {
    auto* function = reinterpret_cast<int (*)(const char*, int, ...)>(dlsym(preload, name));
    ASSERT_NE(function, nullptr) << name;
    EXPECT_EQ(function(nullptr, O_RDONLY), -1) << name;
    EXPECT_EQ(errno, EFAULT) << name;
  }
  for (const char* name : {"access", "euidaccess", "eaccess"}) {
    auto* function = reinterpret_cast<int (*)(const char*, int)>(dlsym(preload, name));
    ASSERT_NE(function, nullptr) << name;
    EXPECT_EQ(function(nullptr, F_OK), -1) << name;
    EXPECT_EQ(errno, EFAULT) << name;
  }
  struct stat status;
  for (const char* name : {"stat", "stat64", "lstat", "lstat64"}) {
    auto* function = reinterpret_cast<int (*)(const char*, struct stat*)>(dlsym(preload, name));
    ASSERT_NE(function, nullptr) << name;
    EXPECT_EQ(function(nullptr, &status), -1) << name;
    EXPECT_EQ(errno, EFAULT) << name;
  }
  dlclose(preload);
}

TEST(Open, RelativePathsAreRelativeToTheDirectory) {
  const int directory = open("/sys/class/infiniband", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(directory, 0);
  const int fd = openat(directory, "uiw_lo/node_type", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(contents(fd), kContent);
  close(fd);
  close(directory);
}

TEST(Open, HandsOnTheMode) {
  const std::string path = testing::TempDir() + "/uiwarp-mode-" + std::to_string(getpid());
  for (auto create : {+[](const char*p, int f, mode_t m) { return open(p, f, m); },
                      +[](const char*p, int f, mode_t m) { return open64(p, f, m); },
                      +[](const char*p, int f, mode_t m) { return openat(AT_FDCWD, p, f, m); },
                      +[](const char*p, int f, mode_t m) { return openat64(AT_FDCWD, p, f, m); }}) {
    const int fd = create(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    ASSERT_GE(fd, 0);
    close(fd);
    struct stat status;
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0740, 0640u);
    unlink(path.c_str());
  }
}

// ---- stdio ----

struct StreamOpener {
  const char* name;
  std::function<FILE*(const char*, const char*)> open;
};

// freopen() needs a stream to start from.
FILE* some_stream() {
  return fopen("/dev/null", "re");
}

const StreamOpener kStreamOpeners[] = {
    {"fopen", [](const char* p, const char* m) { return fopen(p, m); }},
    {"fopen64", [](const char* p, const char* m) { return fopen64(p, m); }},
    {"freopen", [](const char* p, const char* m) { return freopen(p, m, some_stream()); }},
    {"freopen64", [](const char* p, const char* m) { return freopen64(p, m, some_stream()); }},
};

TEST(Stdio, ReadsFilesOfTheTree) {
  for (const StreamOpener& opener : kStreamOpeners) {
    FILE* stream = opener.open(kFile, "re");
    ASSERT_NE(stream, nullptr) << opener.name;
    char line[32] = "";
    EXPECT_NE(fgets(line, sizeof line, stream), nullptr) << opener.name;
    EXPECT_STREQ(line, kContent) << opener.name;
    fclose(stream);
  }
}

TEST(Stdio, TheTreeCannotBeWrittenTo) {
  for (const StreamOpener& opener : kStreamOpeners) {
    for (const char* mode : {"w", "a", "r+", "rb+", "w+"}) {
      EXPECT_EQ(opener.open(kFile, mode), nullptr) << opener.name << " " << mode;
      EXPECT_EQ(errno, EACCES) << opener.name << " " << mode;
    }
  }
}

TEST(Stdio, OtherPathsAreLeftAlone) {
  for (const StreamOpener& opener : kStreamOpeners) {
    FILE* stream = opener.open("/dev/null", "w");
    ASSERT_NE(stream, nullptr) << opener.name;
    fclose(stream);
    EXPECT_EQ(opener.open("/no/such/file", "r"), nullptr) << opener.name;
    EXPECT_EQ(errno, ENOENT) << opener.name;
  }
  FILE* with_charset = fopen(kFile, "re,ccs=ASCII");  // no 'a' for append
  ASSERT_NE(with_charset, nullptr);
  fclose(with_charset);
  // A null path changes the mode of the stream itself.
  FILE* stream = fopen("/dev/null", "r");
  stream = freopen(nullptr, "r", stream);
  ASSERT_NE(stream, nullptr);
  fclose(stream);
}

}  // namespace
