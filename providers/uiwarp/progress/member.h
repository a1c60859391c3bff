// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A queue pair as a lease sees it (progress/lease.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

namespace uiw::progress {

class Lease;

// What a lease keeps in a member.
class MemberState {
 public:
  // The lease that it is in; null: none. Thread: engine.
  Lease* lease() const { return lease_; }
  // Its bytes are received by the lease's pollers, or were until on_revoked(). Thread: the lease's
  // holder, or the engine while it has no lease.
  bool is_received_by_pollers() const { return received_; }

 private:
  friend class Lease;
  Lease* lease_ = nullptr;
  bool received_ = false;
  uint32_t idle_rounds_ = 0;               // without bytes
  std::atomic<bool> engine_waits_{false};  // to be posted by the poller that leaves
};

// Thread, unless something else is said: the lease's holder.
class Member : public MemberState {
 public:
  // Sends what posts deferred, and acknowledgements that were left; true when there was something.
  virtual bool send_deferred() = 0;
  // Starts the Reads that were left to be coalesced; true when there were some.
  virtual bool send_coalesced() = 0;
  // Sends either of them that has waited for `ticks`, which everybody has left, or not.
  virtual void send_overdue(uint64_t now, uint64_t ticks, bool left) = 0;
  // Since when something is deferred, or coalesced: UINT64_MAX when nothing is.
  virtual uint64_t waits_since() const = 0;
  // A full socket left something that pollers are to send.
  virtual bool has_unsent() const = 0;
  // The same sent; true when bytes went.
  virtual bool send_on() = 0;
  // A thread runs the sender.
  virtual bool is_sending() const = 0;
  // Receives once, into `buffer` if nowhere else; true when bytes came.
  virtual bool receive(std::span<uint8_t> buffer) = 0;
  // The engine receives no more. Thread: engine.
  virtual void pause_receiving() = 0;
  // Asks the engine to take it back.
  virtual void return_wanted() = 0;
  // Lets the engine do what it came for while a poller was inside.
  virtual void post_to_engine() = 0;
  // It is the engine's again: it has no lease now. Thread: engine.
  virtual void on_revoked(bool was_received) = 0;

 protected:
  ~Member() = default;
};

}  // namespace uiw::progress
