// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a process publishes of its queue pairs and completion queues: records in a file that it has
// mapped and others read. It writes them and never reads them back, so that nothing it does depends
// on what the file says. doc/decisions/030-counters.md
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace uiw::counters {

// Written by one thread at a time, which its owner makes sure of; so no locked instruction.
class Count {
 public:
  void add(uint64_t amount) { set(get() + amount); }
  void set(uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  // As add(), and not seen before what was stored before.
  void add_behind(uint64_t amount) { value_.store(get() + amount, std::memory_order_release); }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

enum class Kind : uint32_t {
  kFree = 0,
  kQueuePair = 1,
  kCompletionQueue = 2,
  kEnded = 3,  // the sum of what has counted on a device and is no more
  kSharedReceiveQueue = 4,
};

inline constexpr size_t kDeviceName = 32;  // with the NUL; an interface's name has 15 characters

// Each writer has cache lines of its own.
struct alignas(64) Slot {
  // --- when it is taken ---
  std::atomic<Kind> kind{Kind::kFree};
  uint32_t number = 0;   // of the queue pair; queues are numbered by their slots
  uint32_t type = 0;     // ibv_qp_type
  uint32_t send_cq = 0;  // the slots of its completion queues
  uint32_t recv_cq = 0;
  uint32_t srq = 0;  // the slot of its shared receive queue; 0: it has none
  char device[kDeviceName] = {};

  // --- the engine ---
  alignas(64) std::atomic<uint32_t> connected{0};
  std::atomic<uint32_t> local_port{0}, peer_port{0};  // host order
  std::atomic<uint32_t> state{0};  // kKnownState and the ibv_qp_state; 0: not known. Any thread's
  std::atomic<uint64_t> local[2]{}, peer[2]{};  // in6_addr, IPv4 mapped
  Count dropped_sends;  // neither completed nor in flight: the queue pair went to RESET

  // --- who posts sends ---
  alignas(64) Count posted_sends;

  // --- the sender ---
  alignas(64) Count completed_sends;  // unsignaled ones too
  Count failed_sends;                 // of these
  Count bytes_sent;                   // that TCP or UDP has taken, headers of ours included

  // --- who posts receives ---
  alignas(64) Count posted_receives;  // to a queue of its own; of a shared one: to that

  // --- who receives ---
  alignas(64) Count completed_receives;
  Count failed_receives;  // of these
  Count bytes_received;
  Count rnr_waits;  // a message came before there was a receive for it

  // --- of a completion queue: who completes; of a shared receive queue: the capacity ---
  alignas(64) Count capacity;
  Count high_water;
};
inline constexpr uint32_t kKnownState = 1;
inline constexpr size_t kSlotSize = 448;
static_assert(sizeof(Slot) == kSlotSize && std::atomic<uint64_t>::is_always_lock_free);

// Adds what is counted, high-water marks excepted; behind what was stored before (Header::moves).
void add(Slot& sum, const Slot& slot);

// What a file begins with. Slots follow at kSlotSize, up to its end.
struct alignas(64) Header {
  static constexpr uint64_t kMagic = 0x3130'7473'7769'7501;  // changes with the layout
  uint64_t magic = kMagic;
  std::atomic<uint64_t> moves{0};  // odd while what has ended is added to its sum
  char program[16] = {};           // as /proc/PID/comm
  uint8_t unused[kSlotSize - 32] = {};
};
static_assert(sizeof(Header) == kSlotSize);

// For what is not published: counted there, and read by nobody.
inline Slot g_nowhere;

// The most slots of a file; what comes on top is not published. 14 MiB of addresses.
inline constexpr uint32_t kMostSlots = 1u << 15;

}  // namespace uiw::counters
