// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "environment.h"
#include "host_devices.h"
#include "target.h"

namespace uiw::tool {
namespace {

int status_of(int error) {
  return error == ENOENT ? 127 : 126;
}

}  // namespace

int run_program(const Layout& layout, char** argv) {
  std::string problem;
  if (!set_environment(layout, problem)) {
    fprintf(stderr, "uiwarp: %s\n", problem.c_str());
    return 125;
  }
  int error = 0;
  const std::string path = find_program(argv[0], error);
  if (path.empty()) {
    if (error == ENOENT)
      fprintf(stderr, "uiwarp: program '%s' not found. Check its name and PATH.\n", argv[0]);
    else
      fprintf(stderr, "uiwarp: '%s' cannot be executed: %s\n", argv[0], strerror(error));
    return status_of(error);
  }
  problem = why_invisible(path);
  if (!problem.empty())
    fprintf(stderr, "uiwarp: warning: %s: it will not see the uiwarp device.\n", problem.c_str());
  // Who says that it is to be so needs no warning.
  if (!getenv("UIWARP_MODE") && stays_away())
    fprintf(stderr,
            "uiwarp: warning: this host has RDMA devices, and %s will see those:%s. "
            "UIWARP_MODE=exclusive shows uiwarp's instead, UIWARP_MODE=auto is as now without "
            "this warning.\n",
            path.c_str(), host_devices().c_str());
  // By the name given, so that argv[0] and a script without "#!" behave as in a shell.
  execvp(argv[0], argv);
  error = errno;
  fprintf(stderr, "uiwarp: cannot start '%s': %s\n", path.c_str(), strerror(error));
  return status_of(error);
}

int run_program(const Layout& layout, const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  return run_program(layout, argv.data());
}

int why_not_started(const Layout& layout, const std::vector<std::string>& command) {
  const std::string incomplete = why_incomplete(layout);
  if (!incomplete.empty()) {
    fprintf(stderr, "uiwarp: %s\n", incomplete.c_str());
    return 125;
  }
  int error = 0;
  if (!find_program(command.front(), error).empty()) return 0;
  fprintf(stderr, "uiwarp: program '%s' cannot be started: %s\n", command.front().c_str(),
          strerror(error));
  return status_of(error);
}

}  // namespace uiw::tool
