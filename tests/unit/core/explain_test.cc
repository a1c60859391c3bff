// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/explain.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "core/cause.h"
#include "core/explain_of.h"
#include "core/tuning.h"
#include "support/in_child.h"

namespace uiw::core {
namespace {

class Explain : public ::testing::Test {
 protected:
  // In a child: a process reads its settings once, and other tests here are the first to.
  static std::string output_of(void (*body)()) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    test::in_child([&] {
      dup2(ends[1], STDERR_FILENO);
      body();
      return 0;
    });
    close(ends[1]);
    std::string said;
    char buffer[4096];
    for (ssize_t size; (size = read(ends[0], buffer, sizeof buffer)) > 0;)
      said.append(buffer, static_cast<size_t>(size));
    close(ends[0]);
    return said;
  }
  static ptrdiff_t lines_of(const std::string& text) { return std::ranges::count(text, '\n'); }
};

TEST_F(Explain, SaysASentenceOnceOfAnObjectWhateverItsNumbers) {
  const std::string said = output_of([] {
    Told one, other;
    for (int i = 1; i <= 3; ++i) explain(one, "one sentence, %d", i);
    explain(one, "another sentence");
    explain(other, "one sentence of another object, %d", 4);
  });
  EXPECT_EQ(said,
            "uiwarp: one sentence, 1\n"
            "uiwarp: another sentence\n"
            "uiwarp: one sentence of another object, 4\n");
}

TEST_F(Explain, RefusalsReturnTheErrorSaidOrNot) {
  const std::string said = output_of([] {
    Told told;
    for (int i = 0; i < 2; ++i)
      if (refuse(told, EINVAL, "refused: %s", "a reason") != EINVAL) _exit(1);
  });
  EXPECT_EQ(said, "uiwarp: refused: a reason\n");
}

TEST_F(Explain, SaysTheSameOfAFewObjectsOnly) {
  const std::string said = output_of([] {
    for (uint32_t i = 0; i < tuning::kMostExplained + 10; ++i) {
      Told object;
      explain(object, "of many objects");
    }
  });
  EXPECT_EQ(lines_of(said), tuning::kMostExplained);
}

TEST_F(Explain, SaysNoMoreOfAnObjectThanItCanRemember) {
  static constexpr char kSentences[20] = {};  // known by where they lie
  Told told;
  int said = 0;
  for (int round = 0; round < 2; ++round)
    for (const char& sentence : kSentences) said += told.first(&sentence);
  EXPECT_EQ(said, 16);
}

TEST_F(Explain, SaysWhatSeveralHaveInCommonOnceForEach) {
  const std::string said = output_of([] {
    Told told;
    for (int i = 0; i < 2; ++i)
      for (const char* const call : {"one call", "another"})
        if (refuse_of(call, told, EINVAL, "%s: a sentence, %d", call, i) != EINVAL) _exit(1);
    refuse_of("another", told, EINVAL, "another sentence");
  });
  EXPECT_EQ(said,
            "uiwarp: one call: a sentence, 0\n"
            "uiwarp: another: a sentence, 0\n"
            "uiwarp: another sentence\n");
}

TEST_F(Explain, TellsPairsApartWhoseTwoPartsLieSideBySide) {
  static constexpr char kPlaces[4] = {};
  Told told;
  int said = 0;
  for (int round = 0; round < 2; ++round)
    for (const char& of : kPlaces)
      for (const char& sentence : kPlaces) said += first_of(&of, told, &sentence);
  EXPECT_EQ(said, 16);
}

TEST(Causes, EachHasItsOwnValueAndWords) {
  std::set<uint32_t> values;
  std::set<std::string> names, texts;
  for (const CauseInfo& info : cause_table()) {
    EXPECT_TRUE(values.insert(static_cast<uint32_t>(info.cause)).second) << info.name;
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_TRUE(texts.insert(info.text).second) << info.name;
    EXPECT_EQ(find_cause(static_cast<uint32_t>(info.cause)), &info);
  }
  EXPECT_TRUE(std::ranges::is_sorted(cause_table(), {}, &CauseInfo::cause));
}

TEST(Causes, ThoseOfTerminatesHaveItsCodeInTheLowerBits) {
  const Cause peers = cause_of_terminate(End::kPeer, TermCode::kTaggedBounds);
  EXPECT_EQ(static_cast<uint32_t>(peers), 0x11101u);
  EXPECT_EQ(find_cause(0x11101)->cause, Cause::kPeerTerminated);
  const Cause own = cause_of_terminate(End::kHere, TermCode::kUntaggedNoBuffer);
  EXPECT_EQ(static_cast<uint32_t>(own), 0x21202u);
  EXPECT_EQ(find_cause(0x21202)->cause, Cause::kTerminatedHere);
}

TEST(Causes, ValuesWithoutACauseAreNone) {
  for (const uint32_t value : {1u, 0xffu, 0x1234u, 0x31101u}) EXPECT_EQ(find_cause(value), nullptr);
}

}  // namespace
}  // namespace uiw::core
