// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A peer whose stream ends inside of a message, between two of its segments.
#include <gtest/gtest.h>

#include "core/bytes.h"
#include "support/host.h"

namespace uiw::test {
namespace {

// No receive is lost with half a Write, and half an answer is known to its Read; the rest is lost
// all the same. By number it is no news, and what is outstanding fails when the peer is missed.
TEST(CutOffPeer, HalfAMessageOfWholeSegmentsAndFin) {
  auto engine = engine::Engine::start();
  ASSERT_TRUE(engine);
  for (const bool reads : {false, true})
    for (const bool by_number : {false, true}) {
      SCOPED_TRACE(2 * reads + by_number);
      Host host(**engine, {.initiator = true});
      if (by_number) {
        ASSERT_EQ(host.qp->expect_peer(), 0);
        ASSERT_EQ(host.modify(IBV_QPS_RTS), 0);
      }
      const SocketEnds sockets = connect_sockets();
      RawPeer peer(sockets.theirs);
      ASSERT_EQ(host.attach(sockets.ours), 0);
      Buffer target(host.memory, 64);
      if (reads) {
        ASSERT_EQ(host.post(SendWr(IBV_WR_RDMA_READ, {target.sge()}).to(0x1000, 0x55)), 0);
        const Octets request = ulpdus_of(peer.receive(52)).at(0);
        const uint32_t sink = core::load_be32(request.data() + 18);
        ASSERT_TRUE(peer.send(fpdu(tagged(2, sink, 0, of_text("half"), false))));
      } else {
        ASSERT_TRUE(
            peer.send(fpdu(tagged(0, target.stag(), target.start(), of_text("half"), false))));
      }
      peer.finish();
      ASSERT_TRUE(host.wait_for_end());
      EXPECT_EQ(host.end_error(), by_number ? 0 : ECONNRESET);
      if (by_number)
        EXPECT_TRUE(host.events().empty());
      else
        EXPECT_EQ(host.events(), std::vector<ibv_event_type>{IBV_EVENT_QP_FATAL});
      if (!reads) continue;
      ASSERT_TRUE(wait_until([&] { return host.sent().size() == 1; }));
      EXPECT_EQ(host.sent()[0].status, by_number ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR);
    }
}

}  // namespace
}  // namespace uiw::test
