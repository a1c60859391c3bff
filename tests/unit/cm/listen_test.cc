// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// rdma_listen(): what it promises, and what becomes of the descriptors.
#include <thread>

#include "support/descriptor_limit.h"
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

TEST_F(ListenTest, AShortageOfDescriptorsIsTheCallersAnswer) {
  new_listener(1);  // the engine runs
  const uint32_t id = new_id(2);
  ASSERT_EQ(0, manager_.bind(channel_.channel, id, ip("127.0.0.1", 0)));
  Route route;
  ASSERT_EQ(0, manager_.query(channel_.channel, id, route));
  {
    const ::uiw::test::DescriptorLimit none(0);
    EXPECT_EQ(EMFILE, manager_.listen(channel_.channel, id, 1));
  }
  const int early = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(-1, ::connect(early, reinterpret_cast<sockaddr*>(&route.source), sizeof(sockaddr_in)));
  EXPECT_EQ(ECONNREFUSED, errno);
  ::close(early);
  EXPECT_EQ(0, manager_.listen(channel_.channel, id, 1));
  RawPeer peer;
  peer.connect(route.source);
  peer.send(request_frame());
  EXPECT_EQ(channel_.expect(EventType::kConnectRequest).uid, 2u);
}

}  // namespace
}  // namespace uiw::cm::test
