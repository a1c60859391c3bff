// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// GIDs as tests write them.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace uiw::test {

// An IPv6 address, or an IPv4 one as ::ffff:a.b.c.d.
inline in6_addr gid(const char* text) {
  in6_addr address{};
  EXPECT_EQ(inet_pton(AF_INET6, text, &address), 1) << text;
  return address;
}

}  // namespace uiw::test
