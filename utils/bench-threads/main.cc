// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// uiwarp run uiwarp-bench-threads THREADS send|write|read SIZE ITERATIONS: two processes with a
// connection for each of THREADS threads, all at work at once. Prints MiB per second in total.
#include <arpa/inet.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "connection.h"
#include "core/clock.h"
#include "server_process.h"

namespace {

using uiw::bench::Connection;
using uiw::bench::die;
using uiw::bench::Load;
using uiw::bench::ServerProcess;

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

void serve(const Load& load, int threads, const ServerProcess::Tell& tell) {
  rdma_cm_id* listener = listen();
  tell(rdma_get_src_port(listener));
  std::vector<std::thread> answering;
  for (int i = 0; i < threads; i++) {
    rdma_cm_id* id = nullptr;
    if (rdma_get_request(listener, &id) != 0) die("rdma_get_request");
    answering.emplace_back([&load, id] { Connection(load, id).answer(); });
  }
  for (std::thread& thread : answering) thread.join();
}

double measure(const Load& load, int threads, uint16_t port) {
  int64_t start = 0;
  std::barrier ready(threads, [&start]() noexcept { start = uiw::core::now(); });
  std::vector<int64_t> ends(threads);
  std::vector<std::thread> asking;
  for (int i = 0; i < threads; i++) {
    asking.emplace_back([&, i] {
      Connection connection(load, port);
      ready.arrive_and_wait();
      connection.ask();
      ends[i] = uiw::core::now();
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
  const ServerProcess server([&](const ServerProcess::Tell& tell) { serve(load, threads, tell); });
  if (server.port() == 0) return 1;
  const double total = measure(load, threads, ntohs(server.port()));
  if (!server.ended_well()) return 1;
  printf("%.6g\n", total);
  return 0;
}
