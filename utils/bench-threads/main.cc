// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// uiwarp run uiwarp-bench-threads THREADS send|write|read SIZE ITERATIONS: two processes with a
// connection for each of THREADS threads, all at work at once. Prints MiB per second in total.
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "connection.h"

namespace {

using uiw::bench::Connection;
using uiw::bench::die;
using uiw::bench::Load;

rdma_cm_id* listen() {
  rdma_addrinfo hints = {}, *found = nullptr;
  hints.ai_port_space = RDMA_PS_TCP;
  hints.ai_flags = RAI_PASSIVE;
  if (rdma_getaddrinfo("127.0.0.1", "0", &hints, &found) != 0) die("rdma_getaddrinfo");
  ibv_qp_init_attr attr = Connection::queue_pair();
  rdma_cm_id* listener = nullptr;
  if (rdma_create_ep(&listener, found, nullptr, &attr) != 0) die("rdma_create_ep");
  rdma_freeaddrinfo(found);
  if (rdma_listen(listener, 64) != 0) die("rdma_listen");
  return listener;
}

[[noreturn]] void serve(const Load& load, int threads, int port_to) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a client that fails leaves nobody behind
  rdma_cm_id* listener = listen();
  const uint16_t port = ntohs(rdma_get_src_port(listener));
  if (write(port_to, &port, sizeof port) < 0) die("write");
  std::vector<std::thread> answering;
  for (int i = 0; i < threads; i++) {
    rdma_cm_id* id = nullptr;
    if (rdma_get_request(listener, &id) != 0) die("rdma_get_request");
    answering.emplace_back([&load, id] { Connection(load, id).answer(); });
  }
  for (std::thread& thread : answering) thread.join();
  _exit(0);
}

double measure(const Load& load, int threads, uint16_t port) {
  int64_t start = 0;
  std::barrier ready(threads, [&start]() noexcept { start = uiw::bench::now_ns(); });
  std::vector<int64_t> ends(threads);
  std::vector<std::thread> asking;
  for (int i = 0; i < threads; i++) {
    asking.emplace_back([&, i] {
      Connection connection(load, port);
      ready.arrive_and_wait();
      connection.ask();
      ends[i] = uiw::bench::now_ns();
      connection.end();
    });
  }
  for (std::thread& thread : asking) thread.join();
  const int64_t last = *std::max_element(ends.begin(), ends.end());
  return 1e9 * load.size * load.iterations * threads / (1 << 20) / (last - start);
}

int usage() {
  fprintf(stderr,
          "usage: uiwarp run uiwarp-bench-threads THREADS send|write|read SIZE ITERATIONS\n");
  return 2;
}

bool parse(char** argv, int& threads, Load& load) {
  constexpr struct {
    const char* name;
    ibv_wr_opcode opcode;
  } kVerbs[] = {{"send", IBV_WR_SEND}, {"write", IBV_WR_RDMA_WRITE}, {"read", IBV_WR_RDMA_READ}};
  bool known = false;
  for (const auto& verb : kVerbs) {
    if (strcmp(argv[2], verb.name) != 0) continue;
    load.opcode = verb.opcode;
    known = true;
  }
  threads = atoi(argv[1]);
  load.size = static_cast<uint32_t>(atoi(argv[3]));
  load.iterations = atoi(argv[4]);
  return known && threads > 0 && threads <= 64 && load.size > 0 && load.size <= 1 << 24 &&
         load.iterations > 0;
}

}  // namespace

int main(int argc, char** argv) {
  Load load;
  int threads = 0;
  if (argc != 5 || !parse(argv, threads, load)) return usage();
  int ports[2];
  if (pipe(ports) != 0) die("pipe");
  const pid_t pid = fork();
  if (pid < 0) die("fork");
  if (pid == 0) serve(load, threads, ports[1]);
  close(ports[1]);
  uint16_t port = 0;
  if (read(ports[0], &port, sizeof port) <= 0) return 1;  // it said why
  const double total = measure(load, threads, port);
  int status = 0;
  waitpid(pid, &status, 0);
  if (status != 0) return 1;
  printf("%.1f\n", total);
  return 0;
}
