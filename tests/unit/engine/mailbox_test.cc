// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/mailbox.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace uiw::engine {
namespace {

struct Numbered final : Task {
  void run() override {}
  int producer = 0;
  int number = 0;
};

TEST(Mailbox, GivesTasksOldestFirst) {
  Mailbox mailbox;
  Numbered tasks[3];
  for (Numbered& task : tasks) mailbox.push(task);
  Task* task = mailbox.take_all();
  for (Numbered& expected : tasks) {
    ASSERT_EQ(task, &expected);
    task = Mailbox::next(*task);
  }
  EXPECT_EQ(task, nullptr);
  EXPECT_EQ(mailbox.take_all(), nullptr);
}

TEST(Mailbox, AsksForOneWakeOnlyWhileTheConsumerSleeps) {
  Mailbox mailbox;
  Numbered tasks[4];
  EXPECT_FALSE(mailbox.push(tasks[0]));
  mailbox.take_all();
  ASSERT_TRUE(mailbox.try_sleep());
  EXPECT_TRUE(mailbox.push(tasks[1]));
  EXPECT_FALSE(mailbox.push(tasks[2]));  // the first is on its way to wake it
  mailbox.awake();
  EXPECT_FALSE(mailbox.push(tasks[3]));
}

TEST(Mailbox, DoesNotSleepOnWork) {
  Mailbox mailbox;
  Numbered task;
  mailbox.push(task);
  EXPECT_FALSE(mailbox.try_sleep());
  mailbox.awake();
  EXPECT_EQ(mailbox.take_all(), &task);
  EXPECT_TRUE(mailbox.try_sleep());
}

// Producers against a consumer that really sleeps, on a counter that stands for the eventfd. A lost
// wake-up leaves it asleep forever.
TEST(Mailbox, LosesNeitherTasksNorWakeUps) {
  constexpr int kProducers = 3;
  constexpr int kTasks = 20000;
  Mailbox mailbox;
  std::atomic<int> wakes{0};
  std::vector<std::vector<Numbered>> tasks(kProducers, std::vector<Numbered>(kTasks));
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (int i = 0; i < kTasks; ++i) {
        tasks[p][i].producer = p;
        tasks[p][i].number = i;
        if (mailbox.push(tasks[p][i])) {
          wakes.fetch_add(1);
          wakes.notify_one();
        }
      }
    });
  }
  int next[kProducers] = {};
  int taken = 0;
  int wakes_seen = 0;
  while (taken < kProducers * kTasks) {
    if (mailbox.try_sleep()) {
      wakes.wait(wakes_seen);
      wakes_seen = wakes.load();
    }
    mailbox.awake();
    for (Task* task = mailbox.take_all(); task; task = Mailbox::next(*task)) {
      auto& numbered = static_cast<Numbered&>(*task);
      ASSERT_EQ(numbered.number, next[numbered.producer]++);
      ++taken;
    }
  }
  for (std::thread& producer : producers) producer.join();
}

}  // namespace
}  // namespace uiw::engine
