// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Contexts of one command descriptor: which objects they share, and who ends what.
#include <cerrno>
#include <string>

#include "support.h"
#include "support/in_child.h"
#include "verbs/pd.h"

namespace uiw::verbs {
namespace {

// Two contexts of one command, and a domain and a region of the first.
class Import : public test::OpenDevice {
 protected:
  static constexpr uint64_t kCommand = 4711, kOther = 4712;

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(open(kCommand, context_, async_fd_));
    ASSERT_NO_FATAL_FAILURE(open(kCommand, second_, second_fd_));
    ASSERT_EQ(uiwarp_pd_alloc(context_, &pd_), 0);
    ASSERT_EQ(reg(pd_, &mr_), 0);
  }
  void TearDown() override {
    if (second_) {
      uiwarp_context_close(second_);
      ::close(second_fd_);
    }
    if (mr_) EXPECT_EQ(uiwarp_mr_dereg(mr_), 0);
    if (pd_) return OpenDevice::TearDown();
    uiwarp_context_close(context_);
    ::close(async_fd_);
  }

  static void open(uint64_t command, uiwarp_context*& context, int& async_fd) {
    const uiwarp_device* device = uiwarp_device_find("uiw_lo");
    ASSERT_NE(device, nullptr) << "the loopback interface is down";
    ASSERT_EQ(uiwarp_context_open(device, command, &context, &async_fd), 0);
  }
  int reg(uiwarp_pd* pd, uiwarp_mr** mr) {
    return uiwarp_mr_reg(pd, buffer_, sizeof buffer_, reinterpret_cast<uintptr_t>(buffer_),
                         IBV_ACCESS_LOCAL_WRITE, mr, &lkey_, &rkey_);
  }
  uiwarp_pd* import_pd() {
    uiwarp_pd* pd = nullptr;
    EXPECT_EQ(uiwarp_pd_import(second_, uiwarp_pd_handle(pd_), &pd), 0);
    return pd;
  }
  uiwarp_mr* import_mr(uiwarp_pd* pd) {
    uiwarp_mr* mr = nullptr;
    uint32_t lkey = 0, rkey = 0;
    uint64_t length = 0;
    EXPECT_EQ(uiwarp_mr_import(pd, uiwarp_mr_handle(mr_), &mr, &lkey, &rkey, &length), 0);
    EXPECT_EQ(lkey, lkey_);
    EXPECT_EQ(rkey, rkey_);
    EXPECT_EQ(length, sizeof buffer_);
    return mr;
  }

