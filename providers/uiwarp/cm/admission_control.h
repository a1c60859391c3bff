// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Bounds the number of connections, over all listeners, of which no application knows yet: unknown
// peers may use only a share of the descriptors (core/descriptor_shares.h). At the bound nothing is
// accepted, and new connections wait in TCP's queues. The oldest connection without a Request, at
// any listener, is closed once it has had the time to send one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cm/acceptor.h"
#include "cm/responder.h"
#include "core/settings.h"

namespace uiw::cm {

// Thread: engine, unless stated otherwise.
class AdmissionControl {
 public:
  explicit AdmissionControl(const core::Settings& settings) : settings_(settings) {}

  // Reads how many descriptors the process may have. Call it before each listener starts. Thread:
  // any.
  void measure();

  // Whether the acceptor may accept one more connection now. If not, pauses it until there is room.
  bool admit(Acceptor& acceptor, engine::Engine& engine);
  // The acceptor is being destroyed.
  void forget(Acceptor& acceptor);
  void enter(Responder& responder) { all_.append(responder); }
  void leave(Responder& responder);

  // These count CONNECT_REQUESTs that are queued and not fetched; the manager's lock is held.
  // may_queue(): whether a listener that has `of_this_listener` of them may queue one more. A
  // quarter of what the other listeners leave stays free for them.
  bool may_queue(uint32_t of_this_listener) const;
  void queued();
  void fetched();

 private:
  size_t most() const;
  bool make_room();
  void go_on();

  const core::Settings& settings_;
  // Read by any thread.
  std::atomic<uint32_t> at_listeners_{0}, most_not_fetched_{0}, least_not_told_{0};
  std::atomic<uint32_t> not_fetched_{0};

  core::List<Responder, &Responder::in_admission> all_;        // oldest first
  core::List<Acceptor, &Acceptor::before_admission> waiting_;  // paused ones, the longest waiting
                                                               // first
  engine::Engine* engine_ = nullptr;                           // null before the first admit()
  // Armed only while acceptors wait.
  engine::Deadline<AdmissionControl, &AdmissionControl::go_on> next_{*this};
};

}  // namespace uiw::cm
