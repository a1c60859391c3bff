// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// uiwarp run uiwarp-bench-idle CONNECTIONS ITERATIONS: two processes with one busy connection and
// CONNECTIONS idle ones. Prints lines of a name and a number, the worse one of both processes:
//   latency  microseconds one way, 64 octets, on the busy connection
//   memory   octets in use for each idle one, queues of depth 2 and librdmacm's part included
//   cpu      per cent of one processor while all of them are idle
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/clock.h"
#include "end.h"
#include "server_process.h"

namespace {

using uiw::bench::die;
using uiw::bench::End;
using uiw::bench::ServerProcess;

constexpr int kFirst = 16;        // connections made before memory is counted
constexpr unsigned kQuiet = 2;    // seconds until nothing is left to do for a new connection
constexpr unsigned kWatched = 2;  // seconds of idling

struct Result {
  double latency = 0, memory = 0, cpu = 0;
};

int64_t cpu_ns() {
  timespec ts;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
  return ts.tv_sec * int64_t{1000000000} + ts.tv_nsec;
}

template <typename Add>
Result live(End& end, int idle, int iterations, bool begins, Add add) {
  Result result;
  for (int i = 0; i < 1 + kFirst; i++) add();
  const int64_t before = End::resident();
  for (int i = 0; i < idle; i++) add();
  if (idle > 0) result.memory = static_cast<double>(End::resident() - before) / idle;
  result.latency = end.ping_pong(iterations, begins);
  sleep(kQuiet);
  const int64_t busy = cpu_ns(), start = uiw::core::now();
  sleep(kWatched);
  result.cpu =
      100.0 * static_cast<double>(cpu_ns() - busy) / static_cast<double>(uiw::core::now() - start);
  return result;
}

void allow_many_descriptors(int wanted) {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= static_cast<rlim_t>(wanted) + 100) return;
  errno = EMFILE;
  die("ulimit -n");
}

}  // namespace

int main(int argc, char** argv) {
  const int idle = argc == 3 ? atoi(argv[1]) : -1, iterations = argc == 3 ? atoi(argv[2]) : 0;
  if (idle < 0 || iterations < 1) {
    fprintf(stderr, "usage: uiwarp run uiwarp-bench-idle CONNECTIONS ITERATIONS\n");
    return 2;
  }
  allow_many_descriptors(idle);
  void* memory =
      mmap(nullptr, sizeof(Result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("mmap");
  Result& served = *static_cast<Result*>(memory);
  const ServerProcess server([&](const ServerProcess::Tell& tell) {
    End end;
    tell(end.listen());
    served = live(end, idle, iterations, false, [&end] { end.accept_one(); });
  });
  const in_port_t port = server.port();
  if (port == 0) return 1;
  End end;
  const Result client = live(end, idle, iterations, true, [&end, port] { end.connect_one(port); });
  if (!server.ended_well()) return 1;
  printf("latency %.3f\nmemory %.0f\ncpu %.2f\n", client.latency,
         std::max(client.memory, served.memory), std::max(client.cpu, served.cpu));
  return 0;
}
