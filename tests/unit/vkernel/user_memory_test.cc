// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/user_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "support/in_child.h"
#include "support/refused_calls.h"
#include "unit/vkernel/memory_end.h"

namespace uiw::vkernel {
namespace {

void* const kBad[] = {nullptr, user_pointer(16), user_pointer(~uint64_t{0} - 4)};

TEST(UserMemory, IsCopied) {
  char text[16] = "";
  const auto heap = std::make_unique<char[]>(sizeof text);
  std::strcpy(heap.get(), "in");
  errno = 4711;
  EXPECT_EQ(copy_in(text, heap.get(), 3), 0);
  EXPECT_STREQ(text, "in");
  EXPECT_EQ(copy_out(heap.get(), "out", 4), 0);
  EXPECT_STREQ(heap.get(), "out");
  // Near us on the stack.
  EXPECT_EQ(copy_out(text, "near", 5), 0);
  EXPECT_STREQ(text, "near");
  EXPECT_EQ(copy_in(heap.get(), text, 5), 0);
  EXPECT_STREQ(heap.get(), "near");
  EXPECT_EQ(errno, 4711);
}

TEST(UserMemory, WhatIsNotThereIsAnError) {
  char text[16] = "";
  for (void* bad : kBad) {
    EXPECT_EQ(copy_in(text, bad, sizeof text), EFAULT) << bad;
    EXPECT_EQ(copy_out(bad, text, sizeof text), EFAULT) << bad;
    EXPECT_EQ(copy_in(text, bad, 0), 0) << bad;
    EXPECT_EQ(copy_out(bad, text, 0), 0) << bad;
  }
  const test::MemoryEnd memory;
  EXPECT_EQ(copy_in(text, memory.end() - 8, 8), 0);
  EXPECT_EQ(copy_in(text, memory.end() - 8, 9), EFAULT);
  EXPECT_EQ(copy_out(memory.end() - 8, text, 8), 0);
  EXPECT_EQ(copy_out(memory.end() - 8, text, 9), EFAULT);
}

TEST(UserMemory, WhatCannotBeWrittenToIsAnError) {
  char text[16] = "";
  void* const page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_EQ(copy_in(text, page, sizeof text), 0);
  EXPECT_EQ(copy_out(page, text, sizeof text), EFAULT);
  munmap(page, 4096);
}

TEST(UserMemory, IsCopiedWhereTheKernelIsNotToBeAsked) {
  const auto heap = std::make_unique<char[]>(16);
  for (int error : {EPERM, ENOSYS}) {
    uiw::test::in_child([&] {
      char text[16] = "";
      if (!uiw::test::refuse_calls({SYS_process_vm_readv, SYS_process_vm_writev}, error)) return 1;
      if (copy_out(heap.get(), "out", 4) != 0) return 2;
      if (copy_in(text, heap.get(), 4) != 0 || std::strcmp(text, "out") != 0) return 3;
      if (copy_in(text, nullptr, 4) != EFAULT || copy_in(text, user_pointer(16), 4) != EFAULT)
        return 4;
      return copy_out(nullptr, text, 4) == EFAULT ? 0 : 5;
    });
  }
}

}  // namespace
}  // namespace uiw::vkernel
