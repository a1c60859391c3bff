// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// write, close, dup and their kin on a virtual device and on everything else.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/close_range.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace {

int open_device() {
  const int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
  EXPECT_GE(fd, 0);
  return fd;
}

// A write to the device is a command, and four octets are none; to a pipe or file they are data.
bool is_device(int fd) {
  errno = 0;
  return write(fd, "none", 4) == -1 && errno == EINVAL;
}

TEST(WriteHook, CommandsGoToTheDevice) {
  const int fd = open_device();
  EXPECT_TRUE(is_device(fd));
  // Nothing of it arrived in the pipe that the descriptor really is.
  pollfd polled = {fd, POLLIN, 0};
  EXPECT_EQ(poll(&polled, 1, 0), 0);

  char one[] = "no", two[] = "ne";
  iovec parts[] = {{one, 2}, {two, 2}};
  EXPECT_EQ(writev(fd, parts, 2), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(poll(&polled, 1, 0), 0);
  close(fd);
}

TEST(WriteHook, WhatIsRefusedForItsSizeIsNotCarriedOut) {
  const int fd = open_device();
  rdma_ucm_create_id_resp response{};
  struct {
    rdma_ucm_cmd_hdr header;
    rdma_ucm_create_id body;
    char more[5000];
  } command{};
  command.header = {RDMA_USER_CM_CMD_CREATE_ID, sizeof command.body, sizeof response};
  command.body.response = reinterpret_cast<uintptr_t>(&response);
  command.body.ps = RDMA_PS_TCP;
  constexpr uint32_t kUntouched = 4711;
  response.id = kUntouched;
  iovec too_large[] = {{&command, sizeof command}};
  EXPECT_EQ(writev(fd, too_large, 1), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(response.id, kUntouched);
  iovec fits[] = {{&command, sizeof command.header + sizeof command.body}};
  EXPECT_EQ(writev(fd, fits, 1), static_cast<ssize_t>(fits[0].iov_len));
  EXPECT_NE(response.id, kUntouched);
  close(fd);
}

TEST(WriteHook, MemoryThatIsNotThereIsAnError) {
  const int fd = open_device();
  void* volatile nowhere = reinterpret_cast<void*>(16);  // or the compiler sees it
  void* const bad = nowhere;
  EXPECT_EQ(write(fd, bad, 32), -1);
  EXPECT_EQ(errno, EFAULT);
  iovec parts[] = {{bad, 32}};
  EXPECT_EQ(writev(fd, parts, 1), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(writev(fd, static_cast<iovec*>(bad), 1), -1);
  EXPECT_EQ(errno, EFAULT);
  const std::vector<iovec> many(2000);
  EXPECT_EQ(writev(fd, many.data(), static_cast<int>(many.size())), -1);
  EXPECT_EQ(errno, EINVAL);
  close(fd);
}

TEST(WriteHook, ForeignDescriptorsAreLeftAlone) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  errno = 4711;
  EXPECT_EQ(write(ends[1], "abc", 3), 3);
  char one[] = "de", two[] = "f";
  iovec parts[] = {{one, 2}, {two, 1}};
  EXPECT_EQ(writev(ends[1], parts, 2), 3);
  EXPECT_EQ(errno, 4711);
  char text[8] = "";
  EXPECT_EQ(read(ends[0], text, sizeof text), 6);
  EXPECT_STREQ(text, "abcdef");
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(write(ends[1], "abc", 3), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(write(-1, "abc", 3), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(IoctlHook, WhatIsNoCommandGoesToTheDescriptor) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "none", 4), 4);
  int waiting = 0;
  EXPECT_EQ(ioctl(ends[0], FIONREAD, &waiting), 0);
  EXPECT_EQ(waiting, 4);
  close(ends[0]);
  close(ends[1]);
  const int fd = open_device();
  EXPECT_EQ(ioctl(fd, FIONREAD, &waiting), 0);  // that of the pipe that it is
  EXPECT_EQ(waiting, 0);
  close(fd);
}

TEST(CloseHook, TheNumberIsFreeAfterwards) {
  const int fd = open_device();
  EXPECT_EQ(close(fd), 0);
  EXPECT_EQ(close(fd), -1);
  EXPECT_EQ(errno, EBADF);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int reused = dup2(ends[1], fd);
  EXPECT_FALSE(is_device(reused));
  close(ends[0]);
  if (ends[1] != fd) close(ends[1]);
  close(fd);
}

TEST(DupHooks, TheCopyIsTheDeviceToo) {
  const std::pair<const char*, std::function<int(int)>> calls[] = {
      {"dup", [](int fd) { return dup(fd); }},
      {"dup2", [](int fd) { return dup2(fd, 200); }},
      {"dup3", [](int fd) { return dup3(fd, 200, O_CLOEXEC); }},
      {"fcntl", [](int fd) { return fcntl(fd, F_DUPFD, 100); }},
      {"fcntl, close on exec", [](int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 100); }},
      {"fcntl64", [](int fd) { return fcntl64(fd, F_DUPFD, 100); }},
  };
  for (const auto& [name, call] : calls) {
    const int fd = open_device();
    const int copy = call(fd);
    ASSERT_GE(copy, 0) << name;
    EXPECT_NE(copy, fd) << name;
    EXPECT_TRUE(is_device(copy)) << name;
    close(fd);
    EXPECT_TRUE(is_device(copy)) << name;
    close(copy);
  }
}

TEST(DupHooks, WhatIsCopiedOverADeviceIsNotTheDevice) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  for (bool by_dup3 : {false, true}) {
    const int fd = open_device();
    ASSERT_EQ(by_dup3 ? dup3(ends[1], fd, 0) : dup2(ends[1], fd), fd);
    EXPECT_FALSE(is_device(fd));
    close(fd);
  }
  const int fd = open_device();
  EXPECT_EQ(dup2(fd, fd), fd);  // changes nothing
  EXPECT_TRUE(is_device(fd));
  EXPECT_EQ(dup2(1'000'000, fd), -1);  // neither does a failure
  EXPECT_EQ(errno, EBADF);
  EXPECT_TRUE(is_device(fd));
  close(fd);
  close(ends[0]);
  close(ends[1]);
}

