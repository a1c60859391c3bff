// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "devices.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "run.h"
#include "without_device.h"

namespace uiw::tool {
namespace {

// Runs the probe; with `output`, its standard output goes there. Its status, as a shell has it.
int probe(const Layout& layout, const char* form, std::string* output) {
  int fds[2] = {-1, -1};
  std::string program = layout.probe, verb = "devices", wanted = form;
  char* argv[] = {program.data(), verb.data(), wanted.data(), nullptr};
  const bool piped = !output || pipe(fds) == 0;
  const pid_t pid = piped ? fork() : -1;
  if (pid == 0) {
    if (output) dup2(fds[1], STDOUT_FILENO);
    for (const int fd : fds) close(fd);
    _exit(run_program(layout, argv));
  }
  close(fds[1]);
  char part[4096];
  for (ssize_t size; pid > 0 && output && (size = read(fds[0], part, sizeof part)) > 0;)
    output->append(part, static_cast<size_t>(size));
  close(fds[0]);
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) {
    fprintf(stderr, "uiwarp: cannot start %s: %s\n", layout.probe.c_str(), strerror(errno));
    return 125;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int print_json(const Layout& layout) {
  std::string output;
  const int status = probe(layout, "json", &output);
  nlohmann::ordered_json found = nlohmann::ordered_json::parse(output, nullptr, false);
  if (!found.is_array()) return status ? status : 1;  // the probe has said why
  nlohmann::ordered_json others = nlohmann::ordered_json::array();
  for (const WithoutDevice& one : without_device())
    others.push_back({{"interface", one.interface}, {"why", one.why}});
  const nlohmann::ordered_json all = {{"devices", found}, {"without_device", others}};
  printf("%s\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return status;
}

}  // namespace

int devices(const Layout& layout, DevicesAs as) {
  if (layout.probe.empty()) {
    fprintf(stderr, "uiwarp: uiwarp-probe not found beside %s. Build or install uiwarp again.\n",
            layout.binary.c_str());
    return 125;
  }
  if (as == DevicesAs::kJson) return print_json(layout);
  const int status = probe(layout, "text", nullptr);
  for (const std::string& line : lines_of(without_device())) printf("%s\n", line.c_str());
  return status;
}

}  // namespace uiw::tool
