// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/user_memory.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include "support/in_child.h"
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

bool refuse(int error) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{sizeof filter / sizeof filter[0], filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(UserMemory, IsCopiedWhereTheKernelIsNotToBeAsked) {
  const auto heap = std::make_unique<char[]>(16);
  for (int error : {EPERM, ENOSYS}) {
    uiw::test::in_child([&] {
      char text[16] = "";
      if (!refuse(error)) return 1;
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
