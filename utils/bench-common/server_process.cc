// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "server_process.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace uiw::bench {

void die(const char* what) {
  fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
  exit(1);
}

ServerProcess::ServerProcess(const std::function<void(const Tell&)>& serve) {
  int ports[2];
  if (pipe(ports) != 0) die("pipe");
  pid_ = fork();
  if (pid_ < 0) die("fork");
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve([&ports](in_port_t port) {
      if (write(ports[1], &port, sizeof port) < 0) die("write");
    });
    _exit(0);
  }
  close(ports[1]);
  if (read(ports[0], &port_, sizeof port_) <= 0) port_ = 0;
  close(ports[0]);
}

bool ServerProcess::ended_well() const {
  int status = 0;
  waitpid(pid_, &status, 0);
  return status == 0;
}

}  // namespace uiw::bench
