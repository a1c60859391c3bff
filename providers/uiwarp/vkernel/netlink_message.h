// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Netlink messages, as linux/netlink.h lays them out: reading the attributes of a request, writing
// answers. Pure.
#pragma once

#include <linux/netlink.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace uiw::vkernel::netlink {

// What an attribute has to be, where it is there.
enum class AttributeKind {
  kU32,   // four bytes or more
  kText,  // bytes with a NUL among them
};

struct AttributeRule {
  uint16_t type;
  AttributeKind kind;
};

// The attributes of a request. As in the kernel the last of several of a type counts, those without
// a rule are skipped, and what is left over behind the last whole one is ignored.
class Attributes {
 public:
  // Empty when an attribute breaks its rule. `payload` has to outlive the result.
  static std::optional<Attributes> parse(std::span<const uint8_t> payload,
                                         std::span<const AttributeRule> rules);

  // Of a type whose rule is kU32 and kText.
  std::optional<uint32_t> u32(uint16_t type) const;
  std::optional<std::string_view> text(uint16_t type) const;

 private:
  std::map<uint16_t, std::span<const uint8_t>> values_;
};

using Datagram = std::vector<uint8_t>;

// Writes answers to one request after the other. Each datagram but that of an error fits into the
// smallest buffer that readers have, a page.
class Writer {
 public:
  // What a kernel puts into one datagram of a dump.
  static constexpr size_t kDatagramSize = 3600;

  // The answers go to the socket with this port id.
  explicit Writer(uint32_t port) : port_(port) {}

  // What is begun from here on answers a request with this sequence number, in a new datagram.
  void answer_to(uint32_t sequence);

  // One message: begin, any number of what it holds, end. end() moves it into a datagram of its own
  // when it does not fit beside those before it.
  void begin(uint16_t type, uint16_t flags);
  void u8(uint16_t type, uint8_t value) { attribute(type, &value, sizeof value); }
  void u32(uint16_t type, uint32_t value) { attribute(type, &value, sizeof value); }
  void u64(uint16_t type, uint64_t value) { attribute(type, &value, sizeof value); }
  void text(uint16_t type, std::string_view value);
  // Attributes until end_nest() lie within this one.
  size_t begin_nest(uint16_t type);
  void end_nest(size_t nest);
  // Bytes that are no attribute.
  void bytes(const void* data, size_t size);
  void end();

  std::vector<Datagram> take() { return std::move(datagrams_); }

 private:
  void attribute(uint16_t type, const void* data, size_t size);
  Datagram& datagram() { return datagrams_.back(); }

  uint32_t port_;
  uint32_t sequence_ = 0;
  size_t message_ = 0;  // where the one that was begun starts
  std::vector<Datagram> datagrams_;
};

}  // namespace uiw::vkernel::netlink
