// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// States, argument checks and what comes with a connection's beginning and end. How a connection
// behaves in between: tests/sim; what hostile peers can do: tests/raw.
#include "session/queue_pair.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/host.h"

namespace uiw::test {
namespace {

class QueuePair : public testing::Test {
 protected:
  QueuePair() : engine(std::move(*engine::Engine::start())) {}
  std::unique_ptr<engine::Engine> engine;
};

TEST_F(QueuePair, BeginsInInitAndPostsOnlyReceives) {
  Host host(*engine);
  EXPECT_EQ(host.state(), IBV_QPS_INIT);
  EXPECT_EQ(host.qp->qp_num(), 42u);
  SendWr send(IBV_WR_SEND);
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(host.qp->post_send(&send.get(), &bad), EINVAL);
  EXPECT_EQ(bad, &send.wr);
  EXPECT_EQ(host.receive(RecvWr()), 0);
  EXPECT_TRUE(host.sent().empty());
}

TEST_F(QueuePair, FollowsTheStatesOfIwarp) {
  Host host(*engine);
  EXPECT_EQ(host.modify(IBV_QPS_RTS), EINVAL);  // only a connection leads there
  EXPECT_EQ(host.modify(IBV_QPS_RTR), 0);
  EXPECT_EQ(host.state(), IBV_QPS_RTR);
  EXPECT_EQ(host.post(SendWr(IBV_WR_SEND)), EINVAL);
  EXPECT_EQ(host.modify(IBV_QPS_INIT), 0);
  EXPECT_EQ(host.modify(IBV_QPS_SQE), EINVAL);
  EXPECT_EQ(host.modify(IBV_QPS_SQD), 0);  // rdma_disconnect without a connection
  EXPECT_EQ(host.modify(IBV_QPS_RESET), 0);
  EXPECT_EQ(host.state(), IBV_QPS_RESET);
  EXPECT_EQ(host.receive(RecvWr()), EINVAL);
  EXPECT_EQ(host.modify(IBV_QPS_RTR), EINVAL);
  EXPECT_EQ(host.modify(IBV_QPS_INIT), 0);
  EXPECT_EQ(host.state(), IBV_QPS_INIT);
}

TEST_F(QueuePair, RefusesWhatIwarpHasNot) {
  Host host(*engine);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(host.qp->modify(attr, IBV_QP_STATE | IBV_QP_AV), EOPNOTSUPP);
  EXPECT_EQ(host.qp->modify(attr, IBV_QP_STATE | IBV_QP_DEST_QPN), EOPNOTSUPP);
  attr.port_num = 2;
  EXPECT_EQ(host.qp->modify(attr, IBV_QP_PORT), EINVAL);
  EXPECT_EQ(host.state(), IBV_QPS_INIT);
  attr.port_num = 1;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  EXPECT_EQ(host.qp->modify(attr, IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
  ibv_qp_init_attr init{};
  EXPECT_EQ(host.qp->query(attr, IBV_QP_ACCESS_FLAGS, init), 0);
  EXPECT_EQ(attr.qp_access_flags, unsigned{IBV_ACCESS_REMOTE_READ});
}

TEST_F(QueuePair, InErrorEverythingIsFlushed) {
  Host host(*engine);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(host.receive(RecvWr({}, i)), 0);
  EXPECT_EQ(host.modify(IBV_QPS_ERR), 0);
  EXPECT_EQ(host.state(), IBV_QPS_ERR);
  EXPECT_EQ(host.receive(RecvWr({}, 3)), 0);
  for (uint64_t i = 0; i < 3; ++i)
    EXPECT_EQ(host.post(SendWr(IBV_WR_RDMA_READ, {}, i).flags(0)), 0);
  ASSERT_TRUE(wait_until([&] { return host.sent().size() == 3 && host.received().size() == 4; }));
  for (const auto& list : {host.sent(), host.received()}) {
    for (size_t i = 0; i < list.size(); ++i) {
      EXPECT_EQ(list[i].status, IBV_WC_WR_FLUSH_ERR);
      EXPECT_EQ(list[i].wr_id, i);
      EXPECT_EQ(list[i].qp_num, 42u);
    }
  }
  EXPECT_TRUE(host.events().empty());
  EXPECT_EQ(host.modify(IBV_QPS_INIT), EINVAL);
  EXPECT_EQ(host.modify(IBV_QPS_RESET), 0);
  EXPECT_EQ(host.modify(IBV_QPS_INIT), 0);
}

// A message of which only the beginning came has taken a receive that will never complete.
TEST_F(QueuePair, AReceiveOfASharedQueueIsGivenBackWithIt) {
  auto srq = queue::ReceiveQueue::create(1, 1, queue::ReceiveQueue::Takers::kMany);
  for (bool destroy : {false, true}) {
    Host host(*engine, {.srq = srq.get()});
    const SocketEnds sockets = connect_sockets();
    RawPeer peer(sockets.theirs);
    ASSERT_EQ(host.attach(sockets.ours), 0);
    Buffer to(host.memory, 64);
    RecvWr receive({to.sge()});
    ASSERT_EQ(post(*srq, receive.get()), 0);
    ASSERT_TRUE(peer.send(fpdu(untagged(3, 0, 1, 0, pattern(5), false))));
    ASSERT_TRUE(wait_until([&] { return srq->empty(); }));
    ASSERT_EQ(post(*srq, receive.get()), ENOMEM);
    if (destroy) {
      host.destroy();
    } else {
      ASSERT_EQ(host.modify(IBV_QPS_RESET), 0);
    }
    ASSERT_EQ(post(*srq, receive.get()), 0);
    queue::Receive taken;
    bool below;
    ASSERT_TRUE(srq->take(taken, below));
    srq->give_up();
    host.destroy();
  }
}

TEST_F(QueuePair, TellsWhichWorkRequestIsWrong) {
  Host host(*engine, {.initiator = true, .depth = 2});
  const SocketEnds sockets = connect_sockets();
  RawPeer peer(sockets.theirs);
  ASSERT_EQ(host.attach(sockets.ours), 0);
  Buffer octets(host.memory, pattern(5));
  SendWr good(IBV_WR_SEND, {octets.sge()}, 1), wrong(IBV_WR_SEND_WITH_IMM, {octets.sge()}, 2),
      never(IBV_WR_SEND, {octets.sge()}, 3);
  good.get().next = &wrong.get();
  wrong.wr.next = &never.get();
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(host.qp->post_send(&good.wr, &bad), EINVAL);
  EXPECT_EQ(bad, &wrong.wr);
  // What came before it has gone out.
  EXPECT_EQ(to_hex(peer.receive(32)), to_hex(fpdu(untagged(3, 0, 1, 0, pattern(5)))));
  EXPECT_EQ(host.sent().size(), 1u);

  for (ibv_wr_opcode opcode : {IBV_WR_SEND_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP /* to 5 octets */,
                               IBV_WR_BIND_MW /* of nothing */})
    EXPECT_EQ(host.post(SendWr(opcode, {octets.sge()})), EINVAL) << opcode;
  EXPECT_EQ(host.post(SendWr(IBV_WR_SEND, std::vector<ibv_sge>(5, octets.sge()))), EINVAL);
  EXPECT_EQ(host.post(SendWr(IBV_WR_RDMA_READ, {octets.sge()}).flags(IBV_SEND_INLINE)), EINVAL);
  EXPECT_EQ(
      host.post(SendWr(IBV_WR_SEND, {{octets.start(), 65, octets.stag()}}).flags(IBV_SEND_INLINE)),
      EINVAL);
  EXPECT_EQ(host.post(SendWr(IBV_WR_SEND, {{octets.start(), 0x80000001, octets.stag()}})), EINVAL);
  EXPECT_EQ(host.receive(RecvWr(std::vector<ibv_sge>(5, octets.sge()))), EINVAL);
}

// rdma_accept() returns before there is a stream.
TEST_F(QueuePair, OnceClaimedKeepsWhatIsPostedForItsStream) {
  Host host(*engine, {.initiator = true});
  const SocketEnds sockets = connect_sockets();
  RawPeer peer(sockets.theirs);
  EXPECT_EQ(host.modify(IBV_QPS_RTR), 0);
  ASSERT_EQ(host.qp->claim(), 0);
  EXPECT_EQ(host.state(), IBV_QPS_RTS);
  EXPECT_EQ(host.modify(IBV_QPS_RTR), 0);  // as librdmacm may, and without effect
  EXPECT_EQ(host.qp->claim(), EINVAL);
  Buffer octets(host.memory, pattern(5));
  EXPECT_EQ(host.post(SendWr(IBV_WR_SEND, {octets.sge()})), 0);
  ASSERT_EQ(host.attach(sockets.ours), 0);
  EXPECT_EQ(host.state(), IBV_QPS_RTS);
  EXPECT_EQ(to_hex(peer.receive(32)), to_hex(fpdu(untagged(3, 0, 1, 0, pattern(5)))));
  EXPECT_EQ(host.qp->claim(), EINVAL);
  engine->run_sync([&] { host.qp->abandon(); });  // nothing: it has its stream
  EXPECT_EQ(host.state(), IBV_QPS_RTS);
}

TEST_F(QueuePair, ClaimedAndDisconnectedSendsWhatWasPostedThenFin) {
  Host host(*engine, {.initiator = true});
  const SocketEnds sockets = connect_sockets();
  RawPeer peer(sockets.theirs);
  ASSERT_EQ(host.qp->claim(), 0);
  Buffer octets(host.memory, pattern(5));
  EXPECT_EQ(host.post(SendWr(IBV_WR_SEND, {octets.sge()})), 0);
  EXPECT_EQ(host.modify(IBV_QPS_SQD), 0);
  engine->run_sync([] {});  // it has heard of that, and there is nothing to close
  ASSERT_EQ(host.attach(sockets.ours), 0);
  EXPECT_EQ(to_hex(peer.receive_all()), to_hex(fpdu(untagged(3, 0, 1, 0, pattern(5)))));
}

TEST_F(QueuePair, ClaimedAndAbandonedFlushes) {
  Host host(*engine);
  EXPECT_EQ(host.receive(RecvWr({}, 1)), 0);
  ASSERT_EQ(host.qp->claim(), 0);
  EXPECT_EQ(host.post(SendWr(IBV_WR_RDMA_READ, {}, 2)), 0);
  engine->run_sync([&] { host.qp->abandon(); });
  EXPECT_EQ(host.state(), IBV_QPS_ERR);
  ASSERT_TRUE(wait_until([&] { return host.sent().size() == 1 && host.received().size() == 1; }));
  EXPECT_EQ(host.sent()[0].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(host.received()[0].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_TRUE(host.events().empty());
  EXPECT_EQ(host.qp->claim(), EINVAL);
}

TEST_F(QueuePair, ClaimedAndInErrorTakesNoStream) {
  Host host(*engine);
  const SocketEnds sockets = connect_sockets();
  RawPeer peer(sockets.theirs);
  ASSERT_EQ(host.qp->claim(), 0);
  EXPECT_EQ(host.modify(IBV_QPS_ERR), 0);
  EXPECT_EQ(host.attach(sockets.ours), EINVAL);
  EXPECT_EQ(host.modify(IBV_QPS_RESET), 0);
  EXPECT_EQ(host.qp->claim(), EINVAL);
  EXPECT_EQ(host.modify(IBV_QPS_INIT), 0);
  EXPECT_EQ(host.qp->claim(), 0);
}

TEST_F(QueuePair, ClaimedAndResetIsNotAbandoned) {
  Host host(*engine);
  ASSERT_EQ(host.qp->claim(), 0);
  EXPECT_EQ(host.modify(IBV_QPS_RESET), 0);
  engine->run_sync([&] { host.qp->abandon(); });
  EXPECT_EQ(host.modify(IBV_QPS_INIT), 0);
  engine->run_sync([&] { host.qp->abandon(); });
  EXPECT_EQ(host.state(), IBV_QPS_INIT);
}

TEST_F(QueuePair, ThatExpectsItsPeerMayBeClaimedAndAbandoned) {
  Host host(*engine);
  ASSERT_EQ(host.qp->expect_peer(), 0);
  EXPECT_EQ(host.qp->claim(), 0);
  engine->run_sync([&] { host.qp->abandon(); });
  EXPECT_EQ(host.state(), IBV_QPS_RTR);
  EXPECT_EQ(host.modify(IBV_QPS_ERR), 0);
  EXPECT_EQ(host.qp->claim(), EINVAL);
}

TEST_F(QueuePair, ThatExpectsItsPeerDoesNotGoBack) {
  Host host(*engine);
  ASSERT_EQ(host.qp->expect_peer(), 0);
  for (const ibv_qp_state in : {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR}) {
    if (in != IBV_QPS_RTR) EXPECT_EQ(host.modify(in), 0);
    EXPECT_EQ(host.modify(IBV_QPS_INIT), EINVAL);
    EXPECT_EQ(host.modify(IBV_QPS_RTR), EINVAL);
    EXPECT_EQ(host.state(), in);
  }
  EXPECT_EQ(host.modify(IBV_QPS_RESET), 0);
  EXPECT_EQ(host.modify(IBV_QPS_INIT), 0);
}

TEST_F(QueuePair, ReportsAFullQueue) {
  Host host(*engine, {.initiator = false, .depth = 2, .receives = 3});
  const SocketEnds sockets = connect_sockets();
  RawPeer peer(sockets.theirs);
  ASSERT_EQ(host.attach(sockets.ours), 0);
  // A responder may not send yet, so nothing leaves the queue.
  EXPECT_EQ(host.post(SendWr(IBV_WR_SEND)), 0);
  EXPECT_EQ(host.post(SendWr(IBV_WR_SEND)), 0);
  EXPECT_EQ(host.post(SendWr(IBV_WR_SEND)), ENOMEM);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(host.receive(RecvWr()), 0);
  EXPECT_EQ(host.receive(RecvWr()), ENOMEM);
}

TEST_F(QueuePair, KnowsItsConnection) {
  Host host(*engine, {.initiator = true, .rtr = mpa::Rtr::kWrite, .ird = 5, .ord = 6});
  const SocketEnds sockets = connect_sockets();
  RawPeer peer(sockets.theirs);
  ASSERT_EQ(host.attach(sockets.ours), 0);
  EXPECT_EQ(host.state(), IBV_QPS_RTS);
  EXPECT_EQ(to_hex(peer.receive(20)), to_hex(vector("V17-write-zero").octets));
  EXPECT_TRUE(wait_until([&] { return host.heard(); }));
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(host.qp->query(attr, ~0, init), 0);
  EXPECT_EQ(attr.max_dest_rd_atomic, 5);
  EXPECT_EQ(attr.max_rd_atomic, 6);
  EXPECT_EQ(init.qp_type, IBV_QPT_RC);
  EXPECT_EQ(init.cap.max_send_wr, 64u);
  EXPECT_EQ(host.modify(IBV_QPS_RTS), 0);
  // Programs that move their queue pair themselves find it moved.
  EXPECT_EQ(host.modify(IBV_QPS_INIT), 0);
  EXPECT_EQ(host.modify(IBV_QPS_RTR), 0);
  EXPECT_EQ(host.state(), IBV_QPS_RTS);
}

enum class Goodbye { kFin, kReset };
// What is said of a peer that leaves while a receive, and if `reads` a Read, is outstanding; of the
// second one, too, that the queue pair is connected to.
std::string said_of_leaving(engine::Engine& engine, bool reads, Goodbye how) {
  core::forget_explained();
  testing::internal::CaptureStderr();
  {
    Host host(engine, {.initiator = true});
    Buffer to(host.memory, 64);
    for (size_t life = 1; life <= 2; ++life) {
      const SocketEnds sockets = connect_sockets();
      RawPeer peer(sockets.theirs);
      EXPECT_EQ(host.attach(sockets.ours), 0);
      EXPECT_EQ(host.receive(RecvWr({to.sge()})), 0);
      if (reads) {
        EXPECT_EQ(host.post(SendWr(IBV_WR_RDMA_READ, {to.sge()})), 0);
        peer.receive(52);  // all of it: what is left unread makes a reset of the FIN
      }
      const linger at_once{.l_onoff = how == Goodbye::kReset, .l_linger = 0};
      setsockopt(sockets.theirs, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      peer.close();
      EXPECT_TRUE(wait_until([&] {
        return host.received().size() == life && host.sent().size() == (reads ? life : 0u);
      }));
      EXPECT_TRUE(wait_until([&] { return host.modify(IBV_QPS_RESET) == 0; }));
      EXPECT_EQ(host.modify(IBV_QPS_INIT), 0);
    }
  }
  return testing::internal::GetCapturedStderr();
}

TEST_F(QueuePair, SaysOnceThatItsPeerIsLostIfAnythingIsLostByIt) {
  const std::string left = said_of_leaving(*engine, true, Goodbye::kFin);
  EXPECT_EQ(left.find("uiwarp: queue pair 0x00002a has lost its peer (vendor_err 0x40): The peer"),
            0u)
      << left;
  EXPECT_EQ(left.find('\n') + 1, left.size());
  EXPECT_EQ(said_of_leaving(*engine, false, Goodbye::kFin), "");
  for (const bool reads : {false, true}) {
    const std::string broken = said_of_leaving(*engine, reads, Goodbye::kReset);
    EXPECT_EQ(broken.find("uiwarp: queue pair 0x00002a has lost its peer (vendor_err 0x34): The"),
              0u)
        << broken;
    EXPECT_EQ(broken.find('\n') + 1, broken.size());
  }
}

TEST_F(QueuePair, BothEndsFindAConnectionResetThatIsBroken) {
  Host host(*engine, {.initiator = true});
  host.qp->break_connection();  // there is none
  EXPECT_EQ(host.state(), IBV_QPS_INIT);
  const SocketEnds sockets = connect_sockets();
  RawPeer peer(sockets.theirs);
  ASSERT_EQ(host.attach(sockets.ours), 0);
  EXPECT_EQ(host.receive(RecvWr()), 0);
  host.qp->break_connection();
  EXPECT_EQ(host.state(), IBV_QPS_ERR);
  ASSERT_TRUE(host.wait_for_end());
  EXPECT_EQ(host.end_error(), ECONNRESET);
  EXPECT_EQ(host.events(), std::vector{IBV_EVENT_QP_FATAL});
  ASSERT_EQ(host.received().size(), 1u);
  EXPECT_EQ(host.received()[0].status, IBV_WC_WR_FLUSH_ERR);
  uint8_t octet;
  EXPECT_EQ(recv(sockets.theirs, &octet, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  host.qp->break_connection();  // there is none any more
}

TEST_F(QueuePair, TakesOneConnectionAtATime) {
  Host host(*engine);
  const SocketEnds first = connect_sockets(), second = connect_sockets();
  RawPeer peer(first.theirs), other(second.theirs);
  ASSERT_EQ(host.attach(first.ours), 0);
  EXPECT_EQ(host.attach(second.ours), EINVAL);
  EXPECT_TRUE(other.receive_all().empty());  // closed
  peer.finish();
  EXPECT_TRUE(host.wait_for_end());
  const SocketEnds third = connect_sockets();
  RawPeer late(third.theirs);
  EXPECT_EQ(host.attach(third.ours), EINVAL);  // in error
  EXPECT_TRUE(late.receive_all().empty());
}

TEST_F(QueuePair, ConnectsAgainAfterReset) {
  Host host(*engine, {.initiator = true});
  for (int round = 0; round < 3; ++round) {
    const SocketEnds sockets = connect_sockets();
    RawPeer peer(sockets.theirs);
    ASSERT_EQ(host.attach(sockets.ours), 0);
    EXPECT_EQ(host.post(SendWr(IBV_WR_SEND, {}, 7)), 0);
    EXPECT_EQ(to_hex(peer.receive(24)),
              to_hex(fpdu(untagged(3, 0, 1, 0, {}))));  // from MSN 1 again
    EXPECT_EQ(host.receive(RecvWr()), 0);
    EXPECT_TRUE(peer.send(fpdu(untagged(3, 0, 1, 0, {}))));
    ASSERT_TRUE(
        wait_until([&] { return host.received().size() == static_cast<size_t>(round) + 1; }));
    engine->run_sync([&] { host.qp->disconnect(); });
    EXPECT_TRUE(peer.receive_all().empty());
    peer.finish();
    ASSERT_TRUE(wait_until([&] { return host.state() == IBV_QPS_ERR; }));
    ASSERT_TRUE(wait_until([&] { return host.modify(IBV_QPS_RESET) == 0; }));
    ASSERT_EQ(host.modify(IBV_QPS_INIT), 0);
  }
}

// From whatever state: a connection that runs ends, and another may begin.
TEST_F(QueuePair, ResetEndsTheConnection) {
  Host host(*engine, {.initiator = true});
  for (int round = 0; round < 6; ++round) {
    const SocketEnds sockets = connect_sockets();
    RawPeer peer(sockets.theirs);
    ASSERT_EQ(host.attach(sockets.ours), 0);
    ASSERT_EQ(host.receive(RecvWr({}, 1)), 0);
    EXPECT_EQ(host.post(SendWr(IBV_WR_SEND, {}, 2)), 0);
    EXPECT_EQ(to_hex(peer.receive(24)), to_hex(fpdu(untagged(3, 0, 1, 0, {}))));
    if (round % 3 == 1) engine->run_sync([&] { host.qp->disconnect(); });
    if (round % 3 == 2) EXPECT_EQ(host.modify(IBV_QPS_ERR), 0);
    if (round % 2) host.qp->fail();  // whatever comes at the same time
    EXPECT_EQ(host.modify(IBV_QPS_RESET), 0);
    EXPECT_EQ(host.state(), IBV_QPS_RESET);
    EXPECT_TRUE(host.ended());  // and its observer was told
    peer.receive_all();
    EXPECT_EQ(host.modify(IBV_QPS_INIT), 0);
  }
  EXPECT_EQ(host.modify(IBV_QPS_RESET), 0);
  EXPECT_EQ(host.modify(IBV_QPS_RESET), 0);
}

// While others look at what it replaces: ibv_dereg_mr, and a process that is about to end.
TEST_F(QueuePair, SeveralThreadsMoveItAtOnce) {
  Host host(*engine);
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (const ibv_qp_state to : {IBV_QPS_RESET, IBV_QPS_RESET, IBV_QPS_ERR})
    threads.emplace_back([&host, to] {
      for (int i = 0; i < 100; ++i) EXPECT_EQ(host.modify(to), 0);
    });
  std::thread looks([&] {
    while (!over) {
      host.qp->lets_go_of(1, false);
      host.qp->leave();
      sched_yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  over = true;
  looks.join();
}

TEST_F(QueuePair, LooksAtTheOctetsThatCameBehindThePeersFrame) {
  Host host(*engine);
  Buffer to(host.memory, 10);
  ASSERT_EQ(host.receive(RecvWr({to.sge()}, 1)), 0);
  const SocketEnds sockets = connect_sockets();
  RawPeer peer(sockets.theirs);
  Octets all = vector("V03-send5-crc").octets;
  const Octets second = vector("V17-write-zero").octets;
  all.insert(all.end(), second.begin(), second.begin() + 7);
  {
    const Octets short_lived = all;
    ASSERT_EQ(host.attach(sockets.ours, short_lived), 0);
  }
  ASSERT_TRUE(wait_until([&] { return host.received().size() == 1; }));
  EXPECT_EQ(host.received()[0].status, IBV_WC_SUCCESS);
  EXPECT_TRUE(peer.send({second.data() + 7, second.size() - 7}));
  EXPECT_TRUE(wait_until([&] { return host.heard(); }));
  peer.finish();
  EXPECT_TRUE(host.wait_for_end());
  EXPECT_EQ(host.end_error(), 0);
}

TEST_F(QueuePair, GoesAwayRightAfterItWasAttached) {
  for (int i = 0; i < 50; ++i) {
    auto host = std::make_unique<Host>(
        *engine, HostOptions{.initiator = i % 2 == 0, .rtr = mpa::Rtr::kRead});
    const SocketEnds sockets = connect_sockets();
    RawPeer peer(sockets.theirs);
    if (i % 3 == 0) peer.send(vector("V03-send5-crc").octets);
    ASSERT_EQ(host->attach(sockets.ours, i % 5 == 0 ? core::Bytes(vector("V03-send5-crc").octets)
                                                    : core::Bytes()),
              0);
    host.reset();
    peer.finish();
    peer.receive_all();
  }
}

TEST_F(QueuePair, AForgottenObserverIsNotTold) {
  Host host(*engine);
  const SocketEnds sockets = connect_sockets();
  RawPeer peer(sockets.theirs);
  ASSERT_EQ(host.attach(sockets.ours), 0);
  engine->run_sync([&] { host.qp->forget_observer(); });
  ASSERT_EQ(host.receive(RecvWr()), 0);
  peer.finish();
  ASSERT_TRUE(wait_until([&] { return host.received().size() == 1; }));
  EXPECT_TRUE(peer.receive_all().empty());
  EXPECT_FALSE(host.ended());
  EXPECT_FALSE(host.heard());
}

// A peer that neither reads nor closes cannot keep the engine from ending.
TEST_F(QueuePair, TheEngineEndsThoughSocketsLinger) {
  std::vector<std::unique_ptr<RawPeer>> peers;
  std::vector<std::unique_ptr<Host>> hosts;
  for (int i = 0; i < 4; ++i) {
    const SocketEnds sockets = connect_sockets();
    peers.push_back(std::make_unique<RawPeer>(sockets.theirs));
    hosts.push_back(std::make_unique<Host>(*engine, HostOptions{.initiator = true}));
    ASSERT_EQ(hosts.back()->attach(sockets.ours), 0);
    Buffer octets(hosts.back()->memory, pattern(8 << 20));
    if (i % 2) EXPECT_EQ(hosts.back()->post(SendWr(IBV_WR_RDMA_WRITE, {octets.sge()}).to(1, 1)), 0);
    hosts.back()->destroy();
  }
  engine.reset();
}

}  // namespace
}  // namespace uiw::test
