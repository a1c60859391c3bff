// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// UD queue pairs: what comes, what becomes of what should not, and their lives.
#include "ud.h"

#include <fcntl.h>
#include <rdma/ib_user_verbs.h>

#include <atomic>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

#include "core/explain.h"
#include "core/settings.h"
#include "support/descriptor_limit.h"
#include "support/in_child.h"

namespace uiw::verbs {
namespace {

using datagram::Drop;
using test::datagram_of;
using test::kGrh;
using test::kQkey;
using test::Stranger;

class Ud : public test::UdQueuePairs {};

TEST_F(Ud, WhatArrivesIsBehindItsGrh) {
  uiwarp_qp* qp = make_rts();
  Stranger peer;
  ASSERT_EQ(post_receive(qp, 1), 0);
  peer.send(port_of(qp), datagram_of(number_of(qp), peer.number(), kQkey, "hello", 5, 77));
  const ibv_wc wc = wait();
  EXPECT_EQ(wc.wr_id, 1u);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.byte_len, kGrh + 5);
  EXPECT_EQ(wc.src_qp, peer.number());
  EXPECT_EQ(wc.qp_num, number_of(qp));
  EXPECT_EQ(wc.wc_flags, unsigned{IBV_WC_GRH | IBV_WC_WITH_IMM});
  EXPECT_EQ(wc.imm_data, htonl(77));
  EXPECT_EQ(received(1, wc), "hello");
  const uint8_t* ip = place(1) + 20;
  EXPECT_EQ(ip[0], 0x45);
  EXPECT_EQ(core::load_be16(ip + 2), 20 + 8 + 24 + 5);
  EXPECT_EQ(core::load_be32(ip + 12), INADDR_LOOPBACK);
  EXPECT_EQ(core::load_be32(ip + 16), INADDR_LOOPBACK);
  destroy(qp);
}

TEST_F(Ud, TwoTalkToEachOther) {
  uiwarp_qp *a = make_rts(), *b = make_rts();
  for (uint64_t i = 1; i <= 200; ++i) {
    uiwarp_qp *from = i % 2 ? a : b, *to = i % 2 ? b : a;
    const uint64_t at = 1 + i % 31;
    const std::string text = "datagram " + std::to_string(i);
    ASSERT_EQ(post_receive(to, at), 0);
    ASSERT_EQ(send(from, number_of(to), text), 0);
    for (int n = 0; n < 2; ++n) {
      const ibv_wc wc = wait();
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      if (wc.opcode != IBV_WC_RECV) continue;
      EXPECT_EQ(wc.src_qp, number_of(from));
      EXPECT_EQ(received(at, wc), text);
    }
  }
  destroy(a);
  destroy(b);
}

TEST_F(Ud, SpeaksIp6) {
  uiwarp_qp *a = make_rts(), *b = make_rts();
  for (uint32_t type : {0u, 1u}) {
    to_ = make_ah("::1", "::1", type, 33);
    ASSERT_EQ(post_receive(b, 1), 0);
    ASSERT_EQ(send(a, number_of(b), "six", 0), 0);
    const ibv_wc wc = wait();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(received(1, wc), "six");
    const in6_addr own = uiw::test::gid("::1");
    EXPECT_EQ(place(1)[0] >> 4, 6);
    EXPECT_EQ(place(1)[6], type ? 17 : 0x1b);
    EXPECT_EQ(place(1)[7], 33);
    EXPECT_EQ(std::memcmp(place(1) + 8, &own, 16), 0);
    EXPECT_EQ(std::memcmp(place(1) + 24, &own, 16), 0);
  }
  destroy(a);
  destroy(b);
}

// Nothing that a stranger sends takes a receive or touches memory but what says all of the right
// things.
// What a receive is posted for may be written to at any time, as far as the thread sanitizer knows:
// it does not see that the next datagram comes after the look.
__attribute__((no_sanitize("thread"))) bool is_untouched(const uint8_t* memory, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (memory[i] != 0) return false;
  return true;
}

TEST_F(Ud, HostileDatagramsAreDropped) {
  uiwarp_qp *qp = make_rts(), *other = make_ud();
  Stranger peer;
  ASSERT_EQ(post_receive(qp, 1), 0);
  const uint32_t to = number_of(qp);
  const std::string good = datagram_of(to, peer.number(), kQkey, "good");
  struct Expected {
    Drop why;
    uint64_t count;
  };
  const auto hostile = [&](Drop why, uint16_t port, const std::vector<std::string>& all) {
    const uint64_t before = drops(why);
    for (const std::string& datagram : all) peer.send(port, datagram);
    wait_for_drops(why, before + all.size());
  };
  std::vector<std::string> malformed;
  for (size_t size = 0; size < datagram::kHeaderSize; ++size)
    malformed.push_back(good.substr(0, size));
  for (size_t i = 0; i < 8; ++i) {
    malformed.push_back(good);
    malformed.back()[i] = static_cast<char>(~malformed.back()[i]);
  }
  malformed.push_back(good + std::string(4096 - 4 + 1, 'x'));
  malformed.push_back(good + std::string(60000, 'x'));
  hostile(Drop::kMalformed, port_of(qp), malformed);
  hostile(Drop::kForged, port_of(qp),
          {datagram_of(to, number_of(other), kQkey, "another's number"),
           datagram_of(to, to, kQkey, "its own"), datagram_of(to, 7, kQkey, "port 0")});
  hostile(Drop::kNoQueuePair, port_of(qp),
          {datagram_of(to ^ 0x80, peer.number(), kQkey, "no such index"),
           datagram_of(to ^ 0x100, peer.number(), kQkey, "another port"),
           datagram_of(core::kGroupQpNumber, peer.number(), kQkey, "a group's"),
           datagram_of(0, peer.number(), kQkey, "0")});
  hostile(Drop::kQkey, port_of(qp),
          {datagram_of(to, peer.number(), kQkey + 1, "x"), datagram_of(to, peer.number(), 0, "x"),
           datagram_of(to, peer.number(), kQkey | 1u << 31, "x")});
  hostile(Drop::kNotReceiving, port_of(other),
          {datagram_of(number_of(other), peer.number(), 0, "x")});
  expect_none();
  EXPECT_TRUE(is_untouched(place(1), kPlace));
  peer.send(port_of(qp), good);
  const ibv_wc wc = wait();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received(1, wc), "good");
  hostile(Drop::kNoReceive, port_of(qp), {good});
  EXPECT_EQ(state_of(qp), IBV_QPS_RTS);
  destroy(qp);
  destroy(other);
}

