// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "qp/peer_hints.h"

#include <gtest/gtest.h>

namespace uiw::qp {
namespace {

TEST(PeerHints, AnArrivalHintIsThisTaggedOffset) {
  EXPECT_EQ(arrival_hint_offset({.next_send = 0x01020304, .writes = 5}), 0x7569777201020304u);
  EXPECT_EQ(arrival_hint_of(5, 0x7569777201020304u), (ArrivalHint{0x01020304, 5}));
}

TEST(PeerHints, NoneIsTakenForAnother) {
  const uint64_t offsets[] = {0,
                              kCapabilityHint,
                              kImmediatesHint,
                              length_hint_offset({7, 8}),
                              immediate_hint_offset(9),
                              arrival_hint_offset({1, 2})};
  for (const uint64_t to : offsets) {
    EXPECT_EQ(length_hint_of(1, to).has_value(), to == offsets[3]) << to;
    EXPECT_EQ(immediate_hint_of(to).has_value(), to == offsets[4]) << to;
    EXPECT_EQ(arrival_hint_of(1, to).has_value(), to == offsets[5]) << to;
  }
}

}  // namespace
}  // namespace uiw::qp
