// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rdmap/terminate.h"

#include <algorithm>
#include <cstring>

#include "core/assert.h"
#include "core/be.h"
#include "ddp/header.h"
#include "rdmap/header.h"

namespace uiw::rdmap {
namespace {

using core::TermCode;

constexpr uint32_t kControlSize = 4;
constexpr uint32_t kSegmentLengthSize = 2;
static_assert(kMaxTerminateBody ==
              kControlSize + kSegmentLengthSize + ddp::kUntaggedHeaderSize + kReadRequestSize);

// Octet 2 of the control word, RFC 5040 figure 8.
constexpr uint8_t kLengthFlag = 0x80;      // M
constexpr uint8_t kDdpHeaderFlag = 0x40;   // D
constexpr uint8_t kRdmaHeaderFlag = 0x20;  // R
constexpr uint8_t kHeaderFlags = kLengthFlag | kDdpHeaderFlag | kRdmaHeaderFlag;

// The same in siw's order: bit fields of a little-endian compiler.
constexpr uint8_t kSiwLengthFlag = 0x01;
constexpr uint8_t kSiwDdpHeaderFlag = 0x02;
constexpr uint8_t kSiwRdmaHeaderFlag = 0x04;

// What some RNICs send for an STag that does not exist; no RFC defines it.
constexpr uint16_t kUndefinedInvalidStag = 0x0200;

uint16_t swap_nibbles(uint16_t code) {
  return static_cast<uint16_t>((code & 0x0f00) << 4 | (code & 0xf000) >> 4 | (code & 0x00ff));
}

// Octet 2 in RFC order.
uint8_t flags_from_siw(uint8_t octet) {
  return static_cast<uint8_t>((octet & kSiwLengthFlag ? kLengthFlag : 0) |
                              (octet & kSiwDdpHeaderFlag ? kDdpHeaderFlag : 0) |
                              (octet & kSiwRdmaHeaderFlag ? kRdmaHeaderFlag : 0));
}

// Takes octets from the front of the body; a body that ends too early yields nothing.
class Reader {
 public:
  explicit Reader(core::Bytes octets) : octets_(octets) {}

  const uint8_t* take(size_t size) {
    if (octets_.size() < size) return nullptr;
    const uint8_t* p = octets_.data();
    octets_ = octets_.subspan(size);
    return p;
  }
  bool empty() const { return octets_.empty(); }
  uint8_t front() const { return octets_.front(); }

 private:
  core::Bytes octets_;
};

// Fills in what the flags promise as far as it is there.
bool decode_headers(Reader& reader, uint8_t flags, Terminate& out) {
  // RFC 5040 4.8: the length field is there whenever D is set, whatever M says.
  if (!(flags & (kLengthFlag | kDdpHeaderFlag))) return !(flags & kRdmaHeaderFlag);
  const uint8_t* p = reader.take(kSegmentLengthSize);
  if (p == nullptr) return false;
  out.has_length = true;
  out.ddp_segment_length = core::load_be16(p);

  // R without D: where the header begins is nowhere said.
  if (!(flags & kDdpHeaderFlag)) return !(flags & kRdmaHeaderFlag);
  if (reader.empty()) return false;
  uint32_t size =
      ddp::is_tagged(reader.front()) ? ddp::kTaggedHeaderSize : ddp::kUntaggedHeaderSize;
  p = reader.take(size);
  if (p == nullptr) return false;
  out.has_ddp_header = true;
  out.ddp_header_size = size;
  std::memcpy(out.ddp_header, p, size);

  if (!(flags & kRdmaHeaderFlag)) return true;
  p = reader.take(kReadRequestSize);
  if (p == nullptr) return false;
  out.has_read_header = true;
  std::memcpy(out.read_header, p, kReadRequestSize);
  return true;
}

}  // namespace

uint32_t encode(uint8_t* body, const Terminate& t) {
  UIW_ASSERT(!t.has_read_header || t.has_ddp_header);
  UIW_ASSERT(!t.has_ddp_header ||
             (t.has_length && (t.ddp_header_size == ddp::kTaggedHeaderSize ||
                               t.ddp_header_size == ddp::kUntaggedHeaderSize)));
  core::store_be16(body, static_cast<uint16_t>(t.code));
  body[2] = static_cast<uint8_t>((t.has_length ? kLengthFlag : 0) |
                                 (t.has_ddp_header ? kDdpHeaderFlag : 0) |
                                 (t.has_read_header ? kRdmaHeaderFlag : 0));
  body[3] = 0;
  uint8_t* p = body + kControlSize;
  if (t.has_length) {
    core::store_be16(p, t.ddp_segment_length);
    p += kSegmentLengthSize;
  }
  if (t.has_ddp_header) {
    std::memcpy(p, t.ddp_header, t.ddp_header_size);
    p += t.ddp_header_size;
  }
  if (t.has_read_header) {
    std::memcpy(p, t.read_header, kReadRequestSize);
    p += kReadRequestSize;
  }
  return static_cast<uint32_t>(p - body);
}

bool decode(core::Bytes body, Terminate& out) {
  out = Terminate{};
  uint8_t control[kControlSize] = {};
  size_t available = std::min<size_t>(body.size(), kControlSize);
  if (available > 0) std::memcpy(control, body.data(), available);
  uint16_t code = core::load_be16(control);
  uint8_t flags = control[2] & kHeaderFlags;
  uint8_t siw_flags = flags_from_siw(control[2]);
  uint16_t swapped = swap_nibbles(code);
  // siw's order when nothing else makes sense of the word: no flag where the RFC has them, and
  // either flags where siw has them or a code that exists only after swapping. Where both readings
  // are possible the RFC's is taken.
  bool rfc_code_exists = core::is_defined(static_cast<TermCode>(code));
  if (flags == 0 && (siw_flags != 0 || !rfc_code_exists) &&
      core::is_defined(static_cast<TermCode>(swapped))) {
    out.siw_layout = true;
    code = swapped;
    flags = siw_flags;
  }
  out.code =
      code == kUndefinedInvalidStag ? TermCode::kRemoteInvalidStag : static_cast<TermCode>(code);
  if (body.size() < kControlSize) return false;
  Reader reader(body.subspan(kControlSize));
  return decode_headers(reader, flags, out);
}

}  // namespace uiw::rdmap
