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

}  // namespace
}  // namespace uiw::cm::test
