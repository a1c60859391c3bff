// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A datagram that outlives the call that told of it.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "datagram/socket.h"

namespace uiw::datagram {

class Kept {
 public:
  // None: memory is short.
  static std::optional<Kept> copy(const Arrival& arrival) {
    const core::Bytes payload = arrival.payload;
    std::unique_ptr<uint8_t[]> octets(new (std::nothrow) uint8_t[payload.size() + 1]);
    if (!octets) return {};
    std::ranges::copy(payload, octets.get());
    return Kept(arrival, std::move(octets));
  }

  const Arrival& arrival() const { return arrival_; }

 private:
  Kept(const Arrival& arrival, std::unique_ptr<uint8_t[]> octets)
      : octets_(std::move(octets)),
        arrival_{arrival.envelope, arrival.header, {octets_.get(), arrival.payload.size()}} {}

  std::unique_ptr<uint8_t[]> octets_;
  Arrival arrival_;  // its payload is in octets_
};

}  // namespace uiw::datagram
