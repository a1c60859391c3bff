// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/stack.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <span>
#include <string_view>

namespace uiw::check {
namespace {

__attribute__((noinline)) Stack taken() {
  Stack stack;
  capture(stack);
  return stack;
}

TEST(Stacks, AreTheSameWhereTheirFramesAre) {
  Stack stacks[3];
  const volatile int twice = 2;  // so that the calls stay one place
  for (int i = 0; i < twice; ++i) stacks[i] = taken();
  stacks[2] = taken();
  EXPECT_EQ(stacks[0], stacks[1]);
  EXPECT_NE(stacks[0], stacks[2]);
  EXPECT_GT(stacks[0].calls().count, 1u);
  Backtrace shorter = stacks[0].calls();
  EXPECT_EQ(Stack(shorter), stacks[0]);
  --shorter.count;
  EXPECT_NE(Stack(shorter), stacks[0]);
}

Stack of_callback;
void back() {
  of_callback = taken();
}

std::string_view library_of(uintptr_t address) {
  Dl_info info;
  return dladdr(reinterpret_cast<void*>(address - 1), &info) ? info.dli_fname : "";
}

// Where one library was another one is loaded, whose function of that address has another frame.
TEST(Stacks, GoThroughALibraryThatTookThePlaceOfAnother) {
  const char* const names[] = {UIWARP_FRAMES_LARGE, UIWARP_FRAMES_SMALL};
  for (int i = 0; i < 6; ++i) {
    void* const library = dlopen(names[i % 2], RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    reinterpret_cast<void (*)(void (*)())>(dlsym(library, "call_with_frame"))(back);
    const std::span<const uintptr_t> calls = of_callback.calls().addresses();
    // Of back(), the library and this test; taken() is left out.
    ASSERT_GT(calls.size(), 2u);
    EXPECT_EQ(library_of(calls[1]), std::string_view(names[i % 2]));
    EXPECT_EQ(library_of(calls[2]), library_of(calls[0]));
    dlclose(library);
  }
}

TEST(Stacks, OfNoCallAndLostOnesHaveNoFrames) {
  EXPECT_EQ(Stack(Backtrace{}), Stack());
  EXPECT_FALSE(Stack().is_lost());
  EXPECT_TRUE(Stack::lost().is_lost());
  EXPECT_TRUE(Stack().calls().addresses().empty());
  EXPECT_TRUE(Stack::lost().calls().addresses().empty());
}

}  // namespace
}  // namespace uiw::check
