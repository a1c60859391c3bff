// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/destroyed_ids.h"

#include <gmock/gmock.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "core/raw_sys.h"

namespace uiw::check {
namespace {

using testing::HasSubstr;

// As librdmacm's: what the program knows, and the condition by which rdma_destroy_id() waits.
struct CmId {
  uint64_t known[52] = {1, 2, 3, 4};
  pthread_cond_t acknowledged = PTHREAD_COND_INITIALIZER;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  bool done = false;

  uint64_t uid() const { return reinterpret_cast<uintptr_t>(this); }
  void wait() {
    pthread_mutex_lock(&mutex);
    while (!done) pthread_cond_wait(&acknowledged, &mutex);
    pthread_mutex_unlock(&mutex);
  }
  void acknowledge() {
    pthread_mutex_lock(&mutex);
    done = true;
    pthread_cond_signal(&acknowledged);
    pthread_mutex_unlock(&mutex);
  }
};

class Destroyer {
 public:
  explicit Destroyer(CmId& id)
      : id_(id), thread_([this] {
          tid = core::sys::gettid();
          id_.wait();
        }) {
    for (int i = 0; i < 10000; ++i) {
      const auto call = blocked_in(tid);
      if (call && call->number == SYS_futex) return;
      usleep(1000);
    }
    ADD_FAILURE() << "it does not wait";
  }
  ~Destroyer() {
    id_.acknowledge();
    thread_.join();
  }
  std::atomic<int> tid{0};

 private:
  CmId& id_;
  std::thread thread_;
};

size_t looks_until_found(DestroyedIds& ids, std::vector<Finding>& findings) {
  for (size_t looks = 1; looks <= 10; ++looks) {
    ids.look(findings);
    if (!findings.empty()) return looks;
  }
  return 0;
}

TEST(DestroyedIdsTest, WhoWaitsForAnAcknowledgementIsFoundOnce) {
  CmId id;
  Destroyer destroyer(id);
  DestroyedIds ids;
  const Stack got({.frames = {1}, .count = 1}), here({.frames = {2}, .count = 1});
  ids.event_taken(id.uid(), got);
  EXPECT_TRUE(ids.destroyed(id.uid(), 2, here, destroyer.tid));
  std::vector<Finding> findings;
  EXPECT_EQ(looks_until_found(ids, findings), 3u);  // a second
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, Kind::kNotAcknowledged);
  EXPECT_THAT(findings[0].what, HasSubstr("2 events"));
  ASSERT_EQ(findings[0].places.size(), 2u);
  EXPECT_EQ(findings[0].places[0].stack, here);
  EXPECT_EQ(findings[0].places[1].stack, got);
  findings.clear();
  EXPECT_EQ(looks_until_found(ids, findings), 0u);
}

TEST(DestroyedIdsTest, WhoDestroysWithoutEventsIsNotLookedAt) {
  CmId id;
  DestroyedIds ids;
  EXPECT_FALSE(ids.destroyed(id.uid(), 0, {}, core::sys::gettid()));
}

TEST(DestroyedIdsTest, AWaitForSomethingElseIsNone) {
  CmId id, other;
  Destroyer waiting_elsewhere(other);
  DestroyedIds ids;
  EXPECT_TRUE(ids.destroyed(id.uid(), 1, {}, waiting_elsewhere.tid));
  std::vector<Finding> findings;
  EXPECT_EQ(looks_until_found(ids, findings), 0u);
}

// The id has gone, and the thread waits for a condition of the program's in the same memory.
TEST(DestroyedIdsTest, MemoryThatHasBecomeSomethingElseIsNoId) {
  CmId id;
  Destroyer destroyer(id);
  DestroyedIds ids;
  EXPECT_TRUE(ids.destroyed(id.uid(), 1, {}, destroyer.tid));
  id.known[1] = 77;
  std::vector<Finding> findings;
  EXPECT_EQ(looks_until_found(ids, findings), 0u);
}

}  // namespace
}  // namespace uiw::check
