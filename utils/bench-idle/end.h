// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// One process with many queue pairs of the smallest depth, all on one completion queue.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <vector>

namespace uiw::bench {

class End {
 public:
  End();
  // Listens on 127.0.0.1; its port in network order.
  uint16_t listen();
  void accept_one();
  void connect_one(uint16_t port);

  // Ping-pong of 64 octets on the first connection, both ends polling. Median microseconds one way,
  // for who begins.
  double ping_pong(int iterations, bool begins);

  // Octets of memory that this process has in use.
  static int64_t resident();

 private:
  static constexpr size_t kSize = 64;

  rdma_cm_event* next_event();
  void take(rdma_cm_event_type type);
  void add(rdma_cm_id* id);
  void post_receive();
  void send();
  void await(int completions);

  rdma_event_channel* channel_;
  rdma_cm_id* listener_ = nullptr;
  ibv_pd* pd_ = nullptr;  // these three are made with the first queue pair
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  std::vector<rdma_cm_id*> ids_;
  alignas(64) uint8_t out_[kSize] = {};
  alignas(64) uint8_t in_[kSize] = {};
};

}  // namespace uiw::bench
