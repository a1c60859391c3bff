// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// rdma_listen(): what it promises, and what becomes of the descriptors.
#include <thread>

#include "unit/cm/held_engine.h"
#include "unit/cm/rig.h"

namespace uiw::cm::test {
namespace {

using ListenTest = ConnectionTest;

// A number that was closed already may be that of another file by then.
TEST_F(ListenTest, TheDescriptorIsClosedOnce) {
  const uint32_t id = new_listener(1);
  settle();  // it listens
  HeldEngine held(*engine_);
  std::thread destroyer([&] { destroy(id); });
  Route route;
  while (manager_.query(channel_.channel, id, route) == 0) std::this_thread::yield();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  held.release();
  destroyer.join();
  for (const int end : ends) EXPECT_EQ(close(end), 0);
}

}  // namespace
}  // namespace uiw::cm::test
