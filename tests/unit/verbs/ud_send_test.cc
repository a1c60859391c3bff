// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// UD queue pairs: what is posted, and what goes over the wire for it.
#include <gmock/gmock.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "ud.h"

namespace uiw::verbs {
namespace {

using test::datagram_of;
using test::kQkey;
using test::Stranger;

class UdSends : public test::UdQueuePairs {};

TEST_F(UdSends, WhatIsPostedGoesOverTheWireSo) {
  uiwarp_qp* qp = make_rts();
  Stranger peer;
  const uint32_t to = core::number_of(peer.port(), 5);
  ibv_send_wr wr = send_wr(to, 5);
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.imm_data = htonl(0xdeadbeef);
  wr.send_flags |= IBV_SEND_SOLICITED;
  std::memcpy(place(0), "hello", 5);
  ASSERT_EQ(post(qp, wr), 0);
  sockaddr_in6 from{};
  EXPECT_EQ(peer.receive(&from), datagram_of(to, number_of(qp), kQkey, "hello", 7, 0xdeadbeef));
  EXPECT_EQ(ntohs(from.sin6_port), port_of(qp));
  const ibv_wc wc = wait();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_SEND);
  EXPECT_EQ(wc.qp_num, number_of(qp));
  // With a GID of the other type, a controlled Q_Key, no data.
  to_ = make_ah("::ffff:127.0.0.1", "::ffff:127.0.0.1", 0);
  wr = send_wr(to, 0, 0);
  wr.wr.ud.remote_qkey = 0x80000001;
  ASSERT_EQ(post(qp, wr), 0);
  EXPECT_EQ(peer.receive(), datagram_of(to, number_of(qp), kQkey, "", 0));
  expect_none();  // not signaled
  destroy(qp);
}

TEST_F(UdSends, LeavesFromTheAddressAndWithTheHopLimitOfItsHandle) {
  uiwarp_qp* qp = make_rts();
  Stranger peer;
  const int on = 1;
  setsockopt(peer.fd(), IPPROTO_IP, IP_RECVTTL, &on, sizeof on);
  to_ = make_ah("::ffff:127.0.0.1", "::ffff:127.1.2.3", 1, 17);
  ASSERT_EQ(send(qp, core::number_of(peer.port(), 1), "x", 0), 0);
  char byte[64], control[64];
  iovec place{byte, sizeof byte};
  sockaddr_in6 from{};
  msghdr message{&from, sizeof from, &place, 1, control, sizeof control, 0};
  ASSERT_EQ(recvmsg(peer.fd(), &message, 0), 25);
  const in6_addr own = uiw::test::gid("::ffff:127.0.0.1");
  EXPECT_EQ(std::memcmp(&from.sin6_addr, &own, sizeof own), 0);
  const cmsghdr* ttl = CMSG_FIRSTHDR(&message);
  ASSERT_TRUE(ttl && ttl->cmsg_type == IP_TTL);
  EXPECT_EQ(*CMSG_DATA(ttl), 17);
  destroy(qp);
}

TEST_F(UdSends, ABadRequestEndsTheSenderAndWhatIsBehindIt) {
  const uint32_t mtu = context_->device->path_mtu.load();
  const struct {
    uint32_t length, lkey;
    uint64_t address;
    ibv_wc_status status;
    core::Cause cause;
    const char* said;
  } rows[] = {
      {mtu + 1, lkey_, 0, IBV_WC_LOC_LEN_ERR, core::Cause::kDatagramTooLong,
       "bytes, the port's active_mtu is"},
      {5, lkey_ ^ 1, 0, IBV_WC_LOC_PROT_ERR, core::Cause::kKeyUnknown,
       "no memory region has this key; the nearest"},
      {5, 0, 0, IBV_WC_LOC_PROT_ERR, core::Cause::kKeyUnknown, "(lkey 0x00000000"},
      {5, lkey_, sizeof memory_ - 4, IBV_WC_LOC_PROT_ERR, core::Cause::kOutOfBounds,
       "it ends 1 bytes behind the region"},
  };
  Stranger peer;
  const uint32_t to = core::number_of(peer.port(), 1);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.length);
    uiwarp_qp* qp = make_rts();
    ASSERT_EQ(post_receive(qp, 9), 0);
    ibv_sge bad_sge{reinterpret_cast<uintptr_t>(memory_) + row.address, row.length, row.lkey};
    ibv_send_wr good = send_wr(to, 5, 0), bad = good, behind = good, *failed;
    good.wr_id = 1;
    bad.wr_id = 2;
    behind.wr_id = 3;
    bad.sg_list = &bad_sge;
    good.next = &bad;
    bad.next = &behind;
    testing::internal::CaptureStderr();
    EXPECT_EQ(uiwarp_qp_post_send(qp, &good, &failed), 0);
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                testing::AllOf(testing::HasSubstr("wr_id 0x2"), testing::HasSubstr(row.said)));
    EXPECT_EQ(peer.receive().size(), 24u + 5);
    ibv_wc wc = wait();  // the good one is not signaled
    EXPECT_EQ(wc.wr_id, 2u);
    EXPECT_EQ(wc.status, row.status);
    const auto cause = static_cast<uint32_t>(row.cause);
    EXPECT_EQ(wc.vendor_err, cause);
    wc = wait();
    EXPECT_EQ(wc.wr_id, 9u);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(wc.vendor_err, cause);
    wc = wait();
    EXPECT_EQ(wc.wr_id, 3u);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(wc.vendor_err, cause);
    EXPECT_EQ(state_of(qp), IBV_QPS_ERR);
    // From here on all is flushed.
    EXPECT_EQ(post(qp, behind), 0);
    EXPECT_EQ(wait().status, IBV_WC_WR_FLUSH_ERR);
    ASSERT_EQ(post_receive(qp, 10), 0);
    EXPECT_EQ(wait().status, IBV_WC_WR_FLUSH_ERR);
    destroy(qp);
  }
}

