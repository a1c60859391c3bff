// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Ids that connect from a port which the program has named.
#include "unit/cm/rig.h"

namespace uiw::cm::test {
namespace {

class SourcePortTest : public ConnectionTest {
 protected:
  // That nobody has.
  static sockaddr_storage free_port() {
    RawPeer passing;
    return passing.listen();
  }
  uint32_t new_resolved_from(const sockaddr_storage& from, const sockaddr_storage& to) {
    const uint32_t id = new_id(11);
    EXPECT_EQ(0, manager_.resolve_address(channel_.channel, id, from, to));
    channel_.expect(EventType::kAddrResolved);
    EXPECT_EQ(0, manager_.resolve_route(channel_.channel, id));
    channel_.expect(EventType::kRouteResolved);
    return id;
  }
};

// The kernel may choose such a port by itself, where nobody listens (TCP's simultaneous open).
TEST_F(SourcePortTest, NobodyButItselfIsRejected) {
  const sockaddr_storage here = free_port();
  const uint32_t id = new_resolved_from(here, here);
  ASSERT_EQ(0, connect(id, conn_param(1)));
  channel_.expect(EventType::kRejected, -ECONNREFUSED);
}

// RFC 6581 10
TEST_F(SourcePortTest, TheSamePortOnRevision1) {
  for (const bool half : {false, true}) {
    RawPeer listener;
    const uint32_t id = new_resolved_from(free_port(), listener.listen());
    ASSERT_EQ(0, connect(id, conn_param(half ? 2 : 1)));
    RawPeer first = listener.accept();
    EXPECT_EQ(2, first.receive_frame(mpa::FrameKind::kRequest).revision);
    if (half) {
      first.finish_sending();
    } else {
      first.close();
    }
    RawPeer second = listener.accept();
    const mpa::StartupFrame request = second.receive_frame(mpa::FrameKind::kRequest);
    EXPECT_EQ(1, request.revision);
    mpa::Agreement agreement;
    second.send(mpa::make_reply({}, request, agreement));
    channel_.expect(EventType::kEstablished);
    second.close();
    channel_.expect(EventType::kDisconnected);
    destroy(id);
  }
}

}  // namespace
}  // namespace uiw::cm::test
