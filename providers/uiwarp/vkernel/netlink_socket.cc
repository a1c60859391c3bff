// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/netlink_socket.h"

#include <linux/netlink.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/raw_sys.h"
#include "device/device.h"
#include "device/face.h"
#include "verbs/open_contexts.h"
#include "vkernel/counter_files.h"
#include "vkernel/fd_table.h"
#include "vkernel/nldev.h"
#include "vkernel/raw_files.h"
#include "vkernel/user_memory.h"

namespace uiw::vkernel {
namespace {

namespace sys = core::sys;

// What fits into the kernel's send buffer of such a socket, unless somebody has asked for more.
constexpr size_t kLongestRequest = 208 * 1024;

const sockaddr* generic(const sockaddr_nl& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// The name of a socket; bound to a port id that the kernel chooses, if it has none yet. 0 or errno.
int find_name(int fd, sockaddr_nl& name) {
  const sockaddr_nl any{AF_NETLINK, 0, 0, 0};
  for (;;) {
    socklen_t size = sizeof name;
    if (int error = sys::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size); error != 0) {
      return -error;
    }
    name.nl_groups = 0;
    if (name.nl_pid != 0) return 0;
    if (int error = sys::bind(fd, generic(any), sizeof any); error != 0) return -error;
  }
}

nldev::Echo echo_of(int fd) {
  int capped = 0;
  socklen_t size = sizeof capped;
  sys::getsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &capped, &size);
  return capped != 0 ? nldev::Echo::kHeader : nldev::Echo::kMessage;
}

nldev::Snapshot look(std::span<const uint8_t> request) {
  return {device::devices(), &device::face(),
          verbs::open_contexts() == 0 ? nldev::Objects::kNone : nldev::Objects::kUncounted,
          nldev::asks_for_counters(request) ? counted_by_device() : std::vector<counters::Row>{}};
}

// A long list needs more room than libnl asks for. The kernel counts what it has around the bytes,
// too, and may grant less.
void make_room(int fd, const std::vector<netlink::Datagram>& datagrams) {
  const int wanted = static_cast<int>(datagrams.size() * 2 * netlink::Writer::kDatagramSize);
  int room = 0;
  socklen_t size = sizeof room;
  sys::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, &size);
  if (room < wanted) sys::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &wanted, sizeof wanted);
}

class NetlinkSocket final : public DeviceFile {
 public:
  Kind kind() const override { return Kind::kNetlink; }
  AfterFork after_fork() const override { return AfterFork::kWorks; }

  ssize_t write(int fd, const void* buffer, size_t size, int& error_number) override {
    error_number = execute(fd, buffer, size);
    return error_number == 0 ? static_cast<ssize_t>(size) : -1;
  }

  void closed() override {}

 private:
  int execute(int fd, const void* buffer, size_t size) {
    if (size > kLongestRequest) return EMSGSIZE;
    const std::unique_ptr<uint8_t[]> copy(new (std::nothrow) uint8_t[size]);
    if (copy == nullptr) return ENOMEM;
    if (int error = copy_in(copy.get(), buffer, size)) return error;
    sockaddr_nl self;
    if (int error = find_name(fd, self); error != 0) return error;
    if (int error = make_private(fd, self); error != 0) return error;

    const std::span<const uint8_t> request(copy.get(), size);
    if (nldev::asks_for_list(request)) device::refresh();
    const nldev::Privilege privilege =
        raw::may_administer_network() ? nldev::Privilege::kNetAdmin : nldev::Privilege::kNone;
    const auto datagrams =
        nldev::answer(request, {self.nl_pid, privilege, echo_of(fd)}, look(request));
    make_room(fd, datagrams);
    for (const netlink::Datagram& datagram : datagrams) {
      if (int error = deliver(fd, self, datagram); error != 0) return error;
    }
    return 0;
  }

  // Until the program's first request anybody may have sent something.
  int make_private(int fd, const sockaddr_nl& self) {
    if (int error = sys::connect(fd, generic(self), sizeof self); error != 0) return -error;
    if (is_private_.exchange(true, std::memory_order_relaxed)) return 0;
    char nothing;
    while (sys::recv(fd, &nothing, sizeof nothing, MSG_DONTWAIT) >= 0) {
    }
    return 0;
  }

  static int deliver(int fd, const sockaddr_nl& self, const netlink::Datagram& datagram) {
    sockaddr_nl to = self;
    iovec part{const_cast<uint8_t*>(datagram.data()), datagram.size()};
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = sizeof to;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const long sent = sys::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return 0;
    return sent == -EAGAIN ? ENOBUFS : static_cast<int>(-sent);
  }

  std::atomic<bool> is_private_{false};
};

}  // namespace

int open_netlink_socket(int type) {
  const int fd = sys::socket(AF_NETLINK, type, NETLINK_USERSOCK);
  if (fd < 0) return fd;
  auto* file = new (std::nothrow) NetlinkSocket;
  const int error = file == nullptr ? ENOMEM : register_file(fd, file);
  if (error != 0) {
    sys::close(fd);
    return -error;
  }
  return fd;
}

ssize_t send_to_netlink(int fd, const void* buffer, size_t size, const sockaddr* address,
                        socklen_t address_size, bool& handled, int& error_number) {
  FileRef file = find_file(fd);
  handled = file && file->kind() == DeviceFile::Kind::kNetlink;
  if (!handled) return -1;
  if (address != nullptr) {
    sockaddr_nl to;
    error_number = EINVAL;
    if (address_size < sizeof to) return -1;
    if (error_number = copy_in(&to, address, sizeof to); error_number != 0) return -1;
    error_number = EINVAL;
    if (to.nl_family != AF_NETLINK) return -1;
    error_number = EPERM;
    if (to.nl_pid != 0 || to.nl_groups != 0) return -1;
  }
  return file->write(fd, buffer, size, error_number);
}

}  // namespace uiw::vkernel
