// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/refused_attempts.h"

#include "transport/addresses.h"

namespace uiw::cm {

namespace {

bool same_endpoint(const sockaddr_storage& a, const sockaddr_storage& b) {
  return transport::port_of(a) == transport::port_of(b) && transport::same_host(a, b);
}

}  // namespace

Initiator* RefusedAttempts::first_to(const sockaddr_storage& destination) const {
  for (Initiator* attempt = attempts_.first(); attempt != nullptr;
       attempt = Attempts::next(*attempt))
    if (same_endpoint(attempt->destination(), destination)) return attempt;
  return nullptr;
}

void RefusedAttempts::join(Initiator& attempt) {
  if (attempt.is_refused) return;
  attempt.is_refused = true;
  attempts_.append(attempt);
}

void RefusedAttempts::leave(Initiator& attempt) {
  if (!attempt.is_refused) return;
  attempt.is_refused = false;
  attempts_.remove(attempt);
}

bool RefusedAttempts::any_before(const Initiator& attempt) const {
  const Initiator* const first = first_to(attempt.destination());
  return first != nullptr && first->turn() < attempt.turn();
}

Initiator* RefusedAttempts::take(const sockaddr_storage& destination) {
  Initiator* const attempt = first_to(destination);
  if (attempt != nullptr) leave(*attempt);
  return attempt;
}

}  // namespace uiw::cm
