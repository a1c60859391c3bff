// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "netns_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "core/clock.h"
#include "core/settings.h"
#include "end_signals.h"
#include "run.h"
#include "two_hosts.h"

namespace uiw::tool {
namespace {

constexpr double kLookEvery = 0.05;  // seconds, while the server is to listen
constexpr double kKillAfter = 1;     // seconds from SIGTERM to SIGKILL
constexpr double kNever = HUGE_VAL;

enum class State {
  kNotStarted,
  kRuns,
  kTold,     // it has got SIGTERM from us: how it ends is our doing
  kEnded,    // by itself, with `status`
  kStopped,  // after we told it
};

struct Program {
  const char* name;
  State state = State::kNotStarted;
  pid_t pid = -1;
  int status = 0;

  bool alive() const { return state == State::kRuns || state == State::kTold; }
  bool failed() const { return state == State::kEnded && status != 0; }
};

double now() {
  return static_cast<double>(core::now()) / static_cast<double>(core::kSecond);
}

void fill_in(std::vector<std::string>& command) {
  constexpr std::pair<std::string_view, const char*> kPlaces[] = {{"{server}", kServerAddress},
                                                                  {"{client}", kClientAddress}};
  for (std::string& word : command)
    for (const auto& [place, address] : kPlaces)
      for (size_t at; (at = word.find(place)) != word.npos;)
        word.replace(at, place.size(), address);
}

// Does anybody listen on TCP on the host that this process is on: at `port`, or, when that is 0, at
// one that was chosen and that no queue pair is reached at?
bool somebody_listens(uint16_t port) {
  unsigned first_free = 32768, last_free = 60999;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first_free >> last_free;
  const core::Settings& settings = core::settings();
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);  // the names of the columns
    while (std::getline(file, line)) {
      unsigned local = 0, state = 0;
      constexpr unsigned kListen = 0x0a;
      if (sscanf(line.c_str(), " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &local, &state) != 2 ||
          state != kListen)
        continue;
      const bool is_chosen = (local < first_free || local > last_free) &&
                             (local < settings.first_port || local > settings.last_port);
      if (port != 0 ? local == port : is_chosen) return true;
    }
  }
  return false;
}

class Pair {
 public:
  Pair(const Layout& layout, const PairPlan& plan, const TwoHosts& hosts)
      : layout_(layout), plan_(plan), hosts_(hosts) {}

  int run() {
    start(server_, plan_.server, hosts_.server, "/dev/null");
    const double deadline = now() + plan_.wait;
    while (!over() && client_.state == State::kNotStarted) {
      const bool late = now() >= deadline;
      if (late && plan_.wait > 0) {
        fprintf(stderr, "uiwarp: %s%s after %g s; the client is started anyway (--port, --wait).\n",
                server_.alive() ? "the server does not listen"
                                : "the server has ended and nobody listens",
                plan_.port ? (" on port " + std::to_string(plan_.port)).c_str() : "", plan_.wait);
      }
      if (late || somebody_listens(plan_.port))
        start(client_, plan_.client, hosts_.client, nullptr);
      else
        look(kLookEvery);
    }
    while (!over()) look(std::max(0.0, limit_ - now()));
    end_what_is_left();
    return status();
  }

 private:
  bool over() const {
    if (server_.alive() || client_.alive()) return false;
    // A server that ends well before it listens may have left a process that does.
    return client_.state != State::kNotStarted || server_.state != State::kEnded ||
           server_.failed() || interrupted_ != 0;
  }

  void start(Program& program, const std::vector<std::string>& command, int network,
             const char* input) {
    const pid_t us = getpid();
    program.pid = fork();
    if (program.pid == 0) {
      signals_.let_through();
      // Should we be killed it does not stay behind.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != us) _exit(125);
      const int fd = input ? open(input, O_RDONLY | O_CLOEXEC) : -1;
      if (fd >= 0) dup2(fd, STDIN_FILENO);
      if (setns(network, CLONE_NEWNET) != 0) {
        fprintf(stderr, "uiwarp: the %s's network: %s\n", program.name, strerror(errno));
        _exit(125);
      }
      _exit(run_program(layout_, command));
    }
    program.state = program.pid > 0 ? State::kRuns : State::kEnded;
    if (program.pid < 0) {
      fprintf(stderr, "uiwarp: the %s cannot be started: %s\n", program.name, strerror(errno));
      program.status = 125;
      limit_ = now();
    }
  }

