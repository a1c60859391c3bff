// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Files that are registered in the table of descriptors, and what a hooked program does with them.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "uiwarp/uiwarp-abi.h"
#include "vkernel/event_pipe.h"
#include "vkernel/fd_table.h"

namespace uiw::vkernel::test {

// What happened to a file; outlives it.
struct Fate {
  std::atomic<int> writes{0}, closed{0}, deleted{0};
};

class TestFile : public DeviceFile {
 public:
  TestFile(Fate& fate, Kind kind) : fate_(fate), kind_(kind) {}
  ~TestFile() override { ++fate_.deleted; }
  Kind kind() const override { return kind_; }
  dev_t device_number() const override { return kind_ == Kind::kUcma ? makedev(10, 58) : 0; }
  ssize_t write(int, const void*, size_t size, int& error_number) override {
    ++fate_.writes;
    if (size > 100) {
      error_number = ENOSPC;
      return -1;
    }
    return static_cast<ssize_t>(size);
  }
  void closed() override { ++fate_.closed; }

 private:
  Fate& fate_;
  Kind kind_;
};

// A registered descriptor whose file is a pipe of its own, as rdma_cm's is.
inline int open_file(DeviceFile* file) {
  EventPipe pipe;
  int fd = -1;
  EXPECT_EQ(pipe.create(O_CLOEXEC, fd), 0);
  EXPECT_EQ(register_file(fd, file), 0);
  return fd;
}

inline int open_file(Fate& fate) {
  return open_file(new TestFile(fate, DeviceFile::Kind::kUcma));
}

inline bool is_flagged(int fd) {
  return uiwarp_vk_fd_flags()[fd] != 0;
}

// uiwarp_vk_write(), with what it says about whose descriptor that is.
struct Written {
  ssize_t result;
  bool handled;
  int error_number;
};
inline Written write_to(int fd, size_t size = 4) {
  char buffer[200] = {};
  int handled = -1;
  errno = 0;
  const ssize_t result = uiwarp_vk_write(fd, buffer, size, &handled);
  return {result, handled == 1, errno};
}

inline void close_as_hooked(int fd) {
  uiwarp_vk_closing(fd);
  close(fd);
}

}  // namespace uiw::vkernel::test
