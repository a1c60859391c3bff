// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/uverbs.h"

#include <fcntl.h>
#include <rdma/ib_user_verbs.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "core/descriptors.h"
#include "core/raw_sys.h"
#include "vkernel/event_pipe.h"
#include "vkernel/fd_table.h"

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
  core::release_descriptor(fd);  // it is the program's, who reads and closes it
  response.fd = static_cast<uint32_t>(fd);
  std::memcpy(reinterpret_cast<void*>(command.response), &response, sizeof response);
  return 0;
}

class UverbsFile final : public DeviceFile {
 public:
  Kind kind() const override { return Kind::kUverbs; }

  ssize_t write(int /*fd*/, const void* buffer, size_t size, int& error_number) override {
    error_number = execute(buffer, size);
    return error_number == 0 ? static_cast<ssize_t>(size) : -1;
  }

  void closed() override {}

 private:
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
};

}  // namespace

int open_uverbs(int flags) {
  // O_APPEND marks it as ours (fd_table.cc).
  const int fd = sys::open("/dev/null", O_RDWR | O_APPEND | (flags & (O_CLOEXEC | O_NONBLOCK)));
  if (fd < 0) return fd;
  auto* file = new (std::nothrow) UverbsFile;
  const int error = file == nullptr ? ENOMEM : register_file(fd, file);
  if (error != 0) {
    sys::close(fd);
    return -error;
  }
  return fd;
}

}  // namespace uiw::vkernel
