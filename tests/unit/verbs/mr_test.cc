// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "device/device.h"
#include "support.h"
#include "verbs/context.h"
#include "verbs/pd.h"

namespace uiw::verbs {
namespace {

class Memory : public test::OpenDevice {
 protected:
  int reg(void* addr, size_t length, int access, uint64_t iova) {
    uiwarp_mr* mr = nullptr;
    const int error = uiwarp_mr_reg(pd_, addr, length, iova, access, &mr, &lkey_, &rkey_);
    if (error == 0) mrs_.push_back(mr);
    return error;
  }
  int reg(void* addr, size_t length, int access) {
    return reg(addr, length, access, reinterpret_cast<uintptr_t>(addr));
  }
  void TearDown() override {
    for (uiwarp_mr* mr : mrs_) EXPECT_EQ(uiwarp_mr_dereg(mr), 0);
    OpenDevice::TearDown();
  }
  uint8_t buffer_[8192] = {};
  uint32_t lkey_ = 0, rkey_ = 0;
  std::vector<uiwarp_mr*> mrs_;
};

constexpr int kLocal = IBV_ACCESS_LOCAL_WRITE;

TEST_F(Memory, RegistersWhatWasAskedFor) {
  ASSERT_EQ(reg(buffer_, sizeof buffer_, kLocal | IBV_ACCESS_REMOTE_READ), 0);
  EXPECT_NE(lkey_, 0u);
  EXPECT_EQ(lkey_, rkey_);
  auto region = context_->memory.find(rkey_);
  ASSERT_TRUE(region);
  EXPECT_EQ(region->start, reinterpret_cast<uintptr_t>(buffer_));
  EXPECT_EQ(region->length, sizeof buffer_);
  EXPECT_EQ(region->access, static_cast<uint32_t>(mem::kLocalWrite | mem::kRemoteRead));
  EXPECT_EQ(region->memory, buffer_);
}

TEST_F(Memory, TheAddressOnTheWireMayDiffer) {
  ASSERT_EQ(reg(buffer_, 100, kLocal, 0x5000), 0);
  EXPECT_EQ(context_->memory.find(rkey_)->start, 0x5000u);
  ASSERT_EQ(reg(buffer_, 100, kLocal | IBV_ACCESS_ZERO_BASED), 0);
  EXPECT_EQ(context_->memory.find(rkey_)->start, 0u);
}

// What callers of today and tomorrow pass, and the kernel's answers (ib_check_mr_access()).
TEST_F(Memory, AccessFlags) {
  struct Case {
    int access, error;
  };
  constexpr Case kCases[] = {
      {0, 0},
      {IBV_ACCESS_REMOTE_READ, 0},
      {kLocal | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC, 0},
      {IBV_ACCESS_REMOTE_WRITE, EINVAL},
      {IBV_ACCESS_REMOTE_ATOMIC, EINVAL},
      // hints
      {kLocal | IBV_ACCESS_RELAXED_ORDERING, 0},
      {kLocal | 1 << 21, 0},  // not defined yet
      {kLocal | 1 << 29, 0},
      {kLocal | IBV_ACCESS_HUGETLB, 0},
      // as all memory is
      {kLocal | IBV_ACCESS_ON_DEMAND, 0},
      {kLocal | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB, 0},
      // what this device does not have
      {kLocal | 1 << 8, EOPNOTSUPP},  // IBV_ACCESS_FLUSH_GLOBAL
      {kLocal | 1 << 9, EOPNOTSUPP},  // IBV_ACCESS_FLUSH_PERSISTENT
      // what nobody knows
      {kLocal | 1 << 12, EINVAL},
      {kLocal | 1 << 19, EINVAL},
      {kLocal | 1 << 30, EINVAL},
  };
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.access);
    EXPECT_EQ(reg(buffer_, 100, one.access), one.error);
  }
}

TEST_F(Memory, OfNoLengthIsInvalid) {
  EXPECT_EQ(reg(buffer_, 0, kLocal), EINVAL);
  EXPECT_EQ(reg(nullptr, 0, kLocal), EINVAL);
  EXPECT_EQ(reg(buffer_, 0, kLocal | IBV_ACCESS_ZERO_BASED), EINVAL);
}

TEST_F(Memory, UnmappedOrReadOnlyMemoryIsAFault) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* two = mmap(nullptr, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(two, MAP_FAILED);
  munmap(static_cast<char*>(two) + page, page);
  EXPECT_EQ(reg(two, page, IBV_ACCESS_REMOTE_READ), 0);
  EXPECT_EQ(reg(two, page, kLocal), EFAULT);
  EXPECT_EQ(reg(two, page + 1, 0), EFAULT);
  EXPECT_EQ(reg(nullptr, 1, 0), EFAULT);
  munmap(two, page);
}

