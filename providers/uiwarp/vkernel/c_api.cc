// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The entry points for the preload library (uiwarp-abi.h, "the virtual kernel").
#include <fcntl.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

#include "core/descriptors.h"
#include "core/raw_sys.h"
#include "device/device.h"
#include "uiwarp/uiwarp-abi.h"
#include "vkernel/descriptor_room.h"
#include "vkernel/event_pipe.h"
#include "vkernel/fd_table.h"
#include "vkernel/netlink_socket.h"
#include "vkernel/paths.h"
#include "vkernel/port_counters.h"
#include "vkernel/tree.h"
#include "vkernel/ucma.h"
#include "vkernel/user_memory.h"
#include "vkernel/uverbs.h"

namespace uiw::vkernel {
namespace {

constexpr int kNotADevice = -2;

int open_rdma_cm(int flags) {
  std::unique_ptr<EventPipe> events(new (std::nothrow) EventPipe);
  if (events == nullptr) return -ENOMEM;
  int fd;
  if (int error = events->create(flags, fd); error != 0) return -error;
  DeviceFile* file = make_ucma_file(std::move(events));
  const int error = file == nullptr ? ENOMEM : register_file(fd, file);
  if (error != 0) {
    core::sys::close(fd);
    return -error;
  }
  return fd;
}

// Like a system call: value, or -1 and errno.
int as_system_call(int result) {
  if (result >= 0) return result;
  errno = -result;
  return -1;
}

int open_device(const char* path, int flags) {
  const std::unique_ptr<char[]> room(new (std::nothrow) char[PATH_MAX]);
  if (room == nullptr) return as_system_call(-ENOMEM);
  const std::string_view normalised(room.get(), normalise(path, room.get(), PATH_MAX));
  if (normalised.empty()) return kNotADevice;
  if (const int counter = open_port_counter(normalised, flags); counter != kNoCounter)
    return as_system_call(counter);
  int fd = -EINVAL;
  uint32_t minor = 0;
  const DeviceNode node = device_node(normalised, minor);
  constexpr int kNew = O_CREAT | O_EXCL;
  if (node != DeviceNode::kNone && (flags & kNew) == kNew) return as_system_call(-EEXIST);
  switch (node) {
    case DeviceNode::kNone:
      return kNotADevice;
    case DeviceNode::kRdmaCm:
      fd = open_rdma_cm(flags);
      break;
    case DeviceNode::kUverbs:
      fd = open_uverbs(minor, flags);
      break;
  }
  if (fd >= 0) make_descriptor_room(fd);
  return as_system_call(fd);
}

}  // namespace
}  // namespace uiw::vkernel

using namespace uiw::vkernel;

// No path is on the stack but what the caller has there: a thread may have 16 KiB in all.
int uiwarp_vk_redirect(const char* path, char* out, size_t out_size) {
  if (!is_active()) return 0;
  const size_t length = normalise(path, out, out_size);
  if (length == 0) return 0;
  std::string_view root = "";
  if (is_rdma_path({out, length})) {
    if (lists_devices({out, length})) uiw::device::refresh();
    root = tree_root();
  } else if (!is_rdma_path(path)) {
    // Whether the kernel comes to the same, only the kernel knows: links may be on the way.
    return 0;
  }
  // Else "/sys/class/infiniband/../net", which leaves our part: the real path that it means is
  // used.
  if (root.size() + length + 1 > out_size) return 0;
  std::memmove(out + root.size(), out, length + 1);
  std::memcpy(out, root.data(), root.size());
  return 1;
}

size_t uiwarp_vk_root_length(const char* path) {
  return root_length(path);
}

int uiwarp_vk_open(const char* path, int flags) {
  // O_PATH opens nothing, O_DIRECTORY fails: the tree's own entry does both right.
  if ((flags & (O_PATH | O_DIRECTORY)) != 0 || !is_active()) return kNotADevice;
  return open_device(path, flags);
}

const uint8_t* uiwarp_vk_fd_flags(void) {
  return uiw::core::descriptor_uses();
}

ssize_t uiwarp_vk_write(int fd, const void* buffer, size_t size, int* handled) {
  bool ours = false;
  int error_number = 0;
  const ssize_t result = write_file_descriptor(fd, buffer, size, ours, error_number);
  *handled = ours ? 1 : 0;
  if (ours && result < 0) errno = error_number;
  return result;
}

int uiwarp_vk_copy_in(void* to, const void* from, size_t size) {
  return as_system_call(-copy_in(to, from, size));
}

int uiwarp_vk_socket(int type) {
  return is_active() ? as_system_call(open_netlink_socket(type)) : kNotADevice;
}

ssize_t uiwarp_vk_send(int fd, const void* buffer, size_t size, const struct sockaddr* address,
                       socklen_t address_size, int* handled) {
  bool ours = false;
  int error_number = 0;
  const ssize_t result =
      send_to_netlink(fd, buffer, size, address, address_size, ours, error_number);
  *handled = ours ? 1 : 0;
  if (ours && result < 0) errno = error_number;
  return result;
}

int uiwarp_vk_ioctl(int fd, unsigned long request, void* argument, int* handled) {
  bool ours = false;
  int error_number = 0;
  const int result = control_file_descriptor(fd, request, argument, ours, error_number);
  *handled = ours ? 1 : 0;
  if (ours && result < 0) errno = error_number;
  return result;
}

uint64_t uiwarp_vk_command(int fd) {
  return command_of(fd);
}

int uiwarp_vk_give_async(int fd, int async_fd) {
  return give_async(fd, async_fd);
}

int uiwarp_vk_keeps(int fd) {
  return is_kept(fd) ? 1 : 0;
}

void uiwarp_vk_closing(int fd) {
  forget_descriptor(fd);
}

void uiwarp_vk_fix_stat(int fd, struct stat* st) {
  fix_stat(fd, *st);
}

void uiwarp_vk_dup(int fd, int copy) {
  copy_descriptor(fd, copy);
}
