// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// uiwarp-soak: processes that do everything a device can do to one another, with kills, rejections
// and cuts, and compare every octet and count every completion. An ordinary verbs program;
// utils/soak runs it.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "common.h"

namespace uiw::soak {

namespace {

constexpr unsigned kHang = 240;  // seconds after which a process must have ended

struct Plan {
  uint64_t seed = 1, first = 1;
  uint64_t rounds = 8;
  uint64_t minutes = 0;  // 0: `rounds` count
  uint32_t clients = 3, connections = 12, operations = 250;
};

[[noreturn]] void usage() {
  fputs(
      "usage: uiwarp-soak [--rounds N | --minutes M] [--seed S] [--first ROUND] [--clients N] "
      "[--connections N]\n"
      "                   [--operations N]\n"
      "A round is a server process and some clients; what it does follows from seed and number.\n"
      "Beside all of them a process lives whose regions and connections stay or come and go.\n",
      stderr);
  exit(2);
}

Plan plan_of(int count, char** words) {
  Plan plan;
  for (int i = 1; i < count; i += 2) {
    const std::string name = words[i];
    char* end = nullptr;
    const uint64_t value = i + 1 < count ? strtoull(words[i + 1], &end, 10) : 0;
    if (!end || *end || (value == 0 && name != "--seed")) usage();
    if (name == "--rounds")
      plan.rounds = value;
    else if (name == "--minutes")
      plan.minutes = value;
    else if (name == "--seed")
      plan.seed = value;
    else if (name == "--first")
      plan.first = value;
    else if (name == "--clients")
      plan.clients = static_cast<uint32_t>(value);
    else if (name == "--connections")
      plan.connections = static_cast<uint32_t>(value);
    else if (name == "--operations")
      plan.operations = static_cast<uint32_t>(value);
    else
      usage();
  }
  return plan;
}

// A child that ends when this process does.
template <class Work>
pid_t start(Work work) {
  const pid_t child = fork();
  if (child < 0) fail("fork: %s", strerror(errno));
  if (child > 0) return child;
  alarm(kHang);
  _exit(work());
}

// True when it ended as it may.
bool ended_well(pid_t child, const char* name, bool may_be_killed) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && may_be_killed) return true;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    fprintf(stderr, "soak: %s (process %d) hangs: not done after %u s\n", name, child, kHang);
  else
    fprintf(stderr, "soak: %s (process %d) ended with status 0x%x\n", name, child,
            static_cast<unsigned>(status));
  return false;
}

bool run(const Plan& plan, uint64_t number, Stats* stats) {
  const Round round = {stats, plan.seed * 1'000'003 + number, plan.connections, plan.operations,
                       number % 4 == 0};
  stats->port = 0;
  const pid_t server = start([&] { return serve(round); });
  int status = 0;
  while (stats->port == 0) {
    if (waitpid(server, &status, WNOHANG) == server) {
      fprintf(stderr, "soak: the server ended with status 0x%x before it listened\n",
              static_cast<unsigned>(status));
      return false;
    }
    usleep(1000);
  }
  std::vector<pid_t> clients;
  for (uint32_t i = 0; i < plan.clients; ++i)
    clients.push_back(start([&round, i] { return ask(round, i); }));
  bool well = true;
  for (pid_t client : clients) well = ended_well(client, "a client", true) && well;
  kill(server, SIGTERM);
  return ended_well(server, "the server", round.server_dies) && well;
}

void report(const Stats& s, uint64_t rounds) {
  const auto n = [](const std::atomic<uint64_t>& value) {
    return static_cast<unsigned long long>(value.load());
  };
  printf(
      "rounds %llu: registrations %llu, connections %llu, rejected %llu, cut %llu, killed %llu; "
      "Sends %llu, Writes "
      "%llu, Reads %llu, "
      "atomics %llu, immediate %llu, invalidated %llu; compared %llu MiB; completions %llu, "
      "flushed %llu\n",
      static_cast<unsigned long long>(rounds), n(s.registrations), n(s.connections), n(s.rejects),
      n(s.cuts), n(s.kills), n(s.sends), n(s.writes), n(s.reads), n(s.atomics), n(s.immediates),
      n(s.invalidations), n(s.octets) >> 20, n(s.completions), n(s.flushed));
  fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  const Plan plan = plan_of(count, words);
  void* shared =
      mmap(nullptr, sizeof(Stats), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail("mmap: %s", strerror(errno));
  auto* stats = new (shared) Stats{};
  const pid_t resident = soak::start([&] {
    alarm(0);  // it has one for each of its turns
    return reside(*stats, plan.seed);
  });
  const auto start = std::chrono::steady_clock::now();
  auto told = start;
  uint64_t done = 0;
  for (;; ++done) {
    const auto now = std::chrono::steady_clock::now();
    if (plan.minutes ? now - start >= std::chrono::minutes(plan.minutes) : done == plan.rounds)
      break;
    if (now - told >= std::chrono::seconds(10)) {
      told = now;
      report(*stats, done);
    }
    const uint64_t number = plan.first + done;
    if (run(plan, number, stats)) continue;
    kill(resident, SIGKILL);
    report(*stats, done);
    printf("soak FAILED in round %llu; again: --seed %llu --first %llu --rounds 1\n",
           static_cast<unsigned long long>(number), static_cast<unsigned long long>(plan.seed),
           static_cast<unsigned long long>(number));
    return 1;
  }
  kill(resident, SIGTERM);
  const bool resided = ended_well(resident, "the long-lived process", false);
  report(*stats, done);
  if (!resided) {
    printf("soak FAILED in the long-lived process; again: --seed %llu\n",
           static_cast<unsigned long long>(plan.seed));
    return 1;
  }
  // A test of nothing is none.
  const bool something = stats->connections > 0 && stats->octets > 0 && stats->reads > 0;
  printf("soak %s: seed %llu, %llu rounds\n", something ? "PASSED" : "FAILED, nothing was moved",
         static_cast<unsigned long long>(plan.seed), static_cast<unsigned long long>(done));
  return something ? 0 : 1;
}

}  // namespace uiw::soak

int main(int count, char** words) {
  return uiw::soak::main(count, words);
}