TEST_F(UdSends, PostsAreRefused) {
  uiwarp_qp* qp = make_ud();
  const ibv_send_wr good = send_wr(number_of(qp), 1);
  EXPECT_EQ(post(qp, good), EINVAL) << "RESET";
  EXPECT_EQ(post_receive(qp, 1), EINVAL) << "RESET";
  to_init(qp);
  EXPECT_EQ(post(qp, good), EINVAL) << "INIT";
  EXPECT_EQ(modify(qp, IBV_QPS_RTR), 0);
  EXPECT_EQ(post(qp, good), EINVAL) << "RTR";
  EXPECT_EQ(modify(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN), 0);
  ibv_send_wr bad = good;
  bad.wr.ud.ah = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_EQ(post(qp, bad), EINVAL);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("wr.ud.ah is null"));
  uiwarp_pd* other = nullptr;
  ASSERT_EQ(uiwarp_pd_alloc(context_, &other), 0);
  bad.wr.ud.ah = const_cast<ibv_ah*>(make_ah("::ffff:127.0.0.1", "::ffff:127.0.0.1", 0, 0, other));
  EXPECT_EQ(post(qp, bad), EINVAL);
  for (ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_INV}) {
    bad = good;
    bad.opcode = opcode;
    EXPECT_EQ(post(qp, bad), EINVAL) << opcode;
  }
  // What comes before a bad one goes out.
  ibv_send_wr first = good;
  first.next = &bad;
  ibv_send_wr* failed = nullptr;
  EXPECT_EQ(uiwarp_qp_post_send(qp, &first, &failed), EINVAL);
  EXPECT_EQ(failed, &bad);
  EXPECT_EQ(wait().status, IBV_WC_SUCCESS);
  destroy(qp);
  EXPECT_EQ(uiwarp_ah_destroy(ahs_.back()), 0);
  ahs_.pop_back();
  EXPECT_EQ(uiwarp_pd_dealloc(other), 0);
}

// RESET and a post wait for a batch that holds the queue, RESET most likely first. A post that
// comes behind it is refused, and of one before it no completion is left.
TEST_F(UdSends, APostThatWaitedForResetIsRefused) {
  uiwarp_qp* qp = make_ud();
  const ibv_send_wr wr = send_wr(1u << 23, 1);
  for (int round = 0; round < 10 && !HasFailure(); ++round) {
    to_rts(qp);
    uiwarp_qp_batch_begin(qp);
    std::thread reset([&] { EXPECT_EQ(modify(qp, IBV_QPS_RESET), 0); });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    int error = 0;
    std::thread poster([&] { error = post(qp, wr); });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(uiwarp_qp_batch_end(qp, 0), 0);
    reset.join();
    poster.join();
    EXPECT_TRUE(error == 0 || error == EINVAL) << error;
    EXPECT_EQ(state_of(qp), IBV_QPS_RESET);
    expect_none();
  }
  destroy(qp);
}

