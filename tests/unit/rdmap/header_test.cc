// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rdmap/header.h"

#include <gtest/gtest.h>

#include "support/vectors.h"

namespace uiw::rdmap {
namespace {

using test::Octets;

constexpr size_t kReadRequestOffset = 20;  // in an FPDU: length 2, DDP header 18

// RO-04: every opcode as RFC 5040 fig. 4 and RFC 7306 fig. 2 number it.
TEST(RdmapHeader, ControlOctetOfEveryOpcode) {
  const Opcode opcodes[] = {Opcode::kWrite,
                            Opcode::kReadRequest,
                            Opcode::kReadResponse,
                            Opcode::kSend,
                            Opcode::kSendInvalidate,
                            Opcode::kSendSe,
                            Opcode::kSendSeInvalidate,
                            Opcode::kTerminate,
                            Opcode::kImmediate,
                            Opcode::kImmediateSe,
                            Opcode::kAtomicRequest,
                            Opcode::kAtomicResponse};
  for (uint8_t i = 0; i < 12; i++) {
    EXPECT_EQ(control(opcodes[i]), 0x40 | i);
    EXPECT_EQ(opcode_of(control(opcodes[i])), opcodes[i]);
    EXPECT_EQ(version_of(control(opcodes[i])), kVersion);
  }
}

// RO-01, RO-02: version in the upper two bits, reserved bits not looked at.
TEST(RdmapHeader, SeparatesVersionAndOpcode) {
  EXPECT_EQ(version_of(0x3f), 0);
  EXPECT_EQ(version_of(0xbf), 2);
  EXPECT_EQ(version_of(0xff), 3);
  EXPECT_EQ(opcode_of(0x73), Opcode::kSend);
  EXPECT_EQ(version_of(0x73), 1);
  EXPECT_EQ(version_of(test::negative("N03").octets[3]), 0);
}

TEST(RdmapHeader, OpcodeOfEveryVector) {
  for (const auto& v : test::vectors()) {
    if (!v.has("op") || (v.octets[0] == 0 && v.octets[1] == 0)) continue;
    EXPECT_EQ(static_cast<uint64_t>(opcode_of(v.octets[3])), v.field("op")) << v.id;
    EXPECT_EQ(version_of(v.octets[3]), kVersion) << v.id;
  }
}

TEST(RdmapHeader, DecodesAndEncodesEveryReadRequest) {
  int seen = 0;
  for (const auto& v : test::vectors()) {
    if (!v.has("rdmardsz")) continue;
    SCOPED_TRACE(v.id);
    seen++;
    const uint8_t* p = v.octets.data() + kReadRequestOffset;
    ReadRequest request = decode_read_request(p);
    EXPECT_EQ(request.size, v.field("rdmardsz"));
    if (v.has("sinkstag")) {
      EXPECT_EQ(request.sink_stag, v.field("sinkstag"));
    }
    if (v.has("sinkto")) {
      EXPECT_EQ(request.sink_to, v.field("sinkto"));
    }
    if (v.has("srcstag")) {
      EXPECT_EQ(request.source_stag, v.field("srcstag"));
    }
    if (v.has("srcto")) {
      EXPECT_EQ(request.source_to, v.field("srcto"));
    }
    uint8_t out[kReadRequestSize];
    EXPECT_EQ(encode(out, request), out + kReadRequestSize);
    EXPECT_EQ(test::to_hex(out), test::to_hex({p, kReadRequestSize}));
  }
  EXPECT_EQ(seen, 4);
}

// RO-22: sizes up to 2^32-1, and every octet at its own place.
TEST(RdmapHeader, KeepsExtremeReadRequests) {
  uint8_t out[kReadRequestSize];
  encode(out,
         ReadRequest{0x01020304, 0x05060708090a0b0c, 0xffffffff, 0x11121314, 0xfffffffffffffff0});
  EXPECT_EQ(test::to_hex(out), "0102030405060708090a0b0cffffffff11121314fffffffffffffff0");
  Octets same = test::read_request(0x01020304, 0x05060708090a0b0c, 0xffffffff, 0x11121314,
                                   0xfffffffffffffff0);
  EXPECT_EQ(test::to_hex(out), test::to_hex(same));
  ReadRequest request = decode_read_request(out);
  EXPECT_EQ(request.sink_stag, 0x01020304u);
  EXPECT_EQ(request.sink_to, 0x05060708090a0b0cu);
  EXPECT_EQ(request.size, 0xffffffffu);
  EXPECT_EQ(request.source_stag, 0x11121314u);
  EXPECT_EQ(request.source_to, 0xfffffffffffffff0u);
}

}  // namespace
}  // namespace uiw::rdmap
