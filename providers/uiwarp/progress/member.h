// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The interface of a queue pair, or of a door of datagrams, to a lease (progress/lease.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

namespace uiw::progress {

class Lease;

// What the lease stores in each member.
class MemberState {
 public:
  // The lease that it belongs to, or null. Thread: engine.
  Lease* lease() const { return lease_; }
  // The lease's pollers receive for it; stays true until on_revoked(). Thread: the lease's holder,
  // or the engine while it has no lease.
  bool is_received_by_pollers() const { return received_; }

 private:
  friend class Lease;
  Lease* lease_ = nullptr;
  bool received_ = false;
  uint32_t idle_rounds_ = 0;               // in a row, without bytes
  std::atomic<bool> engine_waits_{false};  // the poller that leaves has to post it
};

// Thread: the lease's holder, unless stated otherwise.
class Member : public MemberState {
 public:
  // Sends deferred posts and acknowledgements; true when there were any.
  virtual bool send_deferred() = 0;
  // Starts the Reads that wait to be coalesced; true when there were any.
  virtual bool send_coalesced() = 0;
  // Sends those of the above that have waited for `ticks`. `left`: no thread polled or posted
  // lately.
  virtual void send_overdue(uint64_t now, uint64_t ticks, bool left) = 0;
  // Since when posts are deferred or Reads wait to be coalesced; UINT64_MAX: neither.
  virtual uint64_t waits_since() const = 0;
  // A full socket left something behind that pollers have to send.
  virtual bool has_unsent() const = 0;
  // Sends that; true when the socket took bytes.
  virtual bool send_on() = 0;
  // A thread holds the sender role.
  virtual bool is_sending() const = 0;
  // Receives once, into `buffer` unless the bytes can be placed directly; true when bytes came.
  virtual bool receive(std::span<uint8_t> buffer) = 0;
  // The engine stops receiving. Thread: engine.
  virtual void pause_receiving() = 0;
  // Asks the engine to revoke the lease.
  virtual void return_wanted() = 0;
  // Posts the task to the engine that a poller inside kept it from doing (Lease::revoke()).
  virtual void post_to_engine() = 0;
  // It has no lease any more; the engine makes progress for it. `was_received`: pollers received
  // for it until now. Thread: engine.
  virtual void on_revoked(bool was_received) = 0;

 protected:
  ~Member() = default;
};

}  // namespace uiw::progress
