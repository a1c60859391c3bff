// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a queue pair that has a connection promises of its messages.
#pragma once

#include <cstdint>

namespace uiw::core {

// The values go over the wire (rendezvous/handshake_message.h).
enum class Service : uint8_t {
  // IBV_QPT_RC: a message that cannot be delivered, or a connection that breaks, is the end of the
  // queue pair, and the work request completes with what was wrong. A Send may wait for its
  // receive.
  kReliable = 0,
  // IBV_QPT_UC: a message that cannot be delivered is dropped and counted, the sender is not told,
  // and the queue pair lives on, also without a connection. A work request is complete when TCP has
  // it, or when there is nobody to have it. No message waits for a receive.
  kUnreliable = 1,
};

// For people.
inline const char* text_of(Service service) {
  return service == Service::kReliable ? "RC" : "UC";
}

}  // namespace uiw::core
