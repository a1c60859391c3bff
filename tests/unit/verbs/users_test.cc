// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What is in use is not destroyed, and it is said by what.
#include "verbs/users.h"

#include <cerrno>
#include <string>

#include "support.h"
#include "verbs/pd.h"

namespace uiw::verbs {
namespace {

std::string said_of(const Users& users) {
  core::forget_explained();
  core::Told told;
  testing::internal::CaptureStderr();
  EXPECT_EQ(refuse_busy(told, "ibv_dealloc_pd", users), EBUSY);
  EXPECT_EQ(refuse_busy(told, "ibv_dealloc_pd", users), EBUSY);
  return testing::internal::GetCapturedStderr();
}

TEST(Users, EachKindCountsByItself) {
  Users users;
  EXPECT_FALSE(users.any());
  users.add(User::kRegion);
  users.add(User::kRegion);
  users.add(User::kQueuePair);
  EXPECT_EQ(users.total(), 3u);
  EXPECT_EQ(users.count_of(User::kRegion), 2u);
  users.remove(User::kRegion);
  users.remove(User::kRegion);
  EXPECT_TRUE(users.any());
  users.remove(User::kQueuePair);
  EXPECT_FALSE(users.any());
}

TEST(Users, ARefusalNamesAllKindsOnce) {
  Users users;
  users.add(User::kQueuePair);
  users.add(User::kRegion);
  users.add(User::kRegion);
  const std::string said = said_of(users);
  EXPECT_NE(said.find("ibv_dealloc_pd: in use by 1 queue pair, 2 memory regions: "),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("in use", said.find("in use") + 1), std::string::npos) << said;
}

TEST(Users, TheListHasRoomForAllKinds) {
  Users users;
  for (size_t i = 0; i <= static_cast<size_t>(User::kGroup); ++i) users.add(static_cast<User>(i));
  EXPECT_NE(said_of(users).find("1 multicast group: "), std::string::npos);
}

class BusyObjects : public test::OpenDevice {};

TEST_F(BusyObjects, AQueuePairIsNamedByAllThatItUses) {
  core::forget_explained();
  int actual = 0;
  uiwarp_cq* cq = nullptr;
  ASSERT_EQ(uiwarp_cq_create(context_, 4, -1, 0, nullptr, nullptr, &cq, &actual), 0);
  ibv_srq_attr attr{4, 1, 0};
  uiwarp_srq* srq = nullptr;
  ASSERT_EQ(uiwarp_srq_create(pd_, &attr, nullptr, &srq), 0);
  uiwarp_qp_init init = qp_init(cq, srq);
  uiwarp_qp* qp = nullptr;
  uint32_t qp_num = 0, comp = 0, async = 0;
  ASSERT_EQ(uiwarp_qp_create(pd_, &init, &qp, &qp_num), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(uiwarp_cq_destroy(cq, &comp, &async), EBUSY);
  EXPECT_EQ(uiwarp_srq_destroy(srq, &async), EBUSY);
  EXPECT_EQ(uiwarp_pd_dealloc(pd_), EBUSY);
  const std::string said = testing::internal::GetCapturedStderr();
  for (const char* sentence :
       {"ibv_destroy_cq: in use by 1 queue pair: ", "ibv_destroy_srq: in use by 1 queue pair: ",
        "ibv_dealloc_pd: in use by 1 queue pair, 1 shared receive queue: "})
    EXPECT_NE(said.find(sentence), std::string::npos) << sentence << "\n" << said;
  destroy(qp);
  destroy(srq);
  destroy(cq);
}

TEST_F(BusyObjects, ARegionWithABoundWindowSaysSo) {
  core::forget_explained();
  uint8_t buffer[64] = {};
  uint32_t lkey = 0, rkey = 0;
  uiwarp_mr* mr = nullptr;
  ASSERT_EQ(uiwarp_mr_reg(pd_, buffer, sizeof buffer, reinterpret_cast<uintptr_t>(buffer),
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, &mr, &lkey, &rkey),
            0);
  uiwarp_mw* mw = nullptr;
  uint32_t window = 0;
  ASSERT_EQ(uiwarp_mw_alloc(pd_, IBV_MW_TYPE_2, &mw, &window), 0);
  ASSERT_EQ(context_->memory.bind({pd_->id, 77}, {window, window, rkey, mem::kRemoteRead,
                                                  reinterpret_cast<uintptr_t>(buffer), 10}),
            0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(uiwarp_mr_dereg(mr), EBUSY);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("ibv_dereg_mr: memory windows are bound"),
            std::string::npos);
  EXPECT_EQ(uiwarp_mw_dealloc(mw), 0);
  EXPECT_EQ(uiwarp_mr_dereg(mr), 0);
}

}  // namespace
}  // namespace uiw::verbs