  // Waits until something happens, for `seconds` at most, and sees to it.
  void look(double seconds) {
    pollfd waiting = {signals_.fd(), POLLIN, 0};
    const double most = std::min(seconds, 3600.0);
    poll(&waiting, 1, static_cast<int>(std::ceil(most * 1000)));
    for (int signal; (signal = signals_.taken()) != 0;)
      if (signal != SIGCHLD && interrupted_ == 0) {
        interrupted_ = signal;
        limit_ = now();
      }
    look_at(server_, client_);
    look_at(client_, server_);
    if (now() < limit_) return;
    // Once SIGTERM, then SIGKILL.
    for (Program* program : {&server_, &client_})
      if (program->alive()) {
        if (program->state == State::kRuns && interrupted_ == 0)
          fprintf(stderr,
                  "uiwarp: the %s did not end within %g s after the other one, and is stopped "
                  "(--grace); how it ends does not count.\n",
                  program->name, plan_.grace);
        kill(program->pid, program->state == State::kRuns ? SIGTERM : SIGKILL);
        program->state = State::kTold;
      }
    limit_ = now() + kKillAfter;
  }

  void look_at(Program& program, const Program& other) {
    int status = 0;
    if (!program.alive() || waitpid(program.pid, &status, WNOHANG) != program.pid) return;
    program.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    program.state = program.state == State::kTold ? State::kStopped : State::kEnded;
    if (program.failed() && interrupted_ == 0) {
      const char* what = other.state == State::kNotStarted ? "; the client was not started"
                         : other.alive()                   ? "; the other one is to end, too"
                                                           : "";
      fprintf(stderr, "uiwarp: the %s ended with status %d%s.\n", program.name, program.status,
              what);
    }
    if (program.failed() || &program == &client_) limit_ = std::min(limit_, now() + plan_.grace);
  }

  // We adopt what they leave behind.
  void end_what_is_left() {
    const std::string children = "/proc/self/task/" + std::to_string(getpid()) + "/children";
    const double deadline = now() + kKillAfter;
    while (waitpid(-1, nullptr, WNOHANG) >= 0 && now() < deadline) {
      std::ifstream file(children);
      for (pid_t pid; file >> pid;) kill(pid, SIGKILL);
      poll(nullptr, 0, 1);
    }
  }

  int status() const {
    if (interrupted_ != 0) return 128 + interrupted_;
    if (client_.state == State::kEnded && client_.status != 0) return client_.status;
    if (server_.failed()) return server_.status;
    return client_.state == State::kEnded ? 0 : client_.status;
  }

  const Layout& layout_;
  const PairPlan& plan_;
  const TwoHosts hosts_;
  const EndSignals signals_{SIGCHLD};
  Program server_{"server"}, client_{"client"};
  double limit_ = kNever;  // when who is left is told to end
  int interrupted_ = 0;    // the signal that ends us
};

}  // namespace

int netns_pair(const Layout& layout, PairPlan plan) {
  for (std::vector<std::string>* command : {&plan.server, &plan.client}) {
    if (const int status = why_not_started(layout, *command)) return status;
    fill_in(*command);
  }
  TwoHosts hosts;
  std::string problem;
  if (!make_two_hosts(plan.mtu, hosts, problem)) {
    fprintf(stderr, "uiwarp: %s\n", problem.c_str());
    return 125;
  }
  signal(SIGCHLD, SIG_DFL);  // ignored, how they end would be lost
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  return Pair(layout, plan, hosts).run();
}

}  // namespace uiw::tool