TEST_F(Ud, TheLargestArrivesWhole) {
  uiwarp_qp *a = make_rts(), *b = make_rts();
  const uint32_t mtu = context_->device->path_mtu.load();
  ASSERT_EQ(post_receive(b, 1), 0);
  std::string text(mtu, ' ');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  ASSERT_EQ(send(a, number_of(b), text, 0), 0);
  const ibv_wc wc = wait();
  EXPECT_EQ(wc.byte_len, kGrh + mtu);
  EXPECT_EQ(received(1, wc), text);
  destroy(a);
  destroy(b);
}

TEST_F(Ud, OneLongerThanItsReceiveIsDroppedAndTheReceiveStays) {
  uiwarp_qp* qp = make_rts();
  Stranger peer;
  ASSERT_EQ(post_receive(qp, 1, kGrh + 4), 0);
  ASSERT_EQ(post_receive(qp, 2, kGrh + 4), 0);
  ASSERT_EQ(post_receive(qp, 3), 0);
  peer.send(port_of(qp), datagram_of(number_of(qp), peer.number(), kQkey, "four"));
  EXPECT_EQ(wait().status, IBV_WC_SUCCESS);
  const uint64_t before = drops(Drop::kTooLong);
  peer.send(port_of(qp), datagram_of(number_of(qp), peer.number(), kQkey, "five!"));
  wait_for_drops(Drop::kTooLong, before + 1);
  expect_none();
  EXPECT_EQ(state_of(qp), IBV_QPS_RTS);
  peer.send(port_of(qp), datagram_of(number_of(qp), peer.number(), kQkey, "well"));
  const ibv_wc wc = wait();
  EXPECT_EQ(wc.wr_id, 2u);
  EXPECT_EQ(received(2, wc), "well");
  destroy(qp);
}

