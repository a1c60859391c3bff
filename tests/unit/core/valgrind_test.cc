// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/valgrind.h"

#include <gtest/gtest.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

namespace uiw::core::test {
namespace {

struct Question {
  pthread_t thread;
  sem_t answered;
  bool in_time = false;
};

void* ask(void* argument) {
  under_memcheck();
  under_valgrind();
  sem_post(&static_cast<Question*>(argument)->answered);
  return nullptr;
}

// What holds the C library's lock here is left locked in the child of a fork at this moment.
TEST(Valgrind, IsKnownWhileAnotherThreadLooksThroughTheLibraries) {
  Question question;
  ASSERT_EQ(0, sem_init(&question.answered, 0, 0));
  dl_iterate_phdr(
      [](dl_phdr_info*, size_t, void* argument) {
        auto& asked = *static_cast<Question*>(argument);
        pthread_create(&asked.thread, nullptr, ask, &asked);
        timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 10;
        asked.in_time = sem_timedwait(&asked.answered, &until) == 0;
        return 1;
      },
      &question);
  EXPECT_TRUE(question.in_time);
  pthread_join(question.thread, nullptr);
  sem_destroy(&question.answered);
}

}  // namespace
}  // namespace uiw::core::test