TEST_F(Memory, WrapsAreInvalid) {
  EXPECT_EQ(reg(buffer_, ~size_t{0}, kLocal), EINVAL);
  EXPECT_EQ(reg(buffer_, 100, kLocal, ~uint64_t{0} - 50), EINVAL);
}

TEST_F(Memory, TheWholeAddressSpaceIsNotRegistered) {
  EXPECT_EQ(reg(nullptr, SIZE_MAX, kLocal | IBV_ACCESS_ON_DEMAND, 0), EINVAL);
}

TEST_F(Memory, ADomainWithMemoryIsBusy) {
  ASSERT_EQ(reg(buffer_, 100, kLocal), 0);
  EXPECT_EQ(uiwarp_pd_dealloc(pd_), EBUSY);
}

TEST_F(Memory, ADeregisteredKeyIsGone) {
  ASSERT_EQ(reg(buffer_, 100, kLocal), 0);
  EXPECT_EQ(uiwarp_mr_dereg(mrs_.back()), 0);
  mrs_.pop_back();
  EXPECT_FALSE(context_->memory.find(rkey_));
}

TEST_F(Memory, RegionsEndAtTheLimit) {
  // All but a few go straight into the table: asking the kernel about each takes long.
  mem::Table& table = context_->memory;
  std::vector<uint32_t> stags;
  while (table.size() < device::Limits::kMaxMr - 1)
    stags.push_back(*table.add(0, buffer_, 0, 1, 0, device::Limits::kMaxMr));
  EXPECT_EQ(reg(buffer_, 100, kLocal), 0);
  EXPECT_EQ(reg(buffer_, 100, kLocal), ENOMEM);
  EXPECT_EQ(table.remove(stags.back()), 0);
  stags.pop_back();
  EXPECT_EQ(reg(buffer_, 100, kLocal), 0);
  for (uint32_t stag : stags) EXPECT_EQ(table.remove(stag), 0);
}

class Reregistration : public Memory {
 protected:
  int rereg(int flags, uiwarp_pd* pd, void* addr, size_t length, int access) {
    return uiwarp_mr_rereg(mrs_.back(), flags, pd, addr, length, access, &lkey_, &rkey_);
  }
  uint32_t access_of(uint32_t stag) {
    const auto region = context_->memory.find(stag);
    return region ? region->access : ~0u;
  }
};

TEST_F(Reregistration, OfTheRightsKeepsTheKey) {
  ASSERT_EQ(reg(buffer_, 100, kLocal | IBV_ACCESS_REMOTE_WRITE), 0);
  const uint32_t before = rkey_;
  EXPECT_EQ(rereg(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_READ), 0);
  EXPECT_EQ(rkey_, before);
  EXPECT_EQ(lkey_, before);
  EXPECT_EQ(access_of(before), uint32_t{mem::kRemoteRead});
  EXPECT_EQ(rereg(0, nullptr, nullptr, 0, 0), 0);
  EXPECT_EQ(access_of(before), uint32_t{mem::kRemoteRead});
}

TEST_F(Reregistration, OfPlaceOrDomainMakesANewKey) {
  uiwarp_pd* other = nullptr;
  ASSERT_EQ(uiwarp_pd_alloc(context_, &other), 0);
  ASSERT_EQ(reg(buffer_, 100, kLocal), 0);
  uint32_t before = rkey_;
  const auto expect_new_key = [&] {
    EXPECT_NE(rkey_, before);
    EXPECT_EQ(lkey_, rkey_);
    EXPECT_FALSE(context_->memory.find(before));
    before = rkey_;
  };
  EXPECT_EQ(rereg(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, buffer_ + 200, 300, 0), 0);
  expect_new_key();
  {
    const auto region = context_->memory.find(rkey_);
    EXPECT_EQ(region->memory, buffer_ + 200);
    EXPECT_EQ(region->start, reinterpret_cast<uintptr_t>(buffer_) + 200);
    EXPECT_EQ(region->length, 300u);
    EXPECT_EQ(region->access, uint32_t{mem::kLocalWrite});
  }
  EXPECT_EQ(rereg(IBV_REREG_MR_CHANGE_PD, other, nullptr, 0, 0), 0);
  expect_new_key();
  EXPECT_EQ(uiwarp_pd_dealloc(other), EBUSY);
  EXPECT_EQ(context_->memory.find(rkey_)->memory, buffer_ + 200);
  EXPECT_EQ(rereg(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kLocal | IBV_ACCESS_ZERO_BASED),
            0);
  expect_new_key();  // its octets have other names now
  EXPECT_EQ(context_->memory.find(rkey_)->start, 0u);
  EXPECT_EQ(
      rereg(IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
            pd_, buffer_, 50, IBV_ACCESS_REMOTE_READ),
      0);
  expect_new_key();
  EXPECT_EQ(context_->memory.find(rkey_)->length, 50u);
  EXPECT_EQ(access_of(rkey_), uint32_t{mem::kRemoteRead});
  EXPECT_EQ(uiwarp_pd_dealloc(other), 0);
}

