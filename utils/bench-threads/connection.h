// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// One connection of a thread, with completion queues and a buffer of its own.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace uiw::bench {

struct Load {
  ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
  uint32_t size = 65536;
  int iterations = 0;  // messages on each connection
};

class Connection {
 public:
  // Requests in flight: each has its own part of the buffer.
  static constexpr uint32_t kDepth = 16;

  // A listener's queue pairs are made as these are.
  static ibv_qp_init_attr queue_pair();

  // Connects to 127.0.0.1; blocks.
  Connection(const Load& load, uint16_t port);
  // Accepts a request of rdma_get_request(); blocks.
  Connection(const Load& load, rdma_cm_id* id);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The side that asks: all messages, until the other side has them in memory. Polls.
  void ask();
  // Lets the other side end.
  void end();
  // The other side, until the peer disconnects. Polls where it has to receive Sends; else it
  // sleeps.
  void answer();

 private:
  struct Window {  // where the peer writes and reads
    uint64_t address;
    uint32_t key;
  };

  void make_buffer();
  void post_receive(uint64_t part);
  void post(ibv_wr_opcode opcode, uint64_t part, uint32_t size);
  // Its wr_id. An error ends the process.
  uint64_t next_completion(ibv_cq* cq);

  const Load& load_;
  rdma_cm_id* id_ = nullptr;
  std::vector<uint8_t> buffer_;
  ibv_mr* mr_ = nullptr;
  Window peer_ = {};
};

}  // namespace uiw::bench
