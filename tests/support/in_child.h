// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace uiw::test {

// Runs `check` in a child made by fork() and expects it to return 0.
template <class Check>
void in_child(Check check) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(check());
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "check number of the child";
}

// The same in a thread of the child whose main thread has ended.
template <class Check>
void in_child_without_main_thread(Check check) {
  in_child([&] {
    static Check* run;
    run = &check;
    pthread_t thread;
    const auto body = [](void* main) -> void* {
      pthread_join(*static_cast<pthread_t*>(main), nullptr);
      _exit((*run)());
    };
    static pthread_t main;
    main = pthread_self();
    pthread_create(&thread, nullptr, body, &main);
    syscall(SYS_exit, 0);  // of this thread
    return 1;
  });
}

}  // namespace uiw::test
