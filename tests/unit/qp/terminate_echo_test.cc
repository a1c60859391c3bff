// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A Terminate carries the headers of the segment that was wrong and its length, for every mistake
// that the vectors know (RFC 5041 7.1, RFC 5040 4.8 and figure 10).
#include <gtest/gtest.h>

#include "support/scene.h"

namespace uiw::test {
namespace {

// The last ULPDU of a stream: in every vector the one with the mistake.
Octets last_ulpdu(std::span<const uint8_t> stream) {
  Octets out;
  while (!stream.empty()) {
    const size_t length = static_cast<size_t>(stream[0]) << 8 | stream[1];
    out.assign(stream.begin() + 2, stream.begin() + 2 + static_cast<std::ptrdiff_t>(length));
    stream = stream.subspan((2 + length + 3) / 4 * 4 + 4);
  }
  return out;
}

TEST(TerminateEcho, IsThatOfTheSegmentThatWasWrong) {
  for (const Outcome& o : outcomes()) {
    if (o.fine || o.quiet) continue;
    SCOPED_TRACE(o.id);
    Machine m({.initiator = false});
    Scene scene(m.memory, o.id);
    for (RecvWr& wr : scene.receive_list(o.id)) m.receive(wr);
    const Octets octets = with_stags(negative(o.id).octets, scene.stags),
                 wrong = last_ulpdu(octets);
    ASSERT_EQ(m.feed(octets), qp::RxStatus::kFault);
    m.tx().abandon({.send = &m.rx().fault().terminate});

    Octets body = {static_cast<uint8_t>(o.code >> 8), static_cast<uint8_t>(o.code), o.flags, 0};
    if (o.flags & 0x80) append_be16(body, static_cast<uint16_t>(wrong.size()));
    if (o.flags & 0x40)
      body.insert(body.end(), wrong.begin(), wrong.begin() + (wrong[0] & 0x80 ? 14 : 18));
    if (o.flags & 0x20) body.insert(body.end(), wrong.begin() + 18, wrong.begin() + 46);
    EXPECT_EQ(to_hex(m.pending()), to_hex(fpdu(untagged(7, 2, 1, 0, body))));
  }
}

}  // namespace
}  // namespace uiw::test