TEST_F(Reregistration, ThatFailsChangesNothing) {
  ASSERT_EQ(reg(buffer_, 100, kLocal | IBV_ACCESS_MW_BIND), 0);
  const uint32_t before = rkey_;
  EXPECT_EQ(rereg(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE),
            EINVAL);
  EXPECT_EQ(rereg(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 1 << 8), EOPNOTSUPP);
  EXPECT_EQ(rereg(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 8, 0), EFAULT);
  EXPECT_EQ(rereg(IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0), EINVAL);
  uiwarp_mw* mw = nullptr;
  uint32_t window = 0;
  ASSERT_EQ(uiwarp_mw_alloc(pd_, IBV_MW_TYPE_2, &mw, &window), 0);
  ASSERT_EQ(context_->memory.bind({pd_->id, 77}, {window, window, before, mem::kRemoteRead,
                                                  reinterpret_cast<uintptr_t>(buffer_), 10}),
            0);
  EXPECT_EQ(rereg(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0), EBUSY);
  EXPECT_EQ(rereg(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, buffer_ + 8, 8, 0), EBUSY);
  EXPECT_EQ(uiwarp_mr_dereg(mrs_.back()), EBUSY);
  EXPECT_EQ(context_->memory.size(), 1u);
  EXPECT_EQ(rkey_, before);
  EXPECT_EQ(access_of(before), uint32_t{mem::kLocalWrite | mem::kMwBind});
  EXPECT_EQ(uiwarp_mw_dealloc(mw), 0);
}

// Whoever was copying in the parent never lets go in the child.
TEST_F(Memory, AForkedChildWaitsForNobody) {
  ASSERT_EQ(reg(buffer_, 100, kLocal), 0);
  uiwarp_mw* mw = nullptr;
  uint32_t window = 0;
  ASSERT_EQ(uiwarp_mw_alloc(pd_, IBV_MW_TYPE_2, &mw, &window), 0);
  {
    const auto held = context_->memory.find(rkey_);
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // ends what would wait
      uiwarp_mr* more = nullptr;
      const bool fine =
          uiwarp_mr_reg(pd_, buffer_, 8, 0, kLocal, &more, &lkey_, &rkey_) == ENODEV &&
          uiwarp_mr_dereg(mrs_.back()) == 0 && uiwarp_mw_dealloc(mw) == 0;
      _exit(fine ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(uiwarp_mw_dealloc(mw), 0);
}

TEST_F(Memory, AWindowHoldsItsDomain) {
  uiwarp_mw* mw = nullptr;
  uint32_t rkey = 0, next = 0;
  EXPECT_EQ(uiwarp_mw_alloc(pd_, 3, &mw, &rkey), EINVAL);
  ASSERT_EQ(uiwarp_mw_alloc(pd_, IBV_MW_TYPE_1, &mw, &rkey), 0);
  EXPECT_FALSE(context_->memory.find(rkey));
  EXPECT_EQ(uiwarp_mw_next_rkey(mw, rkey, &next), 0);
  EXPECT_NE(next, rkey);
  EXPECT_EQ(mem::index_of(next), mem::index_of(rkey));
  EXPECT_EQ(uiwarp_mw_next_rkey(mw, rkey ^ 0x100, &next), EINVAL);
  EXPECT_EQ(uiwarp_pd_dealloc(pd_), EBUSY);
  EXPECT_EQ(uiwarp_mw_dealloc(mw), 0);
}

TEST_F(Memory, WindowsEndAtTheLimit) {
  mem::Table& table = context_->memory;
  std::vector<uint32_t> stags;
  while (table.windows() < device::Limits::kMaxMw - 1)
    stags.push_back(*table.add_window(0, mem::WindowType::kType2, device::Limits::kMaxMw));
  uiwarp_mw *last = nullptr, *more = nullptr;
  uint32_t rkey = 0;
  EXPECT_EQ(uiwarp_mw_alloc(pd_, IBV_MW_TYPE_2, &last, &rkey), 0);
  EXPECT_EQ(uiwarp_mw_alloc(pd_, IBV_MW_TYPE_2, &more, &rkey), ENOMEM);
  EXPECT_EQ(uiwarp_mw_dealloc(last), 0);
  for (uint32_t stag : stags) EXPECT_EQ(table.remove_window(stag), 0);
}

}  // namespace
}  // namespace uiw::verbs
