// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What is said of calls that are refused: once, with the rule.
#include <gtest/gtest.h>

#include <cerrno>

#include "core/explain.h"
#include "support.h"
#include "support/refusals.h"

namespace uiw::verbs {
namespace {

using uiw::test::expect_refused;

class Refusals : public test::OpenDevice {
 protected:
  void SetUp() override {
    core::forget_explained();
    OpenDevice::SetUp();
    if (HasFatalFailure()) return;
    mr_ = reg(pd_, IBV_ACCESS_LOCAL_WRITE, key_);
  }
  void TearDown() override {
    if (mr_) EXPECT_EQ(uiwarp_mr_dereg(mr_), 0);
    OpenDevice::TearDown();
  }

  uiwarp_mr* reg(uiwarp_pd* pd, int access, uint32_t& key) {
    uiwarp_mr* mr = nullptr;
    uint32_t rkey;
    EXPECT_EQ(uiwarp_mr_reg(pd, memory_, sizeof memory_, address(), access, &mr, &key, &rkey), 0);
    return mr;
  }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(memory_); }

  alignas(8) char memory_[64] = {};
  uiwarp_mr* mr_ = nullptr;
  uint32_t key_ = 0;
};

TEST_F(Refusals, OfAdviceNameTheRule) {
  const auto advise = [&](int advice, uint32_t flags, uint32_t count, uint32_t key) {
    return [=, this] {
      const ibv_sge sge{address(), sizeof memory_, key};
      return uiwarp_mr_advise(pd_, advice, flags, &sge, count);
    };
  };
  constexpr int kRead = IBV_ADVISE_MR_ADVICE_PREFETCH;
  expect_refused(EOPNOTSUPP, {"ibv_advise_mr: advice is 77"}, advise(77, 0, 1, key_));
  expect_refused(EINVAL, {"ibv_advise_mr: flags are 0x80"}, advise(kRead, 0x80, 1, key_));
  expect_refused(EINVAL, {"ibv_advise_mr: num_sge is 0"}, advise(kRead, 0, 0, key_));
  expect_refused(ENOENT, {"ibv_advise_mr: the lkey of an SGE is that of no memory region"},
                 advise(kRead, 0, 1, key_ + 1));
  expect_refused(ENOENT, {"ibv_advise_mr: the region was registered without IBV_ACCESS_ON_DEMAND"},
                 advise(kRead, 0, 1, key_));
}

TEST_F(Refusals, OfAdviceNameWhatIsWrongWithTheRegion) {
  uiwarp_pd* other = nullptr;
  ASSERT_EQ(uiwarp_pd_alloc(context_, &other), 0);
  uint32_t foreign_key, read_only_key;
  uiwarp_mr* const foreign = reg(other, IBV_ACCESS_ON_DEMAND, foreign_key);
  uiwarp_mr* const read_only = reg(pd_, IBV_ACCESS_ON_DEMAND, read_only_key);
  const auto advise = [&](int advice, uint32_t key, uint32_t length) {
    return [=, this] {
      const ibv_sge sge{address(), length, key};
      return uiwarp_mr_advise(pd_, advice, 0, &sge, 1);
    };
  };
  constexpr int kRead = IBV_ADVISE_MR_ADVICE_PREFETCH;
  expect_refused(EPERM, {"of another protection domain"}, advise(kRead, foreign_key, 1));
  expect_refused(EPERM, {"without IBV_ACCESS_LOCAL_WRITE"},
                 advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, read_only_key, 1));
  expect_refused(EFAULT, {"ends behind it"}, advise(kRead, read_only_key, sizeof memory_ + 1));
  EXPECT_EQ(uiwarp_mr_dereg(foreign), 0);
  EXPECT_EQ(uiwarp_mr_dereg(read_only), 0);
  EXPECT_EQ(uiwarp_pd_dealloc(other), 0);
}

TEST_F(Refusals, OfMemoryWindowsNameTheRule) {
  uiwarp_mw* mw = nullptr;
  uint32_t rkey = 0, next = 0;
  expect_refused(EINVAL, {"ibv_alloc_mw: type is 9"},
                 [&] { return uiwarp_mw_alloc(pd_, 9, &mw, &rkey); });
  ASSERT_EQ(uiwarp_mw_alloc(pd_, IBV_MW_TYPE_1, &mw, &rkey), 0);
  expect_refused(EINVAL, {"ibv_bind_mw: rkey of the memory window is "},
                 [&] { return uiwarp_mw_next_rkey(mw, ~rkey, &next); });
  EXPECT_EQ(uiwarp_mw_dealloc(mw), 0);
}

TEST_F(Refusals, OfAnotherContextsDomainsSaySo) {
  const uiwarp_device* device = uiwarp_device_find("uiw_lo");
  uiwarp_context* context = nullptr;
  uiwarp_pd *pd = nullptr, *parent = nullptr;
  uint32_t lkey, rkey;
  int async_fd;
  ASSERT_EQ(uiwarp_context_open(device, 0, &context, &async_fd), 0);
  ASSERT_EQ(uiwarp_pd_alloc(context, &pd), 0);
  expect_refused(EINVAL,
                 {"ibv_alloc_parent_domain: the protection domain is of another ibv_context"},
                 [&] { return uiwarp_pd_alloc_parent(context_, pd, nullptr, &parent); });
  expect_refused(EINVAL, {"ibv_rereg_mr: with IBV_REREG_MR_CHANGE_PD"}, [&] {
    return uiwarp_mr_rereg(mr_, IBV_REREG_MR_CHANGE_PD, pd, nullptr, 0, 0, &lkey, &rkey);
  });
  EXPECT_EQ(uiwarp_pd_dealloc(pd), 0);
  uiwarp_context_close(context);
  close(async_fd);
}

TEST_F(Refusals, OfNumbersThatAreOutOfRangeNameThem) {
  ibv_port_attr port;
  expect_refused(EINVAL, {"ibv_query_port: port_num is 2, the device has port 1"},
                 [&] { return uiwarp_query_port(context_, 2, &port); });
  uiwarp_cq* const cq = make_cq();
  ibv_wc wc;
  expect_refused(-EINVAL, {"ibv_poll_cq: num_entries is -1"},
                 [&] { return uiwarp_cq_poll(cq, -1, &wc); });
  uiwarp_qp* const qp = make_qp(cq);
  expect_refused(EOPNOTSUPP, {"ibv_wr_set_ud_addr: "},
                 [&] { return uiwarp_qp_batch_address(qp, nullptr, 1, 1); });
  const ibv_gid group{};
  expect_refused(EOPNOTSUPP,
                 {"ibv_attach_mcast: devices of the iwarp face have no multicast groups"},
                 [&] { return uiwarp_qp_attach(qp, &group); });
  destroy(qp);
  destroy(cq);
}

}  // namespace
}  // namespace uiw::verbs
