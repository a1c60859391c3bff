// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Peers as ibv_modify_qp names them: which can be reached, and how long they are waited for.
#include "verbs/peer_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

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
    gids_ = device::state_of(*loopback_).gids;
  }
  core::Result<rendezvous::PeerSearchParams> ask(const char* own, const char* peer, int more = 0) {
    ibv_qp_attr attr{};
    attr.rq_psn = 0x123456;
    attr.ah_attr.is_global = 1;
    const in6_addr wanted = gid(own);
    size_t index = 0;
    while (index < gids_.size() && memcmp(&gids_[index], &wanted, sizeof wanted) != 0) ++index;
    EXPECT_LT(index, gids_.size()) << "uiw_lo has no GID " << own;
    attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(index);
    const in6_addr address = gid(peer);
    memcpy(&attr.ah_attr.grh.dgid, &address, sizeof address);
    attr.dest_qp_num = 7;
    testing::internal::CaptureStderr();
    auto answer = peer_search_params(*loopback_, 5, attr, IBV_QP_AV | IBV_QP_DEST_QPN | more);
    said_ = testing::internal::GetCapturedStderr();
    return answer;
  }

  const device::Device* loopback_ = nullptr;
  std::vector<in6_addr> gids_;
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

TEST_F(PeerAddress, WithThePsnThatWasSet) {
  EXPECT_EQ(ask(kLo4, kLo4, IBV_QP_RQ_PSN)->rq_psn, 0x123456u);
  EXPECT_EQ(ask(kLo4, kLo4)->rq_psn, 0u);
}

TEST_F(PeerAddress, OfTheOtherFamilyIsNotReached) {
  for (const auto& [own, peer] : {std::pair{kLo4, kLo6}, std::pair{kLo6, kLo4}}) {
    EXPECT_EQ(ask(own, peer).error(), EINVAL) << peer;
    EXPECT_THAT(said_, testing::HasSubstr("GID indices of one kind"));
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
  for (const char* peer : {"::", "ff02::1"}) {
    EXPECT_EQ(ask(kLo6, peer).error(), EINVAL) << peer;
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

}  // namespace
}  // namespace uiw::verbs