TEST(FcntlHook, OtherCommandsPass) {
  const int fd = open_device();
  for (auto call : {+[](int f, int c, int a) { return fcntl(f, c, a); },
                    +[](int f, int c, int a) { return fcntl64(f, c, a); }}) {
    EXPECT_EQ(call(fd, F_SETFL, O_RDWR | O_NONBLOCK), 0);
    EXPECT_EQ(call(fd, F_GETFL, 0) & O_NONBLOCK, O_NONBLOCK);
    EXPECT_EQ(call(fd, F_SETFL, O_RDWR), 0);
    EXPECT_EQ(call(fd, F_GETFL, 0) & O_NONBLOCK, 0);
    EXPECT_EQ(call(fd, F_GETFD, 0), FD_CLOEXEC);
  }
  flock lock{};
  lock.l_type = F_WRLCK;
  FILE* file = tmpfile();
  EXPECT_EQ(fcntl(fileno(file), F_GETLK, &lock), 0);  // a pointer argument
  EXPECT_EQ(lock.l_type, F_UNLCK);
  fclose(file);
  EXPECT_TRUE(is_device(fd));
  close(fd);
}

// In a child, since everything from `first` on is closed.
template <class Close>
void expect_closed(const char* name, Close call) {
  const int device = open_device();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int own = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
    const int fd = own >= 0 ? own : device;  // a child of a process with RDMA may get none
    call(fd);
    if (fcntl(fd, F_GETFD) != -1) _exit(1);
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], fd) != fd) _exit(2);
    _exit(is_device(fd) ? 3 : 0);
  }
  int status;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << name;
  EXPECT_EQ(WEXITSTATUS(status), 0) << name;
  EXPECT_TRUE(is_device(device)) << name;
  close(device);
}

TEST(CloseRangeHooks, CloseDevicesToo) {
  expect_closed("close_range", [](int fd) { close_range(fd, ~0u, 0); });
  expect_closed("closefrom", [](int fd) { closefrom(fd); });
}

