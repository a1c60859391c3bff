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
    struct Child {
      Check& check;
      pthread_t main;
    } child{check, pthread_self()};
    const auto body = [](void* argument) -> void* {
      Child& its = *static_cast<Child*>(argument);
      pthread_join(its.main, nullptr);
      _exit(its.check());
    };
    pthread_t thread;
    pthread_create(&thread, nullptr, body, &child);
    syscall(SYS_exit, 0);  // of this thread, whose stack stays
    return 1;
  });
}

}  // namespace uiw::test
