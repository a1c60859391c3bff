// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/uverbs.h"

#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "core/descriptors.h"
#include "core/raw_sys.h"
#include "vkernel/event_pipe.h"
#include "vkernel/fd_table.h"
#include "vkernel/identity.h"
#include "vkernel/user_memory.h"

namespace uiw::vkernel {
namespace {

namespace sys = core::sys;

constexpr uint32_t kExtendedCommand = 0x80000000;  // IB_USER_VERBS_CMD_FLAG_EXTENDED
constexpr uint32_t kLastCommand = IB_USER_VERBS_CMD_OPEN_QP;

// The application side of an EventPipe, which read() empties: the provider writes the 8 octets that
// name a completion queue through a description of its own.
int create_completion_channel(const void* buffer, size_t size, const ib_uverbs_cmd_hdr& header) {
  ib_uverbs_create_comp_channel command;
  if (size != sizeof header + sizeof command) return EINVAL;
  ib_uverbs_create_comp_channel_resp response;
  if (header.out_words * 4u < sizeof response) return ENOSPC;
  if (int error =
          copy_in(&command, static_cast<const char*>(buffer) + sizeof header, sizeof command))
    return error;

  EventPipe pipe;
  int fd;
  if (int error = pipe.create(O_CLOEXEC, fd); error != 0) return error;
  // The provider opens it once more when the channel gets its first completion queue, by when the
  // process may be another user. Who cannot look into /proc/PID/fd gains nothing.
  sys::fchmod(fd, 0666);
  response.fd = static_cast<uint32_t>(fd);
  if (int error = copy_out(user_pointer(command.response), &response, sizeof response)) {
    sys::close(fd);
    return error;
  }
  core::release_descriptor(fd);  // it is the program's, who reads and closes it
  return 0;
}

// Where UVERBS_METHOD_ASYNC_EVENT_ALLOC is to answer: 0, EFAULT or EINVAL; nothing: another
// command.
std::optional<int> find_answer(unsigned long request, const void* argument, int64_t** answer) {
  if (request != RDMA_VERBS_IOCTL) return std::nullopt;
  ib_uverbs_ioctl_hdr header;
  if (int error = copy_in(&header, argument, sizeof header)) return error;
  if (header.object_id != UVERBS_OBJECT_ASYNC_EVENT ||
      header.method_id != UVERBS_METHOD_ASYNC_EVENT_ALLOC)
    return std::nullopt;
  if (header.length != sizeof header + header.num_attrs * sizeof(ib_uverbs_attr)) return EINVAL;
  ib_uverbs_attr* attribute = static_cast<ib_uverbs_ioctl_hdr*>(const_cast<void*>(argument))->attrs;
  for (uint16_t i = 0; i < header.num_attrs; ++i, ++attribute) {
    ib_uverbs_attr copy;
    if (int error = copy_in(&copy, attribute, sizeof copy)) return error;
    if (copy.attr_id != UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE) continue;
    *answer = reinterpret_cast<int64_t*>(reinterpret_cast<char*>(attribute) +
                                         offsetof(ib_uverbs_attr, data_s64));
    return 0;
  }
  return std::nullopt;
}

class UverbsFile final : public DeviceFile {
 public:
  explicit UverbsFile(uint32_t minor) : minor_(minor) {}

  Kind kind() const override { return Kind::kUverbs; }

  dev_t device_number() const override {
    const CharacterDevice number = uverbs_device(minor_);
    return makedev(number.major, number.minor);
  }

  uint64_t number() const { return number_; }

  void give_async(int fd, int async_fd) {
    const std::lock_guard lock(mutex_);
    given_.push_back({fd, async_fd});
  }

  std::optional<int> control(int fd, unsigned long request, void* argument) override {
    int64_t* answer = nullptr;
    if (const auto error = find_answer(request, argument, &answer); error != 0) return error;
    const std::lock_guard lock(mutex_);
    const auto given = std::ranges::find(given_, fd, &Given::fd);
    if (given == given_.end()) return EOPNOTSUPP;
    const int64_t async_fd = given->async_fd;
    if (int error = copy_out(answer, &async_fd, sizeof async_fd)) return error;
    given_.erase(given);
    return 0;
  }

  ssize_t write(int /*fd*/, const void* buffer, size_t size, int& error_number) override {
    error_number = execute(buffer, size);
    return error_number == 0 ? static_cast<ssize_t>(size) : -1;
  }

  void closed() override {}

 private:
  struct Given {
    int fd, async_fd;
  };

  // The errnos are those of the kernel's ib_uverbs_write().
  static int execute(const void* buffer, size_t size) {
    ib_uverbs_cmd_hdr header;
    if (size < sizeof header) return EINVAL;
    if (int error = copy_in(&header, buffer, sizeof header)) return error;
    if ((header.command & kExtendedCommand) != 0) return EOPNOTSUPP;
    if (header.command > kLastCommand || header.in_words * 4u != size) return EINVAL;
    if (header.command == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL) {
      return create_completion_channel(buffer, size, header);
    }
    return EOPNOTSUPP;
  }

  static inline constinit std::atomic<uint64_t> last_number{0};

  const uint32_t minor_;
  const uint64_t number_ = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  std::mutex mutex_;
  std::vector<Given> given_;  // until they are asked for; under mutex_
};

// `file` keeps it. Null: none of this process.
UverbsFile* uverbs_file(const FileRef& file) {
  return file && file->kind() == DeviceFile::Kind::kUverbs ? static_cast<UverbsFile*>(file.get())
                                                           : nullptr;
}

}  // namespace

uint64_t command_of(int fd) {
  const FileRef file = find_file(fd);
  const UverbsFile* const found = uverbs_file(file);
  return found ? found->number() : 0;
}

int give_async(int fd, int async_fd) {
  const FileRef file = find_file(fd);
  UverbsFile* const found = uverbs_file(file);
  if (found == nullptr) return EBADF;
  found->give_async(fd, async_fd);
  return 0;
}

int open_uverbs(uint32_t minor, int flags) {
  // O_APPEND marks it as ours (fd_table.cc).
  const int fd = sys::open("/dev/null", O_RDWR | O_APPEND | (flags & (O_CLOEXEC | O_NONBLOCK)));
  if (fd < 0) return fd;
  auto* file = new (std::nothrow) UverbsFile(minor);
  const int error = file == nullptr ? ENOMEM : register_file(fd, file);
  if (error != 0) {
    sys::close(fd);
    return -error;
  }
  return fd;
}

}  // namespace uiw::vkernel