TEST_F(UdSends, AQueueIsFullUntilACompletionIsPolled) {
  uiwarp_qp* qp = make_rts();
  for (int i = 0; i < 16; ++i)
    ASSERT_EQ(send(qp, 1u << 23, "x", i == 14 ? IBV_SEND_SIGNALED : 0), 0);
  EXPECT_EQ(send(qp, 1u << 23, "x"), ENOMEM);
  EXPECT_EQ(wait().status, IBV_WC_SUCCESS);
  for (int i = 0; i < 15; ++i) ASSERT_EQ(send(qp, 1u << 23, "x", 0), 0);
  EXPECT_EQ(send(qp, 1u << 23, "x"), ENOMEM);
  destroy(qp);
}

// A list longer than one system call takes, with a completion in the middle.
TEST_F(UdSends, AListArrivesInOrder) {
  uiwarp_qp *a = make_ud(nullptr, 64), *b = make_ud(nullptr, 64);
  to_rts(a);
  to_rts(b);
  for (uint64_t i = 1; i < kPlaces; ++i) ASSERT_EQ(post_receive(b, i), 0);
  std::vector<ibv_send_wr> list(kPlaces - 1);
  std::vector<ibv_sge> sges(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    place(0)[i] = static_cast<uint8_t>('A' + i);
    list[i] = send_wr(number_of(b), 1, i == 20 ? IBV_SEND_SIGNALED : 0);
    sges[i] = {reinterpret_cast<uintptr_t>(place(0)) + i, 1, lkey_};
    list[i].sg_list = &sges[i];
    list[i].wr_id = 100 + i;
    if (i > 0) list[i - 1].next = &list[i];
  }
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(uiwarp_qp_post_send(a, list.data(), &bad), 0);
  uint64_t next = 1;
  for (size_t i = 0; i < list.size() + 1; ++i) {
    const ibv_wc wc = wait();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    if (wc.opcode == IBV_WC_SEND) {
      EXPECT_EQ(wc.wr_id, 120u);
      continue;
    }
    EXPECT_EQ(wc.wr_id, next);
    EXPECT_EQ(received(wc.wr_id, wc), std::string(1, static_cast<char>('A' + next - 1)));
    ++next;
  }
  destroy(a);
  destroy(b);
}

TEST_F(UdSends, InlineBytesAndManyPiecesArriveTogether) {
  uiwarp_qp *a = make_rts(), *b = make_rts();
  char text[] = "inline bytes";
  for (unsigned flags : {0u, unsigned{IBV_SEND_INLINE}}) {
    ASSERT_EQ(post_receive(b, 1), 0);
    std::memcpy(place(0), "outline", 7);
    ibv_send_wr wr = send_wr(number_of(b), 0, flags);
    ibv_sge sges[2] = {{reinterpret_cast<uintptr_t>(place(0)), 3, lkey_},
                       {reinterpret_cast<uintptr_t>(place(0)) + 3, 4, lkey_}};
    if (flags) sges[1] = {reinterpret_cast<uintptr_t>(text), 6, 0};
    wr.sg_list = sges;
    wr.num_sge = 2;
    ASSERT_EQ(post(a, wr), 0);
    EXPECT_EQ(received(1, wait()), flags ? "outinline" : "outline");
  }
  destroy(a);
  destroy(b);
}

TEST_F(UdSends, ABatchIsPostedTogetherOrNotAtAll) {
  uiwarp_qp* qp = make_rts();
  Stranger peer;
  const uint32_t to = core::number_of(peer.port(), 1);
  std::memcpy(place(0), "abc", 3);
  ibv_send_wr with = send_wr(to, 1), without = with;
  without.wr.ud = {};
  const auto add_two = [&] {
    uiwarp_qp_batch_begin(qp);
    EXPECT_EQ(uiwarp_qp_batch_add(qp, &with), 0);
    EXPECT_EQ(uiwarp_qp_batch_add(qp, &without), 0);
  };
  add_two();
  EXPECT_EQ(uiwarp_qp_batch_end(qp, 1), EINVAL) << "the second has no address handle";
  add_two();
  EXPECT_EQ(uiwarp_qp_batch_address(qp, to_, to, kQkey), 0);
  EXPECT_EQ(uiwarp_qp_batch_end(qp, 0), 0);
  expect_none();
  add_two();
  EXPECT_EQ(uiwarp_qp_batch_address(qp, to_, to + 1, kQkey + 1), 0);
  EXPECT_EQ(uiwarp_qp_batch_end(qp, 1), 0);
  EXPECT_EQ(peer.receive(), datagram_of(to, number_of(qp), kQkey, "a"));
  EXPECT_EQ(peer.receive(), datagram_of(to + 1, number_of(qp), kQkey + 1, "a"));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(wait().status, IBV_WC_SUCCESS);
  destroy(qp);
}

}  // namespace
}  // namespace uiw::verbs
