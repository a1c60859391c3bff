// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/netlink_message.h"

#include <algorithm>

namespace uiw::vkernel::netlink {
namespace {

bool obeys(std::span<const uint8_t> value, AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kU32:
      return value.size() >= sizeof(uint32_t);
    case AttributeKind::kText:
      return std::find(value.begin(), value.end(), 0) != value.end();
  }
  return false;
}

}  // namespace

std::optional<Attributes> Attributes::parse(std::span<const uint8_t> payload,
                                            std::span<const AttributeRule> rules) {
  Attributes found;
  while (payload.size() >= sizeof(nlattr)) {
    nlattr header;
    std::memcpy(&header, payload.data(), sizeof header);
    if (header.nla_len < sizeof header || header.nla_len > payload.size()) break;
    const uint16_t type = header.nla_type & NLA_TYPE_MASK;
    const auto value = payload.subspan(sizeof header, header.nla_len - sizeof header);
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [type](const AttributeRule& r) { return r.type == type; });
    if (rule != rules.end()) {
      if (!obeys(value, rule->kind)) return {};
      found.values_[type] = value;
    }
    payload = payload.subspan(std::min<size_t>(NLA_ALIGN(header.nla_len), payload.size()));
  }
  return found;
}

std::optional<uint32_t> Attributes::u32(uint16_t type) const {
  const auto found = values_.find(type);
  if (found == values_.end()) return {};
  uint32_t value;
  std::memcpy(&value, found->second.data(), sizeof value);
  return value;
}

std::optional<std::string_view> Attributes::text(uint16_t type) const {
  const auto found = values_.find(type);
  if (found == values_.end()) return {};
  return reinterpret_cast<const char*>(found->second.data());
}

void Writer::answer_to(uint32_t sequence) {
  sequence_ = sequence;
  datagrams_.emplace_back();
}

void Writer::begin(uint16_t type, uint16_t flags) {
  message_ = datagram().size();
  const nlmsghdr header{0, type, flags, sequence_, port_};
  bytes(&header, sizeof header);
}

void Writer::text(uint16_t type, std::string_view value) {
  Datagram with_nul(value.begin(), value.end());
  with_nul.push_back(0);
  attribute(type, with_nul.data(), with_nul.size());
}

size_t Writer::begin_nest(uint16_t type) {
  const size_t nest = datagram().size();
  attribute(type, nullptr, 0);
  return nest;
}

void Writer::end_nest(size_t nest) {
  const auto length = static_cast<uint16_t>(datagram().size() - nest);
  std::memcpy(datagram().data() + nest + offsetof(nlattr, nla_len), &length, sizeof length);
}

void Writer::attribute(uint16_t type, const void* data, size_t size) {
  const nlattr header{static_cast<uint16_t>(sizeof header + size), type};
  bytes(&header, sizeof header);
  bytes(data, size);
}

// All parts of a message begin at multiples of four.
void Writer::bytes(const void* data, size_t size) {
  const auto* from = static_cast<const uint8_t*>(data);
  Datagram& to = datagram();
  if (size > 0) to.insert(to.end(), from, from + size);
  to.resize(NLMSG_ALIGN(to.size()));
}

void Writer::end() {
  Datagram& last = datagram();
  const auto length = static_cast<uint32_t>(last.size() - message_);
  std::memcpy(last.data() + message_ + offsetof(nlmsghdr, nlmsg_len), &length, sizeof length);
  if (message_ == 0 || last.size() <= kDatagramSize) return;
  Datagram moved(last.begin() + static_cast<ptrdiff_t>(message_), last.end());
  last.resize(message_);
  datagrams_.push_back(std::move(moved));
}

}  // namespace uiw::vkernel::netlink
