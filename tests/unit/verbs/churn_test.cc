// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Queue pair numbers and events that come and go for a long time while some stay.
#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <set>

#include "support.h"
#include "verbs/registry.h"

namespace uiw::verbs {
namespace {

// The registry never looks behind the pointer.
session::QueuePair* somebody(uintptr_t which) {
  return reinterpret_cast<session::QueuePair*>(which * 64);
}

TEST(RegistryChurn, IsAsTheModelSays) {
  constexpr size_t kStaying = 300, kComing = 500;
  std::mt19937 random(1);
  std::vector<Registration> all(kStaying + kComing);
  std::set<uint32_t> numbers;
  std::vector<bool> there(all.size());
  const auto begin = [&](size_t i) {
    ASSERT_TRUE(reserve_number(all[i]));
    ASSERT_TRUE(numbers.insert(all[i].qp_num).second) << "two have " << all[i].qp_num;
    ASSERT_EQ(find_queue_pair(all[i].qp_num), nullptr);
    publish(all[i], somebody(i + 1));
    there[i] = true;
  };
  const auto end = [&](size_t i) {
    unregister(all[i]);
    numbers.erase(all[i].qp_num);
    ASSERT_EQ(find_queue_pair(all[i].qp_num), nullptr);
    there[i] = false;
  };
  for (size_t i = 0; i < kStaying; ++i) begin(i);
  for (int step = 0; step < 300'000 && !testing::Test::HasFailure(); ++step) {
    const size_t i = kStaying + random() % kComing;
    there[i] ? end(i) : begin(i);
    const size_t other = random() % all.size();
    if (there[other]) ASSERT_EQ(find_queue_pair(all[other].qp_num), somebody(other + 1));
  }
  for (size_t i = 0; i < all.size(); ++i)
    if (there[i]) end(i);
}

// Events of some elements are read, of others taken back; the pipe is full now and then. Whatever
// is left comes in the order in which it was sent, and nothing is kept in the end.
TEST(EventPipeChurn, IsAsTheModelSays) {
  test::Channel channel;
  std::atomic<uint32_t> backlog{0};
  EventPipe pipe(kCompletionRecord, backlog);
  ASSERT_EQ(pipe.join(channel.fd()), 0);
  std::mt19937 random(2);
  std::deque<EventSource> sources;
  for (uint64_t element = 0; element < 50; ++element) sources.emplace_back(element);
  std::deque<uint64_t> sent;
  const auto read_one = [&] {
    uint64_t element = 0;
    ASSERT_EQ(read(channel.fd(), &element, sizeof element), 8);
    ASSERT_EQ(element, sent.front());
    sent.pop_front();
    pipe.flush();
  };
  for (int step = 0; step < 100'000 && !testing::Test::HasFailure(); ++step) {
    const bool filling = step / 10'000 % 2 == 0;
    if (random() % 100 == 0) {
      const uint64_t element = random() % sources.size();
      ASSERT_EQ(pipe.purge(sources[element]), std::erase(sent, element));
    } else if (sent.empty() || random() % 10 < (filling ? 8 : 2)) {
      sent.push_back(random() % sources.size());
      pipe.send(sources[sent.back()], 0);
    } else {
      read_one();
    }
  }
  while (!sent.empty() && !testing::Test::HasFailure()) read_one();
  EXPECT_FALSE(test::readable(channel.fd()));
  EXPECT_EQ(backlog, 0u);
}

}  // namespace
}  // namespace uiw::verbs
