// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/handshake_message.h"

#include <cstring>

#include "core/be.h"

namespace uiw::rendezvous {
namespace {

constexpr uint8_t kKey[4] = {'U', 'I', 'W', 'M'}, kVersion = 2;
constexpr uint32_t kVersionAt = sizeof kKey, kTypeAt = 5, kStageAt = 6, kServiceAt = 7,
                   kFirstName = 8, kNameSize = 4 + sizeof(in6_addr),
                   kValue = kFirstName + 2 * kNameSize;
static_assert(kValue + 16 == kHandshakeMessageSize);

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

bool has_key(core::Bytes octets) {
  return octets.size() > kVersionAt && std::memcmp(octets.data(), kKey, sizeof kKey) == 0;
}

}  // namespace

void encode(uint8_t* out, const HandshakeMessage& message) {
  std::memcpy(out, kKey, sizeof kKey);
  out[kVersionAt] = kVersion;
  out[kTypeAt] = static_cast<uint8_t>(message.type);
  out[kStageAt] = static_cast<uint8_t>(message.stage);
  out[kServiceAt] = static_cast<uint8_t>(message.service);
  put(out + kFirstName, message.from);
  put(out + kFirstName + kNameSize, message.to);
  core::store_be64(out + kValue, message.value.first);
  core::store_be64(out + kValue + 8, message.value.second);
}

std::optional<HandshakeMessage> decode_handshake_message(core::Bytes octets) {
  if (octets.size() != kHandshakeMessageSize || !has_key(octets) || octets[kVersionAt] != kVersion)
    return {};
  const uint8_t type = octets[kTypeAt], stage = octets[kStageAt], service = octets[kServiceAt];
  if (type < static_cast<uint8_t>(MessageType::kHello) ||
      type > static_cast<uint8_t>(MessageType::kOpening) ||
      stage < static_cast<uint8_t>(Stage::kRtr) || stage > static_cast<uint8_t>(Stage::kRts) ||
      service > static_cast<uint8_t>(core::Service::kUnreliable))
    return {};
  const HandshakeMessage message{
      static_cast<MessageType>(type),
      static_cast<Stage>(stage),
      take(octets.data() + kFirstName),
      take(octets.data() + kFirstName + kNameSize),
      {core::load_be64(octets.data() + kValue), core::load_be64(octets.data() + kValue + 8)},
      static_cast<core::Service>(service)};
  if (message.from.qp_num >> 24 || message.to.qp_num >> 24) return {};
  return message;
}

bool is_of_another_version(core::Bytes octets) {
  return has_key(octets) && octets[kVersionAt] != kVersion;
}

}  // namespace uiw::rendezvous
