// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The delivery guarantee of a connected queue pair.
#pragma once

#include <cstdint>

namespace uiw::core {

// The values are sent on the wire (rendezvous/handshake_message.h).
enum class Service : uint8_t {
  // IBV_QPT_RC: a message that cannot be delivered, or a broken connection, ends the queue pair,
  // and the work request completes with the error. A Send may wait for its receive.
  kReliable = 0,
  // IBV_QPT_UC: a message that cannot be delivered is dropped and counted. The sender is not told,
  // and the queue pair goes on, even without a connection. A work request completes when TCP has
  // taken it, or when there is no peer. No message waits for a receive.
  kUnreliable = 1,
};

// For messages.
inline const char* text_of(Service service) {
  return service == Service::kReliable ? "RC" : "UC";
}

}  // namespace uiw::core
