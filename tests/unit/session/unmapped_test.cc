// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Memory that the program unmaps while a request is sent from it.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <thread>

#include "support/host.h"

namespace uiw::test {
namespace {

// Nothing that is left of it can be sent, so that nothing looks at it.
TEST(UnmappedMemory, FailsTheRequestThatSendsIt) {
  auto engine = std::move(*engine::Engine::start());
  Host host(*engine, {.initiator = true, .crc = false});
  const SocketEnds sockets = connect_sockets();
  RawPeer peer(sockets.theirs);
  ASSERT_EQ(host.attach(sockets.ours), 0);
  constexpr size_t kSize = 64 << 20;  // more than TCP takes
  void* const memory =
      mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto start = reinterpret_cast<uint64_t>(memory);
  const uint32_t stag =
      *host.memory.add(kPd, static_cast<uint8_t*>(memory), start, kSize, kAllAccess, kMaxRegions);
  ASSERT_EQ(host.post(SendWr(IBV_WR_RDMA_WRITE, {{start, kSize, stag}}, 7).to(0x1000, 0x100)), 0);
  ASSERT_TRUE(wait_until_nothing_moves(sockets.theirs));
  munmap(memory, kSize);
  std::thread reads([&] { peer.receive_all(); });
  ASSERT_TRUE(host.wait_for_end());
  host.memory.remove(stag);
  reads.join();
  ASSERT_EQ(host.sent().size(), 1u);
  EXPECT_NE(host.sent()[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(host.sent()[0].vendor_err, static_cast<uint32_t>(core::Cause::kNotMapped));
}

}  // namespace
}  // namespace uiw::test
