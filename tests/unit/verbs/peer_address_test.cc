// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Peers as ibv_modify_qp names them: which can be reached, and how long they are waited for.
#include "verbs/peer_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "core/gid.h"
#include "device/gid_table.h"
#include "support/gid.h"

namespace uiw::verbs {
namespace {

using test::gid;

// Queue pair 5 of the loopback device is to be connected to queue pair 7 of `peer`.
class PeerAddress : public ::testing::Test {
 protected:
  void SetUp() override {
    loopback_ = device::find_by_name("uiw_lo");
    ASSERT_NE(loopback_, nullptr);
  }
  core::Result<rendezvous::PeerSearchParams> ask(const char* own, const char* peer, int more = 0) {
    ibv_qp_attr attr{};
    attr.rq_psn = 0x123456;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.sgid_index = index_of(own);
    const in6_addr address = gid(peer);
    memcpy(&attr.ah_attr.grh.dgid, &address, sizeof address);
    attr.dest_qp_num = 7;
    core::Told told;
    core::forget_explained();
    testing::internal::CaptureStderr();
    auto answer =
        peer_search_params(*loopback_, *face_, 5, attr, IBV_QP_AV | IBV_QP_DEST_QPN | more, told);
    said_ = testing::internal::GetCapturedStderr();
    return answer;
  }

  // The last of its indices: of all types that the face has, the last one.
  uint8_t index_of(const char* own) const {
    const in6_addr wanted = gid(own);
    const device::State state = device::state_of(*loopback_);
    int found = -1;
    for (uint32_t i = 0; const auto entry = device::gid_at(state, *face_, i); ++i)
      if (memcmp(&entry->address, &wanted, sizeof wanted) == 0) found = static_cast<int>(i);
    EXPECT_GE(found, 0) << "uiw_lo has no GID " << own;
    return static_cast<uint8_t>(found);
  }

  const device::Device* loopback_ = nullptr;
  const device::Face* face_ = &device::face(core::Face::kIwarp);
  std::string said_;
};

constexpr char kLo4[] = "::ffff:127.0.0.1", kLo6[] = "::1";

TEST_F(PeerAddress, OfThisHost) {
  auto answer = ask(kLo4, kLo4);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->own, (rendezvous::Name{gid(kLo4), 5}));
  EXPECT_EQ(answer->peer, (rendezvous::Name{gid(kLo4), 7}));
  EXPECT_EQ(said_, "");
}

TEST_F(PeerAddress, ByAGidOfAnyType) {
  face_ = &device::face(core::Face::kRoce);
  for (const char* own : {kLo4, kLo6}) {
    EXPECT_EQ(index_of(own) % 2, 1);
    auto answer = ask(own, own);
    ASSERT_TRUE(answer) << own;
    EXPECT_EQ(answer->own, (rendezvous::Name{gid(own), 5}));
  }
}

TEST_F(PeerAddress, WithThePsnThatWasSet) {
  EXPECT_EQ(ask(kLo4, kLo4, IBV_QP_RQ_PSN)->rq_psn, 0x123456u);
  EXPECT_EQ(ask(kLo4, kLo4)->rq_psn, 0u);
}

TEST_F(PeerAddress, OfTheOtherFamilyIsNotReached) {
  for (const auto& [own, peer] : {std::pair{kLo4, kLo6}, std::pair{kLo6, kLo4}}) {
    EXPECT_EQ(ask(own, peer).error(), EINVAL) << peer;
    EXPECT_THAT(said_, testing::HasSubstr("GID indices of one kind"));
    const auto text = [](const char* address) {
      return std::string(core::text_of(gid(address)).text);
    };
    EXPECT_THAT(said_, testing::HasSubstr("ibv_modify_qp to RTR: queue pair 0x000005: sgid_index " +
                                          std::to_string(index_of(own)) + ", which is " +
                                          text(own) + ", and dgid " + text(peer) + ": "));
  }
}

TEST_F(PeerAddress, OfAnotherHostIsNotReachedFromLoopback) {
  for (const auto& [own, peer] :
       {std::pair{kLo4, "::ffff:203.0.113.77"}, std::pair{kLo6, "2001:db8::77"}}) {
    EXPECT_EQ(ask(own, peer).error(), EINVAL) << peer;
    EXPECT_THAT(said_, testing::HasSubstr("choose another device"));
  }
}

TEST_F(PeerAddress, ThatIsNoAddressOfAHost) {
  for (const auto& [own, peer] :
       {std::pair{kLo6, "::"}, std::pair{kLo6, "ff02::1"}, std::pair{kLo4, "::ffff:0.0.0.0"},
        std::pair{kLo4, "::ffff:239.1.2.3"}}) {
    EXPECT_EQ(ask(own, peer).error(), EINVAL) << peer;
    EXPECT_THAT(said_, testing::HasSubstr("not the address of a host"));
  }
}

TEST(PeerTimeLimit, IsInfinibandsButASecondAtLeast) {
  const auto time_limit = [](uint8_t timeout, uint8_t retries) {
    ibv_qp_attr attr{};
    attr.timeout = timeout;
    attr.retry_cnt = retries;
    return peer_time_limit(attr);
  };
  EXPECT_EQ(time_limit(0, 7), 0);  // for ever
  EXPECT_EQ(time_limit(1, 0), core::kSecond);
  EXPECT_EQ(time_limit(12, 7), core::kSecond);
  EXPECT_EQ(time_limit(14, 7), 4 * 8 * (core::Nanoseconds{4096} << 14));
  EXPECT_EQ(time_limit(20, 0), 4 * (core::Nanoseconds{4096} << 20));
  EXPECT_EQ(time_limit(20, 2), 4 * 3 * (core::Nanoseconds{4096} << 20));
  EXPECT_EQ(time_limit(31, 7), 4 * 8 * (core::Nanoseconds{4096} << 31));
}

TEST_F(PeerAddress, ANumberWithItsBytesInTheOtherOrderIsSuspected) {
  core::Told told;
  core::forget_explained();
  ibv_qp_attr attr{};
  attr.dest_qp_num = __builtin_bswap32(0x92117d);
  testing::internal::CaptureStderr();
  EXPECT_FALSE(peer_search_params(*loopback_, *face_, 5, attr, IBV_QP_AV | IBV_QP_DEST_QPN, told));
  EXPECT_NE(testing::internal::GetCapturedStderr().find(
                "dest_qp_num is 0x7d119200, and a queue pair number has 24 bits: with its bytes in "
                "the other order it is one, 0x92117d"),
            std::string::npos);
}

TEST_F(PeerAddress, EachReasonIsSaidOnceForAQueuePair) {
  core::Told told;
  core::forget_explained();
  ibv_qp_attr attr{};
  const auto ask_again = [&](int mask) {
    EXPECT_FALSE(peer_search_params(*loopback_, *face_, 5, attr, mask, told));
  };
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) {
    attr.dest_qp_num = 7;
    ask_again(IBV_QP_AV);
    attr.dest_qp_num = 1u << 24;
    ask_again(IBV_QP_AV | IBV_QP_DEST_QPN);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "uiwarp: ibv_modify_qp to RTR: queue pair 0x000005: address vector and destination "
            "queue pair number go "
            "together\nuiwarp: ibv_modify_qp to RTR: queue pair 0x000005: a queue pair number has "
            "24 bits\n");
}

}  // namespace
}  // namespace uiw::verbs