TEST_F(Ud, AReceiveWithoutItsMemoryEndsTheReceiver) {
  uiwarp_qp* qp = make_rts();
  Stranger peer;
  ibv_sge sge{reinterpret_cast<uintptr_t>(place(1)), 100, lkey_ ^ 1};
  ibv_recv_wr wr{1, nullptr, &sge, 1}, *bad;
  ASSERT_EQ(uiwarp_qp_post_recv(qp, &wr, &bad), 0);
  peer.send(port_of(qp), datagram_of(number_of(qp), peer.number(), kQkey, "x"));
  EXPECT_EQ(wait().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(state_of(qp), IBV_QPS_ERR);
  destroy(qp);
}

TEST_F(Ud, ReceivesOfInitAreKeptAndResetForgetsThem) {
  uiwarp_qp* qp = make_ud();
  Stranger peer;
  to_init(qp);
  ASSERT_EQ(post_receive(qp, 1), 0);
  const std::string datagram = datagram_of(number_of(qp), peer.number(), kQkey, "x");
  const uint64_t before = drops(Drop::kNotReceiving);
  peer.send(port_of(qp), datagram);
  wait_for_drops(Drop::kNotReceiving, before + 1);
  EXPECT_EQ(modify(qp, IBV_QPS_RTR), 0);
  peer.send(port_of(qp), datagram);
  EXPECT_EQ(wait().wr_id, 1u);
  // Some that are not taken, and some whose completion is not polled: what comes behind them shows
  // that they are there.
  for (uint64_t i = 0; i < 16; ++i) ASSERT_EQ(post_receive(qp, 2), 0);
  for (int i = 0; i < 3; ++i) peer.send(port_of(qp), datagram);
  const uint64_t wrong = drops(Drop::kQkey);
  peer.send(port_of(qp), datagram_of(number_of(qp), peer.number(), kQkey + 1, "x"));
  wait_for_drops(Drop::kQkey, wrong + 1);
  EXPECT_EQ(modify(qp, IBV_QPS_RESET), 0);
  expect_none();
  EXPECT_EQ(state_of(qp), IBV_QPS_RESET);
  to_rts(qp);
  for (uint64_t i = 0; i < 16; ++i) ASSERT_EQ(post_receive(qp, 3), 0) << "all places are free";
  EXPECT_EQ(post_receive(qp, 3), ENOMEM);
  peer.send(port_of(qp), datagram);
  EXPECT_EQ(wait().wr_id, 3u);
  destroy(qp);
}

TEST_F(Ud, TheQkeyChangesAndIsTold) {
  uiwarp_qp* qp = make_ud();
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  attr.qkey = 5;
  EXPECT_EQ(uiwarp_qp_modify(qp, &attr, IBV_QP_QKEY), EINVAL) << "RESET";
  to_rts(qp, 0x80000005);
  ASSERT_EQ(uiwarp_qp_query(qp, &attr, IBV_QP_QKEY, &init), 0);
  EXPECT_EQ(attr.qkey, 0x80000005u);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(init.qp_type, IBV_QPT_UD);
  attr.qkey = 6;
  EXPECT_EQ(uiwarp_qp_modify(qp, &attr, IBV_QP_QKEY), 0);
  ASSERT_EQ(uiwarp_qp_query(qp, &attr, IBV_QP_QKEY, &init), 0);
  EXPECT_EQ(attr.qkey, 6u);
  EXPECT_EQ(uiwarp_qp_modify(qp, &attr, IBV_QP_AV), EINVAL);
  EXPECT_EQ(uiwarp_qp_modify(qp, &attr, IBV_QP_DEST_QPN), EINVAL);
  destroy(qp);
}

TEST_F(Ud, SharedReceivesAreAnybodysAndCrossTheirLimit) {
  int names[2];
  uiwarp_srq* srq = make_srq(4, 1, &names[0]);
  uiwarp_qp *a = make_rts(srq, &names[1]), *b = make_rts(srq), *rc = make_qp(cq_, srq);
  Stranger peer;
  ibv_srq_attr limit{};
  limit.srq_limit = 2;
  const auto post_shared = [&](uint64_t wr_id) {
    ibv_sge sge{reinterpret_cast<uintptr_t>(place(wr_id)), kPlace, lkey_};
    ibv_recv_wr wr{wr_id, nullptr, &sge, 1}, *bad;
    return uiwarp_srq_post_recv(srq, &wr, &bad);
  };
  for (uint64_t i = 1; i <= 4; ++i) ASSERT_EQ(post_shared(i), 0);
  ASSERT_EQ(uiwarp_srq_modify(srq, &limit, IBV_SRQ_LIMIT), 0);
  for (uint64_t i = 1; i <= 4; ++i) {
    uiwarp_qp* const to = i % 2 ? a : b;
    peer.send(port_of(to), datagram_of(number_of(to), peer.number(), kQkey, std::to_string(i)));
    const ibv_wc wc = wait();
    EXPECT_EQ(wc.qp_num, number_of(to));
    EXPECT_EQ(wc.wr_id, i);
    EXPECT_EQ(received(i, wc), std::to_string(i));
  }
  const uint64_t before = drops(Drop::kNoReceive);
  peer.send(port_of(a), datagram_of(number_of(a), peer.number(), kQkey, "one too many"));
  wait_for_drops(Drop::kNoReceive, before + 1);
  EXPECT_EQ(post_shared(5), 0);
  EXPECT_EQ(post_receive(a, 6), EINVAL) << "it has no receive queue of its own";
  to_error(a);
  expect_none();  // shared receives stay
  const auto events = test::read_all<ib_uverbs_async_event_desc>(async_fd_);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].event_type, unsigned{IBV_EVENT_SRQ_LIMIT_REACHED});
  EXPECT_EQ(events[0].element, reinterpret_cast<uintptr_t>(&names[0]));
  EXPECT_EQ(events[1].event_type, unsigned{IBV_EVENT_QP_LAST_WQE_REACHED});
  EXPECT_EQ(events[1].element, reinterpret_cast<uintptr_t>(&names[1]));
  peer.send(port_of(b), datagram_of(number_of(b), peer.number(), kQkey, "b lives"));
  EXPECT_EQ(received(5, wait()), "b lives");
  destroy(a, 1);
  destroy(b);
  destroy(rc);
  destroy(srq, 1);
}

