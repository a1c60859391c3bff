// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The part of an id that lives on the engine thread: a listening socket, a connection in start-up,
// or one whose stream has gone to its queue pair. Application threads reach it only through orders.
#pragma once

#include <cstdint>

#include "cm/id.h"
#include "core/list.h"
#include "engine/deadline.h"

namespace uiw::cm {

class Manager;

// Created by any thread, destroyed only on the engine thread, by itself.
//
// An endpoint belongs to at most one Id, which points back to it; both pointers are guarded by the
// manager's lock, so that once destroy_id() has cut the tie no event about that id can follow.
class Endpoint : public engine::Task {
 public:
  enum Order : uint32_t {
    kStart = 1,
    kDisconnect = 2,
    kDrop = 4,        // the Id was destroyed: end everything
    kOffer = 8,       // listener: Requests have arrived
    kAccept = 16,     // Request: the application has accepted it
    kReceive = 32,    // connection: the application has been told of ESTABLISHED
    kEstablish = 64,  // answered Request: the program's queue pair is ready
  };

  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Has the engine thread call carry_out(). The manager's lock must be held.
  void order(Order what);

  core::ListLink<Endpoint> among_all;
  Id* owner = nullptr;  // manager's lock

 protected:
  Endpoint(Manager& manager, engine::Engine& engine);
  virtual ~Endpoint();

  // Both are called on the engine thread without a lock, and may end the endpoint. `orders` never
  // contains kDrop.
  virtual void carry_out(uint32_t orders) = 0;
  // The endpoint has no Id, and must end: called on kDrop, and before the engine is given up.
  // Called once.
  virtual void drop() { finish(); }

  // Ends this endpoint: separates it from its Id and frees it, now or after the queued task has
  // run. `this` must not be used afterwards. Thread: engine.
  void finish();
  // The same, but first, if there is an Id, sets it to kEnded and queues this event for it.
  void finish_with(EventType type, int status, const ConnParam* param = nullptr);

  // Replaces another endpoint at its Id, and takes over a pending kDisconnect. The manager's lock
  // must be held.
  void take_over(Endpoint& from);

  // Orders `what` once more, for the endpoint that is about to take over. Thread: engine, no lock
  // held.
  void order_again(Order what);

  Manager& manager_;
  engine::Engine& engine_;

 private:
  friend class Manager;
  void run() final;

  uint32_t orders_ = 0;  // manager's lock, as the two below
  bool queued_ = false;  // this task is posted to the engine
  bool finished_ = false;
  bool dropped_ = false;  // drop() was called
};

}  // namespace uiw::cm
