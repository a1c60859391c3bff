// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/event_pipe.h"

#include <cerrno>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "support.h"
#include "support/in_child.h"

namespace uiw::verbs {
namespace {

using test::Channel;
using test::readable;

// By what they are called.
struct Sources {
  EventSource& operator[](uint64_t element) {
    return all.try_emplace(element, element).first->second;
  }
  std::map<uint64_t, EventSource> all;
};

TEST(EventPipe, AsyncRecordsAreTheKernels) {
  std::atomic<uint32_t> backlog{0};
  EventPipe pipe(kAsyncRecord, backlog);
  int reader = -1;
  ASSERT_EQ(pipe.create(&reader), 0);
  EXPECT_EQ(fcntl(reader, F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(fcntl(reader, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_FALSE(readable(reader));
  EventSource source(0x1122334455667788);
  pipe.send(source, IBV_EVENT_QP_FATAL);
  const auto records = test::read_all<EventRecord>(reader);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].element, 0x1122334455667788u);
  EXPECT_EQ(records[0].type, static_cast<uint32_t>(IBV_EVENT_QP_FATAL));
  EXPECT_EQ(records[0].reserved, 0u);
  close(reader);
}

TEST(EventPipe, SendingAfterTheReaderClosedIsHarmless) {
  std::atomic<uint32_t> backlog{0};
  EventPipe pipe(kAsyncRecord, backlog);
  int reader = -1;
  ASSERT_EQ(pipe.create(&reader), 0);
  close(reader);
  EventSource source(1);
  pipe.send(source, 2);  // no SIGPIPE
  EXPECT_EQ(pipe.purge(source), 1u);
}

TEST(EventPipe, JoiningLeavesTheOwnersFlagsAlone) {
  Channel channel;
  std::atomic<uint32_t> backlog{0};
  EventPipe pipe(kCompletionRecord, backlog);
  ASSERT_EQ(pipe.join(channel.fd()), 0);
  EXPECT_EQ(fcntl(channel.fd(), F_GETFL) & O_NONBLOCK, 0);
  EventSource source(7);
  pipe.send(source, 0);
  EXPECT_EQ(channel.read_all(), (std::vector<uint64_t>{7}));
}

TEST(EventPipe, JoiningSomethingElseFails) {
  std::atomic<uint32_t> backlog{0};
  EventPipe pipe(kCompletionRecord, backlog);
  EXPECT_EQ(pipe.join(-1), EBADF);
  const int null = open("/dev/null", O_RDWR);
  EXPECT_EQ(pipe.join(null), EINVAL);
  close(null);
}

TEST(EventPipe, PurgeTakesBackOneElementAndKeepsTheOrderOfTheOthers) {
  Channel channel;
  std::atomic<uint32_t> backlog{0};
  EventPipe pipe(kCompletionRecord, backlog);
  ASSERT_EQ(pipe.join(channel.fd()), 0);
  Sources sources;
  for (uint64_t e : {1, 2, 1, 3, 2, 1, 4}) pipe.send(sources[e], 0);
  EXPECT_EQ(pipe.purge(sources[1]), 3u);
  EXPECT_EQ(pipe.purge(sources[1]), 0u);
  EXPECT_EQ(pipe.purge(sources[9]), 0u);
  EXPECT_EQ(channel.read_all(), (std::vector<uint64_t>{2, 3, 2, 4}));
  EXPECT_EQ(backlog, 0u);
}

// Sends until the pipe is full and `extra` more; returns how many that were.
uint64_t overfill(EventPipe& pipe, Sources& sources, const std::atomic<uint32_t>& backlog,
                  uint64_t extra) {
  uint64_t sent = 0;
  while (backlog == 0) pipe.send(sources[sent++], 0);
  for (uint64_t i = 0; i < extra; ++i) pipe.send(sources[sent++], 0);
  return sent;
}

TEST(EventPipe, AFullPipeNeitherBlocksNorLoses) {
  Channel channel;
  std::atomic<uint32_t> backlog{0};
  Sources sources;
  {
    EventPipe pipe(kCompletionRecord, backlog);
    ASSERT_EQ(pipe.join(channel.fd()), 0);
    const uint64_t sent = overfill(pipe, sources, backlog, 1000);
    EXPECT_EQ(backlog, 1u);
    std::vector<uint64_t> got;
    while (got.size() < sent) {
      ASSERT_TRUE(readable(channel.fd()));
      uint64_t element;
      ASSERT_EQ(read(channel.fd(), &element, sizeof element), 8);
      got.push_back(element);
      pipe.flush();  // as libibverbs' cq_event call makes us do after each read
    }
    for (uint64_t i = 0; i < sent; ++i) ASSERT_EQ(got[i], i);
    EXPECT_FALSE(readable(channel.fd()));
    EXPECT_EQ(backlog, 0u);
    Sources others;
    overfill(pipe, others, backlog, 1);
  }
  EXPECT_EQ(backlog, 0u);  // a destroyed pipe keeps nothing
}

TEST(EventPipe, PurgeSeesWhatIsKeptToo) {
  Channel channel;
  std::atomic<uint32_t> backlog{0};
  EventPipe pipe(kCompletionRecord, backlog);
  ASSERT_EQ(pipe.join(channel.fd()), 0);
  Sources sources;
  const uint64_t sent = overfill(pipe, sources, backlog, 10);
  EXPECT_EQ(pipe.purge(sources[0]), 1u);         // the oldest, in the pipe
  EXPECT_EQ(pipe.purge(sources[sent - 1]), 1u);  // the youngest, kept
  std::vector<uint64_t> got;
  while (got.size() < sent - 2) {
    uint64_t element;
    ASSERT_EQ(read(channel.fd(), &element, sizeof element), 8);
    got.push_back(element);
    pipe.flush();
  }
  for (uint64_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], i + 1);
  EXPECT_FALSE(readable(channel.fd()));
}

// How many calls of read() and write() this process has made; 0: the kernel does not say.
uint64_t calls_made() {
  std::ifstream io("/proc/self/io");
  uint64_t calls = 0;
  for (std::string name; io >> name;) {
    uint64_t value = 0;
    io >> value;
    if (name == "syscr:" || name == "syscw:") calls += value;
  }
  return calls;
}

// Objects with unread events are destroyed: what one of them takes does not grow with the others.
TEST(EventPipe, PurgingOneOfManyTakesAFewCalls) {
  Channel channel;
  std::atomic<uint32_t> backlog{0};
  EventPipe pipe(kCompletionRecord, backlog);
  ASSERT_EQ(pipe.join(channel.fd()), 0);
  constexpr uint64_t kMany = 20'000, kCallsEach = 8;
  Sources sources;
  for (uint64_t i = 0; i < kMany; ++i) pipe.send(sources[i], 0);
  const uint64_t before = calls_made();
  if (before == 0) GTEST_SKIP() << "/proc/self/io does not count calls here";
  for (uint64_t i = 0; i < kMany; ++i) ASSERT_EQ(pipe.purge(sources[kMany - 1 - i]), 1u);
  EXPECT_LE(calls_made() - before, kMany * kCallsEach);
  EXPECT_FALSE(readable(channel.fd()));
  EXPECT_EQ(backlog, 0u);
}

// Two threads send, one reads as libibverbs does, one purges an element of its own between its own
// sends: every event is read or purged exactly once.
TEST(EventPipe, ManyThreads) {
  Channel channel;
  std::atomic<uint32_t> backlog{0};
  EventPipe pipe(kCompletionRecord, backlog);
  ASSERT_EQ(pipe.join(channel.fd()), 0);
  constexpr uint64_t kEach = 10'000, kPurged = 99, kLast = 100;
  EventSource sources[] = {EventSource(0), EventSource(1)};
  EventSource purged_source(kPurged), last(kLast);
  std::thread senders[2];
  for (uint64_t s = 0; s < 2; ++s)
    senders[s] = std::thread([&pipe, &sources, s] {
      for (uint64_t i = 0; i < kEach; ++i) pipe.send(sources[s], 0);
    });
  uint64_t purged = 0;
  std::thread purger([&] {
    for (int i = 0; i < 300; ++i) {
      pipe.send(purged_source, 0);
      purged += pipe.purge(purged_source);
    }
  });
  std::map<uint64_t, uint64_t> seen;
  std::thread reader([&] {
    for (;;) {
      uint64_t element;
      ASSERT_EQ(read(channel.fd(), &element, sizeof element), 8);
      if (element == kLast) return;
      ++seen[element];
      pipe.flush();
    }
  });
  for (std::thread& sender : senders) sender.join();
  purger.join();
  pipe.send(last, 0);
  reader.join();
  EXPECT_EQ(seen[0], kEach);
  EXPECT_EQ(seen[1], kEach);
  EXPECT_EQ(seen[kPurged] + purged, 300u);
  EXPECT_EQ(backlog, 0u);
}

#ifndef __SANITIZE_THREAD__  // which bears no threads in a fork's child
TEST(EventPipe, IsJoinedWhenTheMainThreadHasEnded) {
  Channel channel;
  uiw::test::in_child_without_main_thread([&] {
    std::atomic<uint32_t> backlog{0};
    EventPipe pipe(kCompletionRecord, backlog);
    return pipe.join(channel.fd());
  });
}
#endif

}  // namespace
}  // namespace uiw::verbs
