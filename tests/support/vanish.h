// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A dead link for one connection, without privileges or namespaces.
#pragma once

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <sys/socket.h>

namespace uiw::test {

// From now on everything that comes for this socket is dropped before TCP sees it, so that nothing
// is acknowledged or answered; not even by a reset, as long as it is open.
inline void vanish(int fd) {
  sock_filter drop{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog program{1, &drop};
  EXPECT_EQ(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
}

}  // namespace uiw::test
