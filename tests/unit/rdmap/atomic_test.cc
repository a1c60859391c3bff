// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rdmap/atomic.h"

#include <gtest/gtest.h>

#include <random>

#include "support/vectors.h"

namespace uiw::rdmap {
namespace {

using test::Octets;

constexpr size_t kHeaderOffset = 20;  // in an FPDU: length 2, DDP header 18

// The addition of RFC 7306 5.1.1, bit by bit as the RFC writes it down.
uint64_t reference_sum(uint64_t original, uint64_t add, uint64_t mask) {
  uint64_t result = 0;
  unsigned carry = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t location = uint64_t{1} << bit;
    const unsigned sum = carry + ((original & location) != 0) + ((add & location) != 0);
    if (sum & 1) result |= location;
    carry = (sum & 2) && !(mask & location);
  }
  return result;
}

// AT-03, AT-20.
TEST(Atomic, DecodesAndEncodesTheRequestVectors) {
  const Octets& add = test::vector("V11-fetchadd-req").octets;
  AtomicRequest r = decode_atomic_request(&add[kHeaderOffset]);
  EXPECT_EQ(r.op, AtomicOp::kFetchAdd);
  EXPECT_EQ(r.id, test::vector("V11-fetchadd-req").field("reqid"));
  EXPECT_EQ(r.stag, 0x55667788u);
  EXPECT_EQ(r.to, 0x2000u);
  EXPECT_EQ(r.add_or_swap, 5u);
  EXPECT_EQ(r.add_or_swap_mask, 0u);
  EXPECT_EQ(r.compare, 0u);
  EXPECT_EQ(r.compare_mask, kAllBits);
  uint8_t out[kAtomicRequestSize];
  // What a FetchAdd does not use has its fixed value by default.
  EXPECT_EQ(encode(out, AtomicRequest{.id = r.id, .stag = r.stag, .to = r.to, .add_or_swap = 5}),
            out + kAtomicRequestSize);
  EXPECT_EQ(test::to_hex(out), test::to_hex({&add[kHeaderOffset], kAtomicRequestSize}));

  const Octets& swap = test::vector("V13-cmpswap-req").octets;
  r = decode_atomic_request(&swap[kHeaderOffset]);
  EXPECT_EQ(r.op, AtomicOp::kCmpSwap);
  EXPECT_EQ(r.id, test::vector("V13-cmpswap-req").field("reqid"));
  EXPECT_EQ(r.add_or_swap, 0x1122334455667788u);
  EXPECT_EQ(r.add_or_swap_mask, kAllBits);
  EXPECT_EQ(r.compare, 42u);
  EXPECT_EQ(r.compare_mask, kAllBits);
  encode(out, r);
  EXPECT_EQ(test::to_hex(out), test::to_hex({&swap[kHeaderOffset], kAtomicRequestSize}));
}

TEST(Atomic, DecodesAndEncodesTheResponseVectors) {
  for (const char* id : {"V12-fetchadd-resp", "V14-cmpswap-resp"}) {
    const test::Vector& v = test::vector(id);
    const AtomicResponse r = decode_atomic_response(&v.octets[kHeaderOffset]);
    EXPECT_EQ(r.id, v.field("reqid"));
    EXPECT_EQ(r.original, v.field("orig"));
    uint8_t out[kAtomicResponseSize];
    EXPECT_EQ(encode(out, r), out + kAtomicResponseSize);
    EXPECT_EQ(test::to_hex(out), test::to_hex({&v.octets[kHeaderOffset], kAtomicResponseSize}));
  }
}

// Every octet at its own place; 28 reserved bits that nobody looks at.
TEST(Atomic, KeepsEveryField) {
  const AtomicRequest r{AtomicOp::kCmpSwap, 0x01020304,         0x11121314,
                        0x2122232425262728, 0x3132333435363738, 0x4142434445464748,
                        0x5152535455565758, 0x6162636465666768};
  uint8_t out[kAtomicRequestSize];
  encode(out, r);
  EXPECT_EQ(test::to_hex(out),
            test::to_hex(test::atomic_request(2, r.id, r.stag, r.to, r.add_or_swap,
                                              r.add_or_swap_mask, r.compare, r.compare_mask)));
  out[0] = out[1] = out[2] = 0xff;
  out[3] |= 0xf0;
  const AtomicRequest back = decode_atomic_request(out);
  EXPECT_EQ(back.op, r.op);
  EXPECT_EQ(back.id, r.id);
  EXPECT_EQ(back.stag, r.stag);
  EXPECT_EQ(back.to, r.to);
  EXPECT_EQ(back.add_or_swap, r.add_or_swap);
  EXPECT_EQ(back.add_or_swap_mask, r.add_or_swap_mask);
  EXPECT_EQ(back.compare, r.compare);
  EXPECT_EQ(back.compare_mask, r.compare_mask);
}

// AT-01, AT-09: two of the sixteen codes exist.
TEST(Atomic, KnowsTwoOperations) {
  uint8_t header[kAtomicRequestSize] = {};
  for (uint8_t code = 0; code < 16; ++code) {
    header[3] = code;
    EXPECT_EQ(is_defined(decode_atomic_request(header).op), code == 0 || code == 2) << int{code};
  }
}

// AT-04, AT-05: the results that the vectors' own bit-serial implementation found.
TEST(Atomic, ComputesTheVectors) {
  int adds = 0;
  for (const test::AtomicValue& v : test::atomic_values()) {
    const AtomicRequest r{.op = v.fetch_add ? AtomicOp::kFetchAdd : AtomicOp::kCmpSwap,
                          .add_or_swap = v.add_or_swap,
                          .add_or_swap_mask = v.add_or_swap_mask,
                          .compare = v.compare,
                          .compare_mask = v.compare_mask};
    EXPECT_EQ(atomic_result(r, v.original), v.result) << v.original << " " << v.add_or_swap;
    adds += v.fetch_add;
  }
  EXPECT_EQ(adds, 7);
  EXPECT_EQ(test::atomic_values().size(), 12u);
}

TEST(Atomic, AddsAsTheRfcDoesBitByBit) {
  std::mt19937_64 random(7306);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t original = random(), add = random();
    // Few, some and many fields.
    const uint64_t mask = i % 4 == 0   ? random() & random() & random()
                          : i % 4 == 1 ? random() | random()
                                       : random();
    ASSERT_EQ(masked_sum(original, add, mask), reference_sum(original, add, mask))
        << original << " " << add << " " << mask;
    ASSERT_EQ(masked_sum(original, add, 0), original + add);
    // The end of the word ends the last field anyway.
    ASSERT_EQ(masked_sum(original, add, uint64_t{1} << 63), original + add);
    ASSERT_EQ(masked_sum(original, add, kAllBits), original ^ add);
  }
}

TEST(Atomic, SwapsWhatTheMasksSay) {
  AtomicRequest r{.op = AtomicOp::kCmpSwap,
                  .add_or_swap = 0xaaaaaaaaaaaaaaaa,
                  .add_or_swap_mask = 0xff00,
                  .compare = 0x1200000000000034,
                  .compare_mask = 0xff000000000000ff};
  EXPECT_EQ(atomic_result(r, 0x1266666666666634), 0x126666666666aa34u);
  EXPECT_EQ(atomic_result(r, 0x1366666666666634), 0x1366666666666634u);
  EXPECT_EQ(atomic_result(r, 0x1266666666666635), 0x1266666666666635u);
  r.compare_mask = 0;  // compares nothing: always swaps
  EXPECT_EQ(atomic_result(r, 0), 0xaa00u);
  r.add_or_swap_mask = 0;  // swaps nothing
  EXPECT_EQ(atomic_result(r, 0x77), 0x77u);
}

}  // namespace
}  // namespace uiw::rdmap
