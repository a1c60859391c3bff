// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What stands behind a descriptor of the virtual kernel (uverbsN, rdma_cm, NETLINK_RDMA): the
// descriptor is a real one (of /dev/null, a pipe, a socket), a DeviceFile gives it its meaning.
//
// The descriptor table (fd_table.h) owns every DeviceFile: it holds one reference per file that
// has open descriptors, and one for the duration of each write(). So a file closed by one thread
// while another is inside write() lives until that call returns.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>

namespace uiw::vkernel {

class DeviceFile {
 public:
  enum class Kind { kUverbs, kUcma, kNetlink };

  // In the child of a fork.
  enum class AfterFork {
    kDead,   // it was the parent's: commands fail with ENODEV
    kWorks,  // has no lock and no state of the parent's
  };

  DeviceFile(const DeviceFile&) = delete;
  DeviceFile& operator=(const DeviceFile&) = delete;

  virtual Kind kind() const = 0;
  virtual AfterFork after_fork() const { return AfterFork::kDead; }

  // write(fd, buffer, size) by the application. Returns what write() returns: the number of octets
  // taken (for a command always `size`), or -1 with `error_number` a positive errno.
  // `buffer` is application memory. `fd` is the descriptor it used, for fcntl(F_GETFL); there may
  // be several (dup). Called by any thread, by several at once, with no lock held; may block, and
  // then returns -1/EINTR when a signal handler ran.
  virtual ssize_t write(int fd, const void* buffer, size_t size, int& error_number) = 0;

  // ioctl(fd, request, argument) by the application: 0 or a positive errno; nothing when it is to
  // go to the descriptor itself. As write(), but does not block.
  virtual std::optional<int> control(int /*fd*/, unsigned long /*request*/, void* /*argument*/) {
    return std::nullopt;
  }

  // What fstat() is to say of its descriptors, which are a character device then; 0: what they are.
  virtual dev_t device_number() const { return 0; }

  // The last descriptor is about to be closed by the calling thread. With no lock held; may block
  // for a moment.
  virtual void closing() {}

  // The last descriptor was closed. Called once, with no lock held, by the thread that closed it,
  // possibly while others are in write(): those must be made to return. After this, and after the
  // last write() returned, the file is deleted.
  virtual void closed() = 0;

  void add_reference() { references_.fetch_add(1, std::memory_order_relaxed); }
  void drop_reference() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 protected:
  DeviceFile() = default;
  virtual ~DeviceFile() = default;

 private:
  std::atomic<unsigned> references_{1};  // the creator's, which the descriptor table takes over
};

// A counted pointer to a DeviceFile.
class FileRef {
 public:
  FileRef() = default;
  // Takes over a reference the caller holds.
  explicit FileRef(DeviceFile* file) : file_(file) {}
  FileRef(FileRef&& other) noexcept : file_(std::exchange(other.file_, nullptr)) {}
  FileRef& operator=(FileRef&& other) noexcept {
    if (this != &other) {
      reset();
      file_ = std::exchange(other.file_, nullptr);
    }
    return *this;
  }
  ~FileRef() { reset(); }

  DeviceFile* get() const { return file_; }
  DeviceFile* operator->() const { return file_; }
  explicit operator bool() const { return file_ != nullptr; }
  void reset() {
    if (file_ != nullptr) std::exchange(file_, nullptr)->drop_reference();
  }

 private:
  DeviceFile* file_ = nullptr;
};

// The file behind a descriptor of this process, for commands that name another descriptor
// (MIGRATE_ID). Empty when `fd` is not one of ours, or no longer what we opened. Any thread.
FileRef find_file(int fd);

}  // namespace uiw::vkernel
