// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// An address handle: where a datagram is to go.
#pragma once

#include "datagram/destination.h"
#include "uiwarp/uiwarp-abi.h"
#include "verbs/pd.h"

// Does not change while it exists.
struct uiwarp_ah final : uiw::datagram::AddressHandle {
  uiwarp_pd* owner = nullptr;
};

namespace uiw::verbs {

// The address handle that a work request names. Null for null.
inline const datagram::AddressHandle* address_handle_of(const ibv_ah* ah) {
  return ah ? reinterpret_cast<const uiwarp_ibv_ah*>(ah)->core : nullptr;
}

}  // namespace uiw::verbs
