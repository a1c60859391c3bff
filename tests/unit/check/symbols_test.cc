// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/symbols.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "check/stack.h"

namespace uiw::check {
namespace {

// As a function of the checked table, whose own frame is left out.
__attribute__((noinline)) int take(Stack& stack) {
  capture(stack);
  return static_cast<int>(stack.calls().count);
}

int line_of_call = 0;

__attribute__((noinline)) int caller(Stack& stack) {
  line_of_call = __LINE__ + 1;
  const int frames = take(stack);
  return frames + 1;
}

TEST(Symbols, FunctionFileAndLineOfACall) {
  Stack stack;
  ASSERT_GT(caller(stack), 2);
  const std::vector<Frame> frames = Symbols().frames_of(stack.calls());
  ASSERT_GE(frames.size(), 2u);
  EXPECT_NE(frames[0].function.find("caller(uiw::check::Stack&)"), std::string::npos)
      << frames[0].function;
  EXPECT_TRUE(std::string_view(frames[0].file).ends_with("symbols_test.cc")) << frames[0].file;
  EXPECT_EQ(frames[0].line, line_of_call);
  EXPECT_FALSE(frames[0].module.empty());
}

__attribute__((noinline)) void take_for_c(void* stack) {
  capture(*static_cast<Stack*>(stack));
}

// The frame of `function` in a library that is loaded after symbols were looked up before.
void from_library(const char* path, Frame& frame, const char* function = "calls_back") {
  Symbols symbols;
  Stack stack;
  take(stack);
  symbols.frames_of(stack.calls());
  void* const library = dlopen(path, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  using Call = void(void (*)(void*), void*);
  const auto call = reinterpret_cast<Call*>(dlsym(library, function));
  ASSERT_NE(call, nullptr);
  call(take_for_c, &stack);
  const std::vector<Frame> frames = symbols.frames_of(stack.calls());
  ASSERT_FALSE(frames.empty());
  frame = frames[0];
  dlclose(library);
}

TEST(Symbols, NamesOfCAreNoTypesOfCpp) {
  for (const char* const path : {UIWARP_CALLING_DEBUG, UIWARP_CALLING_STRIPPED}) {
    SCOPED_TRACE(path);
    Frame frame;
    from_library(path, frame, "f");
    EXPECT_EQ(frame.function, "f");
  }
}

TEST(Symbols, ALoadedLibraryInCHasFileAndLine) {
  for (const char* const path : {UIWARP_CALLING_DEBUG, UIWARP_CALLING_UNINDEXED}) {
    SCOPED_TRACE(path);
    Frame frame;
    from_library(path, frame);
    EXPECT_EQ(frame.function, "calls_back");
    EXPECT_TRUE(frame.file.ends_with("unit/check/calling.c")) << frame.file;
    EXPECT_EQ(frame.line, 8);
  }
}

TEST(Symbols, WithoutDebugInformationThereAreFunctionAndOffset) {
  Frame frame;
  from_library(UIWARP_CALLING_STRIPPED, frame);
  EXPECT_EQ(frame.function, "calls_back");
  EXPECT_EQ(frame.file, "");
  EXPECT_TRUE(frame.module.ends_with("check_calling_stripped.so")) << frame.module;
  EXPECT_GT(frame.offset, 0u);
}

TEST(Symbols, WhatIsNoCodeIsShownAsAnAddress) {
  const std::vector<Frame> frames = Symbols().frames_of({.frames = {0x11}, .count = 1});
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].offset, 0x10u);
  EXPECT_TRUE(frames[0].module.empty());
}

TEST(Symbols, CallsOfPythonStandBehindThoseOfItsModules) {
  const PythonStack python = {{"inner", "one.py", 7}, {"<module>", "two.py", 9}};
  Stack stack;
  caller(stack);
  Backtrace calls = stack.calls();
  calls.python = &python;
  const std::vector<Frame> frames = Symbols().frames_of(calls);
  ASSERT_GE(frames.size(), 3u);
  EXPECT_NE(frames[0].function.find("caller("), std::string::npos) << frames[0].function;
  const Frame& inner = frames[frames.size() - 2];
  EXPECT_EQ(inner.function, "inner");
  EXPECT_EQ(inner.file, "one.py");
  EXPECT_EQ(inner.line, 7);
  EXPECT_EQ(frames.back().function, "<module>");
}

TEST(Symbols, WithoutAnInterpreterThereAreNoCallsOfPython) {
  Stack stack;
  take(stack);
  EXPECT_EQ(stack.calls().python, nullptr);
}

}  // namespace
}  // namespace uiw::check