TEST_F(Ud, TheDoorIsThereWhileSomebodyNeedsIt) {
  uiwarp_qp *a = make_ud(), *b = make_ud();
  ASSERT_EQ(port_of(a), port_of(b));
  const uint16_t port = port_of(a);
  destroy(a);
  EXPECT_FALSE(Stranger(port).bound());
  destroy(b);
  while (!Stranger(port).bound()) {  // the kernel may keep it for a moment
  }
}

// Also while a thread busy-polls, and receives for it.
TEST_F(Ud, TheNextOneGetsThePortOfTheLast) {
  std::atomic<bool> over{false};
  std::thread poller([&] {
    ibv_wc wc;
    while (!over) uiwarp_cq_poll(cq_, 1, &wc);
  });
  uint16_t port = 0;
  for (int round = 0; round < 60 && !HasFailure(); ++round) {
    uiwarp_qp* const qp = make_ud();
    ASSERT_TRUE(qp);
    to_rts(qp);
    if (round > 0) {
      EXPECT_EQ(port_of(qp), port);
    }
    port = port_of(qp);
    for (int i = 0; i < 15; ++i) {
      ASSERT_EQ(post_receive(qp, 1), 0);
      ASSERT_EQ(send(qp, number_of(qp), "x", 0), 0);
      usleep(50);
    }
    destroy(qp);
  }
  over = true;
  poller.join();
}