  uiwarp_context* second_ = nullptr;
  int second_fd_ = -1;
  uiwarp_mr* mr_ = nullptr;
  uint8_t buffer_[64] = {};
  uint32_t lkey_ = 0, rkey_ = 0;
};

TEST_F(Import, AnImportedDomainIsTheSameInAnotherContext) {
  uiwarp_pd* pd = import_pd();
  EXPECT_NE(pd, pd_);
  EXPECT_EQ(pd->id, pd_->id);
  EXPECT_EQ(pd->context, second_);
  EXPECT_EQ(uiwarp_pd_handle(pd), uiwarp_pd_handle(pd_));
  EXPECT_TRUE(second_->memory.find(lkey_));
  uiwarp_pd_unimport(pd);
}

TEST_F(Import, DomainsOfBothContextsDiffer) {
  uiwarp_pd* other = nullptr;
  ASSERT_EQ(uiwarp_pd_alloc(second_, &other), 0);
  EXPECT_NE(other->id, pd_->id);
  EXPECT_NE(uiwarp_pd_handle(other), uiwarp_pd_handle(pd_));
  EXPECT_EQ(uiwarp_pd_dealloc(other), 0);
}

TEST_F(Import, HandlesOfAnotherKindOrCommandOrOfNothingAreInvalid) {
  uiwarp_context* stranger = nullptr;
  int fd = -1;
  ASSERT_NO_FATAL_FAILURE(open(kOther, stranger, fd));
  uiwarp_pd *own = nullptr, *pd = nullptr;
  uiwarp_mr* mr = nullptr;
  uint32_t lkey, rkey;
  uint64_t length;
  EXPECT_EQ(uiwarp_pd_import(stranger, uiwarp_pd_handle(pd_), &pd), EINVAL);
  EXPECT_EQ(uiwarp_pd_import(second_, uiwarp_mr_handle(mr_), &pd), EINVAL);
  EXPECT_EQ(uiwarp_pd_import(second_, 0, &pd), EINVAL);
  ASSERT_EQ(uiwarp_pd_alloc(stranger, &own), 0);
  EXPECT_EQ(uiwarp_mr_import(own, uiwarp_mr_handle(mr_), &mr, &lkey, &rkey, &length), EINVAL);
  EXPECT_EQ(uiwarp_mr_import(pd_, uiwarp_pd_handle(pd_), &mr, &lkey, &rkey, &length), EINVAL);
  EXPECT_FALSE(stranger->memory.find(lkey_));
  EXPECT_EQ(uiwarp_pd_dealloc(own), 0);
  uiwarp_context_close(stranger);
  ::close(fd);
}

// 0 stands for no command: nobody else's.
TEST_F(Import, WithoutACommandNothingIsShared) {
  uiwarp_context *one = nullptr, *two = nullptr;
  int one_fd = -1, two_fd = -1;
  ASSERT_NO_FATAL_FAILURE(open(0, one, one_fd));
  ASSERT_NO_FATAL_FAILURE(open(0, two, two_fd));
  uiwarp_pd *pd = nullptr, *imported = nullptr;
  ASSERT_EQ(uiwarp_pd_alloc(one, &pd), 0);
  EXPECT_EQ(uiwarp_pd_import(two, uiwarp_pd_handle(pd), &imported), EINVAL);
  EXPECT_EQ(uiwarp_pd_dealloc(pd), 0);
  uiwarp_context_close(one);
  uiwarp_context_close(two);
  ::close(one_fd);
  ::close(two_fd);
}

TEST_F(Import, AQueuePairOfTheImportHoldsTheDomain) {
  uiwarp_pd* pd = import_pd();
  int actual = 0;
  uiwarp_cq* cq = nullptr;
  ASSERT_EQ(uiwarp_cq_create(second_, 16, -1, 0, nullptr, nullptr, &cq, &actual), 0);
  uiwarp_qp_init init = qp_init(cq);
  uiwarp_qp* qp = nullptr;
  uint32_t qp_num = 0;
  ASSERT_EQ(uiwarp_qp_create(pd, &init, &qp, &qp_num), 0);
  EXPECT_EQ(uiwarp_mr_dereg(std::exchange(mr_, nullptr)), 0);
  core::forget_explained();
  testing::internal::CaptureStderr();
  EXPECT_EQ(uiwarp_pd_dealloc(pd_), EBUSY);
  EXPECT_EQ(uiwarp_pd_dealloc(pd), EBUSY);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("ibv_dealloc_pd: in use by 1 queue pair: "), std::string::npos) << said;
  // Its struct goes first, as pyverbs has it; what stands for it stays until the queue pair is
  // gone.
  uiwarp_pd_unimport(pd);
  EXPECT_EQ(second_->pds.used(), 1u);
  EXPECT_EQ(uiwarp_pd_dealloc(pd_), EBUSY);
  destroy(qp);
  EXPECT_EQ(second_->pds.used(), 0u);
  EXPECT_EQ(uiwarp_pd_dealloc(std::exchange(pd_, nullptr)), 0);
  destroy(cq);
}

// As the kernel, for which an import is not a use.
TEST_F(Import, AnIdleImportDoesNotKeepTheDomain) {
  uiwarp_pd* pd = import_pd();
  const uint32_t handle = uiwarp_pd_handle(pd_);
  EXPECT_EQ(uiwarp_mr_dereg(std::exchange(mr_, nullptr)), 0);
  EXPECT_EQ(uiwarp_pd_dealloc(std::exchange(pd_, nullptr)), 0);
  uiwarp_pd* again = nullptr;
  EXPECT_EQ(uiwarp_pd_import(second_, handle, &again), EINVAL);
  uiwarp_mr* mr = nullptr;
  uiwarp_pd* parent = nullptr;
  EXPECT_EQ(reg(pd, &mr), EINVAL);
  EXPECT_EQ(uiwarp_pd_alloc_parent(second_, pd, nullptr, &parent), EINVAL);
  EXPECT_EQ(uiwarp_pd_dealloc(pd), EINVAL);
  uiwarp_pd_unimport(pd);
}

