// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What both sides of the soak test share: counters, octets that can be told apart, the messages.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

namespace uiw::soak {

inline constexpr uint32_t kSlots = 8;            // operations of a connection under way at once
inline constexpr uint32_t kPiece = 32 * 1024;    // octets of a Write or Read at most
inline constexpr uint32_t kMessage = 12 * 1024;  // of a Send at most
inline constexpr uint32_t kReceives = 16;
inline constexpr uint32_t kCounters = kSlots * kPiece;  // where the atomics' 64-bit counters lie
inline constexpr uint32_t kMemory = kCounters + kSlots * 8;
inline constexpr uint64_t kReceiveIds = 1ull
                                        << 62;  // wr_ids of receives; those of sends count from 0
inline constexpr uint32_t kImmediate = 0x50a40000;  // and the slot

// In memory that all processes of the test share.
struct Stats {
  std::atomic<uint64_t> connections, rejects, cuts, kills, sends, writes, reads, atomics,
      immediates, invalidations;
  std::atomic<uint64_t> registrations;  // that came and went beside some that stay
  std::atomic<uint64_t> octets;         // compared
  std::atomic<uint64_t> completions;    // that were awaited and came once
  std::atomic<uint64_t> flushed;        // of these, with IBV_WC_WR_FLUSH_ERR
  std::atomic<uint32_t> port;           // of the server, 0 until it listens
};

// Says what is wrong and ends the process with status 1.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));
#define REQUIRE(condition) \
  ((condition) ? void() : fail("%s:%d: %s does not hold", __FILE__, __LINE__, #condition))

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 0x1234567) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  uint32_t below(uint32_t end) { return static_cast<uint32_t>(next() % end); }
  bool one_in(uint32_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

// Octets that follow from `seed` and `number`.
void fill(uint8_t* octets, uint32_t size, uint64_t seed, uint64_t number);
void compare(Stats& stats, const uint8_t* octets, uint32_t size, uint64_t seed, uint64_t number,
             const char* what);

// Private data of the connection request and of its acceptance or rejection.
struct Wish {
  uint64_t seed;
  uint32_t reject;
};
struct Offer {
  uint64_t seed;
  uint64_t address;
  uint32_t rkey;
  uint32_t window;  // rkey of a memory window over all of it; 0: there is none
};

// Every Send begins with it; the rest is fill(seed, number).
struct Message {
  uint32_t kind;
  uint32_t slot;
  uint64_t number;
  uint32_t written;  // kCheck: so many octets of the slot's piece are fill(seed ^ kWritten, number)
  uint32_t size;     // of the message
};
enum : uint32_t { kPlain, kCheck, kBye, kEcho };
inline constexpr uint64_t kWritten = 0xabcdef, kEchoed = 0x123456;

// What the device can do of what the mix may hold.
struct Abilities {
  bool atomics = false;
  bool windows = false;
  uint32_t sges = 1;
};
Abilities abilities_of(ibv_context* context);

// One end of a connection: its queues, and the account of what was posted and came back.
class Endpoint {
 public:
  // Creates PD, CQ, QP and memory for `id`, and posts the receives.
  Endpoint(Stats& stats, rdma_cm_id* id, uint64_t seed);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Posts; every work request has to complete in this order. `tag` comes back by take_sent().
  // False when the queue pair is full, or takes no such request (EINVAL).
  bool post(ibv_send_wr& wr, uint64_t tag, int* error = nullptr);
  void post_receive(uint32_t index);

  // Polls once. Each completion is checked against what was posted. kNothing: there was none.
  enum Kind { kNothing, kSent, kReceived, kFailed };
  Kind poll(ibv_wc& wc, uint64_t& tag);
  // Every work request has completed (what is silent by wish counts once a later one, or the end,
  // came).
  bool all_back() const { return sent_.empty() && receives_out_ == 0; }
  // The queue pair is in ERR and all of the rest flushed: only requests without completion are
  // left.
  void forget_silent();
  bool broken() const { return broken_; }

  uint8_t* receive_buffer(uint64_t index) { return &receive_memory_[index * kMessage]; }
  Abilities abilities;
  Stats& stats;
  rdma_cm_id* const id;
  const uint64_t seed;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  std::vector<uint8_t>
      memory;  // the server's: what the peer may reach. The client's: its sources and sinks
  std::vector<uint8_t> send_memory;  // 2 kSlots messages
  ibv_mr *mr = nullptr, *send_mr = nullptr, *receive_mr = nullptr;

 private:
  struct Posted {
    uint64_t number, tag;
    bool signaled;
  };
  std::vector<uint8_t> receive_memory_;
  std::vector<bool> receive_posted_;
  std::deque<Posted> sent_;
  uint64_t posted_ = 0;
  uint32_t receives_out_ = 0;
  bool broken_ = false, receive_broken_ = false;
};

// The processes; each returns the exit status. `dies`: the server kills itself in the middle.
struct Round {
  Stats* stats;
  uint64_t seed;
  uint32_t connections;  // of each client, one after another in groups
  uint32_t operations;   // of each connection
  bool server_dies;
};
int serve(const Round& round);
int ask(const Round& round, uint32_t client);
// Beside all rounds, until SIGTERM.
int reside(Stats& stats, uint64_t seed);

}  // namespace uiw::soak