// However often a program tries.
TEST_F(Ud, WhyThereIsNoPortIsSaidOnce) {
  uiwarp_qp_init init = qp_init(cq_);
  init.qp_type = IBV_QPT_UD;
  core::forget_explained();
  testing::internal::CaptureStderr();
  {
    const uiw::test::DescriptorLimit none(0);
    uiwarp_qp* qp = nullptr;
    uint32_t qp_num = 0;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(uiwarp_qp_create(pd_, &init, &qp, &qp_num), EMFILE);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  const size_t at = said.find("no port for a UD queue pair (Too many open files)");
  EXPECT_NE(at, std::string::npos) << said;
  EXPECT_EQ(said.find("no port", at + 1), std::string::npos) << said;
}

TEST_F(Ud, ItsPortIsNobodyElses) {
  uiwarp_qp* rc = make_qp(cq_);
  std::optional<Stranger> other;
  do other.emplace(port_of(rc));
  while (!other->bound());  // that of the test before may be there for a moment
  uiwarp_qp* ud = make_ud();
  ASSERT_TRUE(ud);
  EXPECT_NE(port_of(ud), port_of(rc));
  EXPECT_FALSE(Stranger(port_of(ud)).bound());
  destroy(ud);
  destroy(rc);
}

// Whoever busy-polls receives by itself, until it arms: then the engine does again.
TEST_F(Ud, APollerReceivesByItselfUntilItArms) {
  if (!core::settings().poll_progress) GTEST_SKIP() << "UIWARP_POLL_PROGRESS=off";
  uiwarp_qp *a = make_rts(), *b = make_rts();
  ASSERT_EQ(a->door, b->door);
  const auto is_leased = [&] {
    bool leased = false;
    context_->engine->run_sync([&] { leased = a->door->is_leased(); });
    return leased;
  };
  uint64_t exchanged = 0;
  const auto exchange = [&] {
    uiwarp_qp *from = exchanged % 2 ? a : b, *to = exchanged % 2 ? b : a;
    ASSERT_EQ(post_receive(to, 1), 0);
    ASSERT_EQ(send(from, number_of(to), std::to_string(++exchanged)), 0);
    EXPECT_EQ(received(1, wait_for_both()), std::to_string(exchanged));
  };
  do {
    for (int i = 0; i < 16; ++i) exchange();
  } while (!is_leased() && !HasFailure());
  for (int i = 0; i < 1000; ++i) exchange();
  ASSERT_EQ(uiwarp_cq_arm(cq_, 0), 0);
  while (is_leased()) {
  }
  exchange();
  destroy(a);
  destroy(b);
}

// The queue whose pollers receive goes first.
TEST_F(Ud, AQueueMayGoWhileItsPollersReceiveForOthers) {
  uiwarp_qp* stays = make_rts();
  const uint16_t port = port_of(stays);
  for (int round = 0; round < 50; ++round) {
    uiwarp_cq* const first = std::exchange(cq_, make_cq(256));
    uiwarp_qp* const qp = make_rts();
    ASSERT_EQ(port_of(qp), port);
    for (uint64_t i = 1; i <= 40; ++i) {
      ASSERT_EQ(post_receive(qp, 1), 0);
      ASSERT_EQ(send(qp, number_of(qp), std::to_string(i)), 0);
      EXPECT_EQ(received(1, wait_for_both()), std::to_string(i));
    }
    destroy(qp);
    destroy(std::exchange(cq_, first));
    ASSERT_EQ(post_receive(stays, 2), 0);
    ASSERT_EQ(send(stays, number_of(stays), "still here"), 0);
    EXPECT_EQ(received(2, wait_for_both()), "still here");
  }
  destroy(stays);
}

TEST_F(Ud, AChildHasNothingOfIt) {
  uiwarp_qp* qp = make_rts();
  ASSERT_EQ(post_receive(qp, 1), 0);
  const ibv_send_wr wr = send_wr(number_of(qp), 1);
  uiw::test::in_child([&] {
    if (post(qp, wr) != ENODEV) return 1;
    if (post_receive(qp, 2) != ENODEV) return 2;
    if (modify(qp, IBV_QPS_ERR) != ENODEV) return 3;
    uint32_t events;
    return uiwarp_qp_destroy(qp, &events) == 0 ? 0 : 4;
  });
  EXPECT_EQ(post(qp, wr), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(wait().status, IBV_WC_SUCCESS);
  destroy(qp);
}

TEST_F(Ud, IsNotForTheIwarpFace) {
  context_->face = &device::face(core::Face::kIwarp);
  uiwarp_qp_init init = qp_init(cq_);
  init.qp_type = IBV_QPT_UD;
  uiwarp_qp* qp = nullptr;
  uint32_t qp_num = 0;
  EXPECT_EQ(uiwarp_qp_create(pd_, &init, &qp, &qp_num), EOPNOTSUPP);
}

}  // namespace
}  // namespace uiw::verbs
