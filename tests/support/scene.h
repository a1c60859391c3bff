// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The memory and receives that the negative vectors speak of, and what each of them has to lead to
// in this version (conformance: Terminate code, its M, D and R flags, completions, event).
#pragma once

#include <string_view>

#include "support/machine.h"

namespace uiw::test {

// The names the vectors use; scene() puts real STags in their place.
inline constexpr uint32_t kVectorTarget = 0x11223344, kVectorRestricted = 0x11223355,
                          kVectorForeign = 0x11223366;
inline constexpr uint64_t kVectorStart = 0x10000;
inline constexpr size_t kVectorLength = 0x1000, kVectorReceive = 64;

struct Outcome {
  std::string_view id;
  uint16_t code;  // of the Terminate that we send; 0 with `quiet`
  uint8_t flags;  // M 0x80, D 0x40, R 0x20
  ibv_event_type event;
  std::vector<ibv_wc_status> receives;  // completed, in order, of the two that are posted
  bool quiet = false;                   // the stream ends without a Terminate of ours
  bool fine = false;                    // accepted, the connection goes on
};

inline const std::vector<Outcome>& outcomes() {
  constexpr uint8_t kMd = 0xc0, kMdr = 0xe0;
  constexpr auto kFatal = IBV_EVENT_QP_FATAL, kAccess = IBV_EVENT_QP_ACCESS_ERR,
                 kRequest = IBV_EVENT_QP_REQ_ERR;
  static const std::vector<Outcome> all = {
      {"N01", 0x1206, kMd, kFatal, {}},
      {"N02", 0x1104, kMd, kFatal, {}},
      {"N03", 0x0205, kMd, kFatal, {}},
      {"N04", 0x0206, kMd, kFatal, {}},
      {"N05", 0x0206, kMd, kFatal, {}},
      {"N06", 0x0206, kMd, kFatal, {}},
      {"N07", 0x0206, kMd, kFatal, {}},
      {"N08", 0x1201, kMd, kFatal, {}},
      {"N09", 0x1201, kMd, kFatal, {}},
      {"N10", 0x1203, kMd, kFatal, {}},
      {"N11", 0x1203, kMd, kFatal, {IBV_WC_SUCCESS}},
      {"N12", 0x1202, kMd, kFatal, {}},
      {"N13", 0x1202, kMd, kFatal, {}},
      {"N14", 0x1204, kMd, kFatal, {IBV_WC_GENERAL_ERR}},
      {"N15", 0x1204, kMd, kFatal, {IBV_WC_GENERAL_ERR}},
      {"N16", 0x1205, kMd, kFatal, {IBV_WC_LOC_LEN_ERR}},
      {"N17", 0x2002, 0, kFatal, {}},
      {"N18", 0x2002, 0, kFatal, {}},
      // Shorter than a DDP header: there is none to echo.
      {"N19", 0x1000, 0, kFatal, {}},
      {"N20", 0x1000, 0, kFatal, {}},
      {"N21", 0x1000, 0, kFatal, {}},
      {"N22", 0x02ff, kMd, kFatal, {}},
      {"N23", 0x02ff, kMd, kFatal, {}},
      {"N24", 0x02ff, kMd, kFatal, {IBV_WC_GENERAL_ERR}},
      {"N25", 0x02ff, kMd, kFatal, {IBV_WC_GENERAL_ERR}},
      {"N26", 0x1100, kMd, kAccess, {}},
      {"N27", 0x1100, kMd, kAccess, {}},
      {"N28", 0x1101, kMd, kAccess, {}},
      {"N29", 0x1101, kMd, kAccess, {}},
      {"N30", 0x1103, kMd, kAccess, {}},
      {"N31", 0x1102, kMd, kAccess, {}},
      {"N32", 0x1100, kMd, kAccess, {}},
      {"N33", 0x1101, kMd, kAccess, {}},
      {"N34", 0x0100, kMdr, kAccess, {}},
      {"N35", 0x0101, kMdr, kAccess, {}},
      {"N36", 0x0102, kMdr, kAccess, {}},
      {"N37", 0x0103, kMdr, kAccess, {}},
      {"N38", 0x0104, kMdr, kAccess, {}},
      {"N39", 0, 0, kFatal, {}, false, true},
      {"N40", 0, 0, kFatal, {}, false, true},
      {"N41", 0x0206, kMd, kFatal, {}},
      {"N42", 0x1202, kMd, kFatal, {}},
      {"N43", 0x0207, kMd, kRequest, {}},
      {"N44", 0x0206, kMd, kRequest, {}},
      {"N45", 0x0100, kMd, kAccess, {}},
      {"N46", 0x0209, kMd, kAccess, {IBV_WC_REM_INV_REQ_ERR}},
      {"N47", 0x0109, kMd, kAccess, {IBV_WC_REM_INV_REQ_ERR}},
      {"N48", 0, 0, kFatal, {}, true},
      {"N49", 0, 0, kFatal, {}, true},
      {"N50", 0, 0, kFatal, {}, true},
      {"N51", 0, 0, kFatal, {IBV_WC_SUCCESS}, false, true},
      {"N52", 0, 0, kFatal, {IBV_WC_SUCCESS}, false, true},
  };
  return all;
}

struct Stags {
  uint32_t target, restricted, foreign;
  uint32_t of(uint32_t vector_stag) const {
    switch (vector_stag) {
      case kVectorTarget:
        return target;
      case kVectorTarget + 1:
        return target ^ 1;  // the right index with a stale key
      case kVectorRestricted:
        return restricted;
      case kVectorForeign:
        return foreign;
      default:
        return vector_stag;
    }
  }
};

inline uint32_t read_be32(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) << 24 | static_cast<uint32_t>(p[1]) << 16 |
         static_cast<uint32_t>(p[2]) << 8 | p[3];
}
inline uint64_t read_be64(const uint8_t* p) {
  return static_cast<uint64_t>(read_be32(p)) << 32 | read_be32(p + 4);
}

