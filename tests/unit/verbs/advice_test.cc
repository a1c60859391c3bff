// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// ibv_advise_mr: what is wrong with advice, and that what is right pages in.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "support.h"
#include "support/in_child.h"
#include "verbs/pd.h"

namespace uiw::verbs {
namespace {

constexpr int kRead = IBV_ADVISE_MR_ADVICE_PREFETCH;
constexpr int kWrite = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
constexpr int kNoFault = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
constexpr uint32_t kFlush = IBV_ADVISE_MR_FLAG_FLUSH;
constexpr int kAll[] = {kRead, kWrite, kNoFault};
constexpr size_t kPages = 4;

class Advice : public test::OpenDevice {
 protected:
  void SetUp() override {
    OpenDevice::SetUp();
    if (HasFatalFailure()) return;
    void* mapped =
        mmap(nullptr, kPages * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    memory_ = static_cast<uint8_t*>(mapped);
    key_ = reg(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
  }
  void TearDown() override {
    for (uiwarp_mr* mr : mrs_) EXPECT_EQ(uiwarp_mr_dereg(mr), 0);
    munmap(memory_, kPages * page_);
    OpenDevice::TearDown();
  }

  uint32_t reg(int access) {
    uiwarp_mr* mr = nullptr;
    uint32_t lkey = 0, rkey = 0;
    EXPECT_EQ(uiwarp_mr_reg(pd_, memory_, kPages * page_, address(0), access, &mr, &lkey, &rkey),
              0);
    mrs_.push_back(mr);
    return lkey;
  }
  uint64_t address(size_t offset) const { return reinterpret_cast<uintptr_t>(memory_) + offset; }
  ibv_sge sge(size_t offset, size_t length, uint32_t key) const {
    return {address(offset), static_cast<uint32_t>(length), key};
  }
  int advise(int advice, const ibv_sge& sge, uint32_t flags = kFlush) {
    return uiwarp_mr_advise(pd_, advice, flags, &sge, 1);
  }
  size_t resident() const {
    unsigned char pages[kPages];
    EXPECT_EQ(mincore(memory_, kPages * page_, pages), 0);
    size_t count = 0;
    for (unsigned char page : pages) count += page & 1;
    return count;
  }

  const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  uint8_t* memory_ = nullptr;
  uint32_t key_ = 0;
  std::vector<uiwarp_mr*> mrs_;
};

TEST_F(Advice, OfEveryKindIsTaken) {
  for (int advice : kAll)
    for (uint32_t flags : {0u, kFlush}) EXPECT_EQ(advise(advice, sge(0, 100, key_), flags), 0);
  const ibv_sge several[] = {sge(0, 1, key_), sge(page_ - 1, 2, key_), sge(0, 0, key_)};
  EXPECT_EQ(uiwarp_mr_advise(pd_, kWrite, kFlush, several, 3), 0);
}

TEST_F(Advice, ToWriteMakesPagesPresentWhenItIsToBeDoneAtOnce) {
  EXPECT_EQ(resident(), 0u);
  EXPECT_EQ(advise(kNoFault, sge(0, page_, key_)), 0);
  EXPECT_EQ(advise(kWrite, sge(0, page_, key_), 0), 0);
  EXPECT_EQ(resident(), 0u);
  const bool can = madvise(memory_, page_, 23 /* MADV_POPULATE_WRITE */) == 0;
  if (!can) GTEST_SKIP() << "not before Linux 5.14";
  EXPECT_EQ(advise(kWrite, sge(2 * page_ - 1, 2, key_)), 0);
  EXPECT_EQ(resident(), 3u);
}

TEST_F(Advice, ThatNobodyKnowsIsNotSupported) {
  EXPECT_EQ(advise(3, sge(0, 100, key_)), EOPNOTSUPP);
  EXPECT_EQ(advise(-1, sge(0, 100, key_)), EOPNOTSUPP);
}

TEST_F(Advice, FlagsAndNoRangeAreInvalid) {
  EXPECT_EQ(advise(kRead, sge(0, 100, key_), 2), EINVAL);
  EXPECT_EQ(uiwarp_mr_advise(pd_, kRead, 0, nullptr, 0), EINVAL);
}

TEST_F(Advice, AKeyHasToBeOfMemoryOnDemand) {
  const uint32_t plain = reg(IBV_ACCESS_LOCAL_WRITE);
  uiwarp_mw* mw = nullptr;
  uint32_t window = 0;
  const uint32_t bindable = reg(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_MW_BIND);
  ASSERT_EQ(uiwarp_mw_alloc(pd_, IBV_MW_TYPE_2, &mw, &window), 0);
  ASSERT_EQ(context_->memory.bind({pd_->id, 77},
                                  {window, window, bindable, mem::kRemoteRead, address(0), 100}),
            0);
  for (int advice : kAll) {
    EXPECT_EQ(advise(advice, sge(0, 100, 0)), ENOENT);
    EXPECT_EQ(advise(advice, sge(0, 100, key_ ^ 1)), ENOENT);
    EXPECT_EQ(advise(advice, sge(0, 100, plain)), ENOENT);
    EXPECT_EQ(advise(advice, sge(0, 100, window)), EINVAL);
    EXPECT_EQ(advise(advice, sge(0, 100, bindable)), 0);
  }
  EXPECT_EQ(uiwarp_mw_dealloc(mw), 0);
}

TEST_F(Advice, OfAnotherDomainIsNotPermittedOfAParentDomainItIs) {
  uiwarp_pd *other = nullptr, *parent = nullptr;
  ASSERT_EQ(uiwarp_pd_alloc(context_, &other), 0);
  ASSERT_EQ(uiwarp_pd_alloc_parent(context_, pd_, nullptr, &parent), 0);
  const ibv_sge range = sge(0, 100, key_);
  for (int advice : kAll) {
    EXPECT_EQ(uiwarp_mr_advise(other, advice, 0, &range, 1), EPERM);
    EXPECT_EQ(uiwarp_mr_advise(parent, advice, 0, &range, 1), 0);
  }
  EXPECT_EQ(uiwarp_pd_dealloc(parent), 0);
  EXPECT_EQ(uiwarp_pd_dealloc(other), 0);
}

TEST_F(Advice, ToWriteWhereNothingMayIsNotPermitted) {
  const uint32_t readable = reg(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
  EXPECT_EQ(advise(kWrite, sge(0, 100, readable)), EPERM);
  EXPECT_EQ(advise(kRead, sge(0, 100, readable)), 0);
}

TEST_F(Advice, BeyondTheRegionIsAFault) {
  for (int advice : kAll) {
    EXPECT_EQ(advise(advice, sge(0, kPages * page_ + 1, key_)), EFAULT);
    EXPECT_EQ(advise(advice, {address(0) - 1, 2, key_}), EFAULT);
    EXPECT_EQ(advise(advice, {~uint64_t{0}, 2, key_}), EFAULT);
    const ibv_sge several[] = {sge(0, 100, key_), {0, 1, key_}};
    EXPECT_EQ(uiwarp_mr_advise(pd_, advice, kFlush, several, 2), EFAULT);
  }
}

TEST_F(Advice, OfMemoryThatIsNotThereAnyMoreIsAFault) {
  munmap(memory_ + page_, page_);
  EXPECT_EQ(advise(kRead, sge(0, 2 * page_, key_)), EFAULT);
  EXPECT_EQ(advise(kWrite, sge(0, 2 * page_, key_)), EFAULT);
  EXPECT_EQ(advise(kNoFault, sge(0, 2 * page_, key_)), 0);
  EXPECT_EQ(mprotect(memory_, page_, PROT_READ), 0);
  EXPECT_EQ(advise(kRead, sge(0, page_, key_)), 0);
  EXPECT_EQ(advise(kWrite, sge(0, page_, key_)), EFAULT);
}

TEST_F(Advice, GoesByTheNamesThatARegionGivesItsBytes) {
  const uint32_t from_zero =
      reg(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED);
  EXPECT_EQ(advise(kWrite, {0, static_cast<uint32_t>(kPages * page_), from_zero}), 0);
  EXPECT_EQ(advise(kWrite, sge(0, 1, from_zero)), EFAULT);
}

TEST_F(Advice, AForkedChildGivesNone) {
  uiw::test::in_child([&] { return advise(kRead, sge(0, 100, key_)) == ENODEV ? 0 : 1; });
}

}  // namespace
}  // namespace uiw::verbs
