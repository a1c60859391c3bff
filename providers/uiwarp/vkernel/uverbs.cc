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
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "core/descriptors.h"
#include "core/raw_sys.h"
#include "vkernel/event_pipe.h"
#include "vkernel/fd_table.h"
#include "vkernel/identity.h"

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
  std::memcpy(&command, static_cast<const char*>(buffer) + sizeof header, sizeof command);
  if (command.response == 0) return EFAULT;

  EventPipe pipe;
  int fd;
  if (int error = pipe.create(O_CLOEXEC, fd); error != 0) return error;
  // The provider opens it once more when the channel gets its first completion queue, by when the
  // process may be another user. Who cannot look into /proc/PID/fd gains nothing.
  sys::fchmod(fd, 0666);
  core::release_descriptor(fd);  // it is the program's, who reads and closes it
  response.fd = static_cast<uint32_t>(fd);
  std::memcpy(reinterpret_cast<void*>(command.response), &response, sizeof response);
  return 0;
}

// The attribute that UVERBS_METHOD_ASYNC_EVENT_ALLOC answers in. Null: another command.
ib_uverbs_attr* async_event_answer(unsigned long request, void* argument) {
  if (request != RDMA_VERBS_IOCTL || argument == nullptr) return nullptr;
  auto& header = *static_cast<ib_uverbs_ioctl_hdr*>(argument);
  if (header.object_id != UVERBS_OBJECT_ASYNC_EVENT ||
      header.method_id != UVERBS_METHOD_ASYNC_EVENT_ALLOC)
    return nullptr;
  for (uint16_t i = 0; i < header.num_attrs; ++i)
    if (header.attrs[i].attr_id == UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE) return &header.attrs[i];
  return nullptr;
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
    ib_uverbs_attr* const answer = async_event_answer(request, argument);
    if (answer == nullptr) return std::nullopt;
    const std::lock_guard lock(mutex_);
    const auto given = std::ranges::find(given_, fd, &Given::fd);
    if (given == given_.end()) return EOPNOTSUPP;
    answer->data_s64 = given->async_fd;
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
    if (buffer == nullptr) return EFAULT;
    if (size < sizeof header) return EINVAL;
    std::memcpy(&header, buffer, sizeof header);
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
