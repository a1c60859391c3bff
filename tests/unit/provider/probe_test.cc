// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The load-time probe against libibverbs of different layouts, played by this file.
#include <gtest/gtest.h>

#include <cstring>

extern "C" {
#include "provider/provider.h"
}

namespace {

constexpr size_t kNever = 0, kAlways = 1;
size_t flags_at = kNever;

}  // namespace

// What libibverbs does, at the offset that the test wants.
extern "C" ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  if (flags_at == kNever) return nullptr;
  uint32_t flags = UIWARP_VERBS_QP_EX;
  if (flags_at != kAlways)
    std::memcpy(&flags, reinterpret_cast<char*>(qp) + flags_at, sizeof flags);
  return flags & UIWARP_VERBS_QP_EX ? reinterpret_cast<ibv_qp_ex*>(qp) : nullptr;
}

namespace {

size_t found(size_t offset) {
  flags_at = offset;
  return provider_qp_flags_at();
}

TEST(Probe, KnowsBothPlaces) {
  EXPECT_EQ(found(352), 352u);  // rdma-core 44 and before
  EXPECT_EQ(found(360), 360u);  // 45 and later
}

TEST(Probe, RefusesAnyOther) {
  EXPECT_EQ(found(344), 0u);
  EXPECT_EQ(found(368), 0u);
  EXPECT_EQ(found(kNever), 0u);
  EXPECT_EQ(found(kAlways), 0u);
}

TEST(Probe, TheZeroedSpaceCoversBoth) {
  EXPECT_GE(offsetof(provider_qp, core), 360 + sizeof(uint32_t));
  EXPECT_GE(offsetof(provider_cq, core), size_t{UIWARP_VERBS_CQ_SIZE});
  EXPECT_GE(offsetof(provider_srq, core), size_t{UIWARP_VERBS_SRQ_SIZE});
}

}  // namespace