TEST_F(Import, TheImportMayDestroyWhatItImported) {
  uiwarp_pd* pd = import_pd();
  uiwarp_mr* mr = import_mr(pd);
  const uint32_t handle = uiwarp_mr_handle(mr);
  EXPECT_EQ(uiwarp_pd_dealloc(pd), EBUSY);
  EXPECT_EQ(uiwarp_mr_dereg(mr), 0);
  EXPECT_FALSE(context_->memory.find(lkey_));
  uint64_t length;
  EXPECT_EQ(uiwarp_mr_import(pd, handle, &mr, &lkey_, &rkey_, &length), EINVAL);
  EXPECT_EQ(uiwarp_mr_dereg(mr_), EINVAL);
  EXPECT_EQ(
      uiwarp_mr_rereg(mr_, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0, &lkey_, &rkey_),
      EINVAL);
  uiwarp_mr_unimport(std::exchange(mr_, nullptr));
  EXPECT_EQ(uiwarp_pd_dealloc(pd), 0);
  EXPECT_EQ(uiwarp_pd_dealloc(pd_), EINVAL);
  uiwarp_pd_unimport(std::exchange(pd_, nullptr));
}

TEST_F(Import, UnimportingARegionLeavesIt) {
  uiwarp_pd* pd = import_pd();
  uiwarp_mr* mr = import_mr(pd);
  uiwarp_mr_unimport(mr);
  EXPECT_TRUE(context_->memory.find(lkey_));
  EXPECT_EQ(second_->mrs.used(), 0u);
  uiwarp_pd_unimport(pd);
}

TEST_F(Import, MemoryOutlivesTheContextThatRegisteredIt) {
  uiwarp_pd* pd = import_pd();
  uiwarp_mr* mr = import_mr(pd);
  uiwarp_mr_unimport(std::exchange(mr_, nullptr));
  // The domain's own struct is still needed: the region counts as a user of it.
  uiwarp_pd_unimport(std::exchange(pd_, nullptr));
  EXPECT_TRUE(second_->memory.find(lkey_));
  EXPECT_EQ(uiwarp_mr_dereg(mr), 0);
  EXPECT_EQ(context_->pds.used(), 0u);
  uiwarp_pd_unimport(pd);
}

TEST_F(Import, EventsOfAnImportsQueuePairAreItsOwn) {
  uiwarp_pd* pd = import_pd();
  int actual = 0, user = 0;
  uiwarp_srq* srq = nullptr;
  ibv_srq_attr attr{4, 1, 0};
  ASSERT_EQ(uiwarp_srq_create(pd, &attr, &user, &srq), 0);
  uiwarp_cq* cq = nullptr;
  ASSERT_EQ(uiwarp_cq_create(second_, 16, -1, 0, nullptr, nullptr, &cq, &actual), 0);
  uiwarp_qp_init init = qp_init(cq, srq);
  init.user = &user;
  uiwarp_qp* qp = nullptr;
  uint32_t qp_num = 0;
  ASSERT_EQ(uiwarp_qp_create(pd, &init, &qp, &qp_num), 0);
  to_error(qp);
  pollfd told{second_fd_, POLLIN, 0};  // by the engine
  ASSERT_EQ(::poll(&told, 1, 10'000), 1);
  const auto events = test::read_all<EventRecord>(second_fd_);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].element, reinterpret_cast<uintptr_t>(&user));
  EXPECT_TRUE(test::read_all<EventRecord>(async_fd_).empty());
  destroy(qp, 1);
  destroy(srq);
  destroy(cq);
  uiwarp_pd_unimport(pd);
}

TEST_F(Import, AForkedChildImportsNothing) {
  const uint32_t handle = uiwarp_pd_handle(pd_);
  uiw::test::in_child([&] {
    uiwarp_pd* pd = nullptr;
    uiwarp_mr* mr = nullptr;
    uint32_t lkey, rkey;
    uint64_t length;
    const bool dead =
        uiwarp_pd_import(second_, handle, &pd) == ENODEV &&
        uiwarp_mr_import(pd_, uiwarp_mr_handle(mr_), &mr, &lkey, &rkey, &length) == ENODEV;
    // Nor would a context of its own with that command have the parent's.
    const bool strange = command_space(kCommand) != second_->space;
    return dead && strange ? 0 : 1;
  });
}

}  // namespace
}  // namespace uiw::verbs
