// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What traces of one or several processes tell: queue pairs, the life of each work request, and
// events. Pure.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trace/snapshot.h"

namespace uiw::trace {

enum class Outcome : uint8_t {
  kOpen,        // no completion of it was polled
  kCompleted,   // its completion was polled: status
  kUnsignaled,  // it has none of its own; one behind it has completed
};

inline constexpr size_t kNobody = SIZE_MAX;

struct QueuePair {
  size_t process;  // of History::processes
  uint32_t number;
  uint8_t type = 0;    // ibv_qp_type; 0: it was created before the oldest record
  uint64_t queue = 0;  // its shared receive queue
  bool is_connected = false;
  Addresses addresses{};
  size_t peer = kNobody;  // of History::queue_pairs: the other end, when that was traced, too
};

struct Request {
  size_t queue_pair = kNobody;  // kNobody: a receive of a shared queue that nobody has taken
  size_t process;
  int64_t posted, completed = 0;  // nanoseconds since History::began
  uint64_t wr_id, bytes;
  uint8_t opcode;  // ibv_wr_opcode
  bool is_receive, signaled;
  Outcome outcome = Outcome::kOpen;
  uint8_t status = 0;  // ibv_wc_status, of one that completed
  uint32_t vendor_err = 0;

  // Wraps around with the numbers of a spoilt file.
  int64_t latency() const {
    return static_cast<int64_t>(static_cast<uint64_t>(completed) - static_cast<uint64_t>(posted));
  }
};

// What is no request.
struct Event {
  size_t queue_pair;  // kNobody: of none
  size_t process;
  int64_t time;  // as of requests
  Record record;
};

struct History {
  std::vector<Snapshot> processes;  // without their records
  std::vector<QueuePair> queue_pairs;
  std::vector<Request> requests;  // in the order of posting
  std::vector<Event> events;
  int64_t began = 0;       // CLOCK_REALTIME of the first record, nanoseconds
  uint64_t unmatched = 0;  // completions whose posts are not recorded
};

History build(std::vector<Snapshot> snapshots);

// Of requests of one opcode that completed successfully. Nanoseconds.
struct Percentiles {
  size_t process;
  size_t queue_pair;  // kNobody: all of the process
  uint8_t opcode;
  bool is_receive;
  uint64_t count, bytes;
  int64_t p50, p90, p99, p999, most;
};
enum class By { kQueuePair, kProcess };
std::vector<Percentiles> percentiles(const History& history, By by = By::kQueuePair);

// For people.
inline double microseconds(int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1000;
}
// "0x0000a7"; "-": of none (kNobody).
std::string number_of(const History& history, size_t queue_pair);
// "RDMA_WRITE", "RECV", "opcode 77".
std::string opcode_of(const Request& request);
std::string opcode_of(uint8_t opcode, bool is_receive);
// "success", "RETRY_EXC_ERR" and so on by the manual's words; "open", "unsignaled".
std::string status_of(const Request& request);
// "state RTS", "connected 10.0.0.1:4711 10.0.0.2:7174" and so on.
std::string text_of(const Event& event);
std::string local_of(const QueuePair& qp);
std::string peer_of(const QueuePair& qp);

}  // namespace uiw::trace