TEST(CloseRangeHooks, CloseOnExecClosesNothingYet) {
  const int fd = open_device();
  const auto number = static_cast<unsigned>(fd);
  EXPECT_EQ(close_range(number, number, CLOSE_RANGE_CLOEXEC), 0);
  EXPECT_TRUE(is_device(fd));
  EXPECT_EQ(close_range(5, 4, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  close(fd);
}

// A descriptor that was a device, was closed where no hook is, and is somebody's file now.
class StaleDescriptor : public testing::Test {
 protected:
  // `path`: of the device.
  void reuse(const char* path) {
    stale_ = open(path, O_RDWR | O_CLOEXEC);
    ASSERT_GE(stale_, 0) << path;
    syscall(SYS_close, stale_);
    file_ = open(testing::TempDir().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    ASSERT_GE(file_, 0);
    if (file_ != stale_) {
      ASSERT_EQ(syscall(SYS_dup3, file_, stale_, 0), stale_);
      syscall(SYS_close, file_);
    }
  }
  void TearDown() override {
    struct stat status;
    EXPECT_EQ(fstat(stale_, &status), 0);
    EXPECT_TRUE(S_ISREG(status.st_mode));
    EXPECT_EQ(close(stale_), 0);
    EXPECT_EQ(fcntl(stale_, F_GETFD), -1);
  }
  std::string content() const {
    std::string text(20000, 0);
    const ssize_t size = pread(stale_, text.data(), text.size(), 0);
    text.resize(size < 0 ? 0 : static_cast<size_t>(size));
    return text;
  }
  static std::string uverbs() {
    DIR* directory = opendir("/dev/infiniband");
    std::string path;
    while (const dirent* entry = readdir(directory)) {
      if (std::string(entry->d_name).starts_with("uverbs")) path = entry->d_name;
    }
    closedir(directory);
    return "/dev/infiniband/" + path;
  }
  static std::vector<std::string> devices() { return {"/dev/infiniband/rdma_cm", uverbs()}; }

  int stale_ = -1, file_ = -1;
};

// What librdmacm writes to make an id, with the place for the answer.
struct CreateId {
  rdma_ucm_cmd_hdr header;
  rdma_ucm_create_id command;
};
CreateId create_id(void* answer) {
  CreateId message{};
  message.header = {RDMA_USER_CM_CMD_CREATE_ID, sizeof message.command,
                    sizeof(rdma_ucm_create_id_resp)};
  message.command.response = reinterpret_cast<uintptr_t>(answer);
  message.command.ps = RDMA_PS_TCP;
  return message;
}

TEST_F(StaleDescriptor, ACommandIsWhatTheProgramWritesToItsFile) {
  for (const std::string& path : devices()) {
    for (bool by_writev : {false, true}) {
      reuse(path.c_str());
      rdma_ucm_create_id_resp answer{4711};
      CreateId message = create_id(&answer);
      iovec part = {&message, sizeof message};
      EXPECT_EQ(by_writev ? writev(stale_, &part, 1) : write(stale_, &message, sizeof message),
                static_cast<ssize_t>(sizeof message));
      EXPECT_EQ(answer.id, 4711u) << "it was carried out";
      EXPECT_EQ(content(), std::string(reinterpret_cast<char*>(&message), sizeof message));
      TearDown();
    }
  }
  reuse("/dev/infiniband/rdma_cm");
}

TEST_F(StaleDescriptor, AnyLengthIsWritten) {
  for (const std::string& path : devices()) {
    for (size_t size : {1, 4095, 4096, 4097, 10000}) {
      reuse(path.c_str());
      const std::string text(size, 'x');
      iovec parts[] = {{const_cast<char*>(text.data()), size / 2},
                       {const_cast<char*>(text.data()), size - size / 2}};
      EXPECT_EQ(writev(stale_, parts, 2), static_cast<ssize_t>(size));
      EXPECT_EQ(content(), text);
      TearDown();
    }
  }
  reuse("/dev/infiniband/rdma_cm");
}

TEST_F(StaleDescriptor, CopiesAreCopiesOfTheFile) {
  reuse("/dev/infiniband/rdma_cm");
  for (auto call : {+[](int fd) { return dup(fd); }, +[](int fd) { return dup2(fd, 200); },
                    +[](int fd) { return dup3(fd, 200, O_CLOEXEC); },
                    +[](int fd) { return fcntl(fd, F_DUPFD, 100); }}) {
    const int copy = call(stale_);
    ASSERT_GE(copy, 0);
    EXPECT_EQ(write(copy, "none", 4), 4);
    EXPECT_EQ(close(copy), 0);
    EXPECT_EQ(fcntl(copy, F_GETFD), -1);
  }
}

// What the stack has opened for itself: all descriptors that came with the devices but these.
std::vector<int> own_descriptors(const std::vector<int>& known) {
  std::vector<int> own;
  void* core = dlopen("libuiwarp.so.0", RTLD_NOW | RTLD_NOLOAD);
  auto* flags = reinterpret_cast<const uint8_t* (*)()>(dlsym(core, "uiwarp_vk_fd_flags"))();
  for (int fd = 0; fd < 1024; ++fd) {
    if (flags[fd] != 0 && std::find(known.begin(), known.end(), fd) == known.end())
      own.push_back(fd);
  }
  dlclose(core);
  return own;
}

// A daemon keeps its device and closes all that it does not know, by each of the ways there are,
// and its files get the numbers that become free. In a child, since other devices are closed too.
TEST(OwnDescriptors, AreNobodyElsesToCloseOrReplace) {
  using Way = void (*)(int first);
  const std::pair<const char*, Way> ways[] = {
      {"close",
       [](int first) {
         for (int fd = first; fd < 1024; ++fd) close(fd);
       }},
      {"close_range", [](int first) { close_range(static_cast<unsigned>(first), ~0u, 0); }},
      {"closefrom", [](int first) { closefrom(first); }},
      {"dup2",
       [](int first) {
         for (int fd = first; fd < 1024; ++fd) dup2(0, fd);
       }},
      {"dup3",
       [](int first) {
         for (int fd = first; fd < 1024; ++fd) dup3(0, fd, O_CLOEXEC);
       }},
  };
  for (const auto& [name, way] : ways) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const int device = 3, first = 4;
      for (int fd = device; fd < 1024; ++fd) close(fd);
      const int opened = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
      if (opened < 0) _exit(8);
      if (opened != device && (dup2(opened, device) != device || close(opened) != 0)) _exit(9);
      const std::vector<int> own = own_descriptors({device});
      if (own.empty()) _exit(1);
      std::vector<struct stat> before(own.size()), after(own.size());
      for (size_t i = 0; i < own.size(); ++i) fstat(own[i], &before[i]);
      way(first);
      for (size_t i = 0; i < own.size(); ++i) {
        if (fstat(own[i], &after[i]) != 0) _exit(2);
        if (before[i].st_ino != after[i].st_ino || before[i].st_dev != after[i].st_dev) _exit(3);
        errno = 0;
        if (close(own[i]) != -1 || errno != EBADF) _exit(4);
        if (dup2(0, own[i]) != -1 || errno != EBUSY) _exit(5);
      }
      if (!is_device(device)) _exit(6);
      for (int fd = first; fd < 1024; ++fd) {
        const bool kept = std::find(own.begin(), own.end(), fd) != own.end();
        if (!kept && std::string_view(name).starts_with("close") && fcntl(fd, F_GETFD) != -1)
          _exit(7);
      }
      _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << name;
    EXPECT_EQ(WEXITSTATUS(status), 0) << name;
  }
}

// None is left marked when it is closed: the program's next file may have that number.
TEST(OwnDescriptors, AreForgottenWhenTheStackClosesThem) {
  for (int i = 0; i < 3; ++i) {
    const int device = open_device();
    for (int fd : own_descriptors({device})) EXPECT_NE(fcntl(fd, F_GETFD), -1) << fd;
    close(device);
  }
  for (int fd : own_descriptors({})) EXPECT_NE(fcntl(fd, F_GETFD), -1) << fd;
}

}  // namespace
