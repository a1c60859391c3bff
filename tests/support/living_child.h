// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace uiw::test {

// A process that was forked off when this object was made, and lives as long as it does. What
// pthread_atfork(3) has it do is done then.
class LivingChild {
 public:
  LivingChild() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair_), 0);
    pid_ = fork();
    char octet = 0;
    if (pid_ != 0) {
      close(pair_[1]);
      EXPECT_EQ(read(pair_[0], &octet, 1), 1);
      return;
    }
    close(pair_[0]);
    const bool told = write(pair_[1], &octet, 1) == 1;
    _exit(told && read(pair_[1], &octet, 1) == 0 ? 0 : 1);
  }
  ~LivingChild() {
    close(pair_[0]);
    EXPECT_EQ(waitpid(pid_, nullptr, 0), pid_);
  }
  LivingChild(const LivingChild&) = delete;
  LivingChild& operator=(const LivingChild&) = delete;

 private:
  int pair_[2];
  pid_t pid_;
};

}  // namespace uiw::test
