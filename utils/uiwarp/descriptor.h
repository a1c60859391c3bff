// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A file descriptor that closes itself.
#pragma once

#include <unistd.h>

#include <utility>

namespace uiw::tool {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }  // negative: none is open

 private:
  int fd_;
};

}  // namespace uiw::tool
