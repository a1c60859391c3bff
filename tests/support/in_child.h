// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <gtest/gtest.h>
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

}  // namespace uiw::test
