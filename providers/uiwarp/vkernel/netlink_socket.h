// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a program gets that asks for a socket of NETLINK_RDMA.
//
// It is a real netlink socket, of NETLINK_USERSOCK, so that bind, getsockname, poll and recvmsg are
// the kernel's own, in containers and without privileges too. What the program sends does not leave
// the process: the answers (nldev.h) are sent from the socket to itself. It is connected to itself
// before, and then the kernel lets nobody else send to it: as with NETLINK_RDMA, what is received
// can be trusted.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>

namespace uiw::vkernel {

// Makes one. `type` as for socket(). The descriptor, or -errno. Thread: any.
int open_netlink_socket(int type);

// send(), sendto() or sendmsg() on `fd`; `address` may be null. As write_file_descriptor(), but
// that only what open_netlink_socket() made is taken. Errors besides: EINVAL (an address that is
// none of netlink), EPERM (another one than the kernel's). Thread: any.
ssize_t send_to_netlink(int fd, const void* buffer, size_t size, const sockaddr* address,
                        socklen_t address_size, bool& handled, int& error_number);

}  // namespace uiw::vkernel
