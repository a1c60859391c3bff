// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The part of a connection that lives on the engine thread: a listening socket, a start-up, a
// stream that has gone to its queue pair. Application threads reach it only through orders.
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
    kDrop = 4,        // the Id is gone: end everything
    kOffer = 8,       // a listener's: Requests have come
    kAccept = 16,     // a Request's: the application has accepted it
    kReceive = 32,    // a connection's: the application is told that it stands
    kEstablish = 64,  // an answered Request's: the program has its queue pair ready
  };

  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Has carry_out() called on the engine thread. The manager's lock must be held.
  void order(Order what);

  core::ListLink<Endpoint> among_all;
  Id* owner = nullptr;  // manager's lock

 protected:
  Endpoint(Manager& manager, engine::Engine& engine);
  virtual ~Endpoint();

  // Both: thread engine, no lock held; may end the endpoint.
  // `orders` is a set of all but kDrop.
  virtual void carry_out(uint32_t orders) = 0;
  // No Id has it any more, or never had, and it is to end: on kDrop, and when the engine is about
  // to be given up. Called once.
  virtual void drop() { finish(); }

  // Ends this endpoint: unties it from its Id and frees it, now or when the engine has handed back
  // the order that is still queued. Nothing of `this` may be touched after. Thread: engine.
  void finish();
  // The same with the last words to the application, while the Id is there: it enters kEnded and
  // gets this event.
  void finish_with(EventType type, int status, const ConnParam* param = nullptr);

  // Takes the place of another endpoint at its Id, with what was ordered of it about a
  // disconnection. The manager's lock must be held.
  void take_over(Endpoint& from);

  // For who is about to take this one's place. Thread: engine, no lock held.
  void order_again(Order what);

  Manager& manager_;
  engine::Engine& engine_;

 private:
  friend class Manager;
  void run() final;

  uint32_t orders_ = 0;  // manager's lock, as the two below
  bool queued_ = false;  // the engine holds this task
  bool finished_ = false;
  bool dropped_ = false;  // drop() was called
};

}  // namespace uiw::cm
