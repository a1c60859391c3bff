// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults/mailbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "faults/files.h"

namespace uiw::faults {
namespace {

TEST(Mailbox, AQuestionIsReadAsItWasWritten) {
  const Question asks = question_of(written(Question{}));
  EXPECT_FALSE(asks.changes);
  const Question changes =
      question_of(written(Question{true, "/tmp/rules", "seed 1\ngid=shift at=1s\n"}));
  EXPECT_TRUE(changes.changes);
  EXPECT_EQ(changes.name, "/tmp/rules");
  EXPECT_EQ(changes.text, "seed 1\ngid=shift at=1s\n");
  EXPECT_EQ(question_of(written(Question{true, "none", ""})).name, "none");
  EXPECT_FALSE(question_of("").changes);
  EXPECT_TRUE(question_of("use\n").changes);
  EXPECT_EQ(question_of("use\nname").name, "name");
}

TEST(Mailbox, ATurnGoesToWhoHasIt) {
  int error = 1;
  Mailbox* const mailbox = make_mailbox(error);
  ASSERT_TRUE(mailbox);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(mailbox->owner, getpid());
  EXPECT_FALSE(pass_turn(*mailbox, Turn::kAsked, Turn::kTaken));
  EXPECT_EQ(wait_while(*mailbox, Turn::kFree, core::kMillisecond), Turn::kFree);
  std::thread other([&] {
    while (wait_while(*mailbox, Turn::kFree, -1) == Turn::kFree) {
    }
    EXPECT_EQ(read_text(*mailbox), "question");
    EXPECT_TRUE(pass_turn(*mailbox, Turn::kAsked, Turn::kAnswered));
  });
  write_text(*mailbox, "question");
  EXPECT_TRUE(pass_turn(*mailbox, Turn::kFree, Turn::kAsked));
  while (wait_while(*mailbox, Turn::kAsked, -1) == Turn::kAsked) {
  }
  other.join();
  EXPECT_EQ(mailbox->turn.load(), Turn::kAnswered);
  write_text(*mailbox, std::string(Mailbox::kMostText + 9, 'x'));
  EXPECT_EQ(read_text(*mailbox).size(), Mailbox::kMostText);
  mailbox->size = ~0u;  // whoever shares it may write what he likes
  EXPECT_EQ(read_text(*mailbox).size(), Mailbox::kMostText);
  unmap_mailbox(mailbox);
}

TEST(Mailbox, WhatAnotherCouldMakeShorterIsNotMapped) {
  const int fd = memfd_create("uiwarp-faults", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(map_mailbox(fd), nullptr);
  const uint64_t magic = Mailbox::kMagic;
  ASSERT_EQ(ftruncate(fd, sizeof(Mailbox)), 0);
  ASSERT_EQ(pwrite(fd, &magic, sizeof magic, 0), 8);
  EXPECT_EQ(map_mailbox(fd), nullptr);
  ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  Mailbox* const mailbox = map_mailbox(fd);
  ASSERT_TRUE(mailbox);
  unmap_mailbox(mailbox);
  ASSERT_EQ(pwrite(fd, "x", 1, 0), 1);
  EXPECT_EQ(map_mailbox(fd), nullptr);
  close(fd);
}

TEST(FaultFiles, ANameIsAPathOrOfReadyMadeRules) {
  std::string problem;
  EXPECT_EQ(find_rules("none", "/nonexistent", problem), "none");
  EXPECT_EQ(find_rules("/nonexistent/x", "/nonexistent", problem), "/nonexistent/x");
  EXPECT_EQ(problem, "");
  EXPECT_EQ(find_rules("slow-peer", "/nonexistent", problem), "");
  EXPECT_EQ(problem, "there is no file 'slow-peer', nor ready-made rules of that name (none)");
  Rules rules;
  EXPECT_EQ(load("none", rules), "");
  EXPECT_TRUE(rules.list.empty());
  EXPECT_EQ(rules.name, "none");
}

}  // namespace
}  // namespace uiw::faults
