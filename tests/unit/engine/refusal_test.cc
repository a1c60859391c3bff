// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the engine does where the system refuses io_uring, as container profiles do.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <string>

#include "core/settings.h"
#include "engine/engine.h"
#include "support/refused_calls.h"
#include "unit/engine/support.h"

namespace uiw::engine {
namespace {

// What a child process says on standard error when it starts an engine under that refusal; its
// exit status is the failed step.
std::string start_refused(long call, int error, int& failed_step) {
  int channel[2];
  EXPECT_EQ(pipe(channel), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(channel[1], STDERR_FILENO);
    if (!uiw::test::refuse_calls({call}, error)) _exit(1);
    auto engine = Engine::start();
    if (core::settings().engine == core::EngineKind::kIoUring) {
      _exit(!engine && engine.error() == error ? 0 : 2);
    }
    if (!engine) _exit(3);
    if (std::string((*engine)->backend_name()) != "epoll") _exit(4);
    int calls = 0;
    (*engine)->run_sync([&] { ++calls; });
    _exit(calls == 1 ? 0 : 5);
  }
  close(channel[1]);
  std::string said;
  char part[512];
  for (long n; (n = read(channel[0], part, sizeof part)) > 0;) said.append(part, n);
  close(channel[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  failed_step = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return said;
}

TEST(Refusal, EpollIsTakenAndSaidSoOnce) {
  test::poll_until([] { return test::threads() <= 2; });  // a sanitizer may have one
  // A profile may list some of them only. EACCES is what security modules have.
  for (long call : {SYS_io_uring_setup, SYS_io_uring_register, SYS_io_uring_enter}) {
    for (int error : {EPERM, ENOSYS, EACCES}) {
      SCOPED_TRACE(testing::Message() << call << ' ' << error);
      int failed_step = -1;
      const std::string said = start_refused(call, error, failed_step);
      EXPECT_EQ(failed_step, 0) << said;
      if (core::settings().engine == core::EngineKind::kAuto) {
        EXPECT_NE(said.find("io_uring"), std::string::npos) << said;
        EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
      } else {
        EXPECT_EQ(said, "");
      }
    }
  }
}

}  // namespace
}  // namespace uiw::engine