// The same FPDUs with the STags that memory tables gave out, and right CRCs where they were right.
inline Octets with_stags(std::span<const uint8_t> stream, const Stags& stags) {
  Octets out;
  while (!stream.empty()) {
    const size_t length = static_cast<size_t>(stream[0]) << 8 | stream[1];
    const size_t whole = (2 + length + 3) / 4 * 4 + 4;
    Octets ulpdu(stream.begin() + 2, stream.begin() + 2 + static_cast<std::ptrdiff_t>(length));
    const Octets before = fpdu(ulpdu);
    const auto put = [&](size_t at) {
      if (ulpdu.size() < at + 4) return;
      Octets stag;
      append_be32(stag, stags.of(read_be32(&ulpdu[at])));
      std::copy(stag.begin(), stag.end(), ulpdu.begin() + static_cast<std::ptrdiff_t>(at));
    };
    if (!ulpdu.empty()) put(2);  // tagged: the STag; untagged: what to invalidate
    const uint8_t opcode = ulpdu.size() > 1 ? ulpdu[1] & 0xf : 0;
    if (opcode == 1) put(34);  // Read Request: the source
    if (opcode == 0xa) put(26);
    const bool sound = std::equal(before.begin(), before.end(), stream.begin());
    const Octets after = fpdu(ulpdu);
    const bool same_stags = before == after;
    const auto* first = sound && !same_stags ? after.data() : stream.data();
    out.insert(out.end(), first, first + whole);
    stream = stream.subspan(whole);
  }
  return out;
}

// Regions as the vectors want them.
struct Scene {
  explicit Scene(mem::Table& memory, std::string_view id = {})
      : target(memory, pattern(kVectorLength, 1), kAllAccess, kPd, kVectorStart),
        restricted(memory, pattern(kVectorLength, 2),
                   id == "N32" ? mem::kRemoteRead : mem::kLocalWrite | mem::kRemoteWrite, kPd,
                   kVectorStart),
        foreign(memory, pattern(kVectorLength, 3), kAllAccess, kOtherPd, kVectorStart),
        receives(memory, 2 * kVectorReceive),
        stags{target.stag(), restricted.stag(), foreign.stag()} {}

  // Nothing was written but what may have been.
  void expect_untouched(std::string_view id) {
    Octets expected = pattern(kVectorLength, 1);
    // Its first segment is right.
    if (id == "N33") std::fill(expected.end() - 8, expected.end(), 0x77);
    EXPECT_TRUE(target.content() == expected);
    EXPECT_TRUE(restricted.content() == pattern(kVectorLength, 2));
    EXPECT_TRUE(foreign.content() == pattern(kVectorLength, 3));
  }
  std::vector<RecvWr> receive_list(std::string_view id) const {
    if (id == "N12" || id == "N13") return {};
    return {RecvWr({receives.sge(0, kVectorReceive)}, 1),
            RecvWr({receives.sge(kVectorReceive, kVectorReceive)}, 2)};
  }

  Buffer target, restricted, foreign, receives;
  Stags stags;
};

}  // namespace uiw::test
