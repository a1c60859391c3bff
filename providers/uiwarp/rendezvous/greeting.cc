// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/greeting.h"

#include <cstring>

#include "core/be.h"

namespace uiw::rendezvous {
namespace {

constexpr uint8_t kKey[8] = {'U', 'I', 'W', 'M', 1, 0, 0, 0};
constexpr uint32_t kFirstName = sizeof kKey, kNameSize = 4 + sizeof(in6_addr);
static_assert(kFirstName + 2 * kNameSize == kGreetingSize);

void put(uint8_t* out, const Name& name) {
  core::store_be32(out, name.qp_num);
  std::memcpy(out + 4, &name.gid, sizeof name.gid);
}

Name take(const uint8_t* octets) {
  Name name;
  name.qp_num = core::load_be32(octets);
  std::memcpy(&name.gid, octets + 4, sizeof name.gid);
  return name;
}

}  // namespace

void encode(uint8_t* out, const Greeting& greeting) {
  std::memcpy(out, kKey, sizeof kKey);
  put(out + kFirstName, greeting.from);
  put(out + kFirstName + kNameSize, greeting.to);
}

std::optional<Greeting> decode_greeting(core::Bytes octets) {
  if (octets.size() != kGreetingSize || std::memcmp(octets.data(), kKey, sizeof kKey) != 0)
    return {};
  const Greeting greeting{take(octets.data() + kFirstName),
                          take(octets.data() + kFirstName + kNameSize)};
  if (greeting.from.qp_num >> 24 || greeting.to.qp_num >> 24) return {};
  return greeting;
}

}  // namespace uiw::rendezvous
