// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// When a silent peer is taken for gone; tests/raw/vanished_peer_test.cc has peers that are.
#include "transport/silence.h"

#include <gtest/gtest.h>

namespace uiw::transport {
namespace {

constexpr core::Nanoseconds kStep = 250 * core::kMillisecond;
constexpr core::Nanoseconds kHour = 3600 * core::kSecond;

class Silences : public testing::Test {
 protected:
  // The next look; the peer was heard that long ago.
  bool look(Pulse pulse, core::Nanoseconds heard_ago) {
    pulse.heard_ago = heard_ago;
    return silence.look(pulse, now += kStep);
  }
  // How many looks until it has gone; 0 when it has not after a hundred.
  int looks_until_gone(const Pulse& pulse) {
    for (int i = 1; i <= 100; ++i) {
      if (look(pulse, kHour)) return i;
    }
    return 0;
  }

  const Pulse sent{.unacknowledged = true};
  Silence silence;
  core::Nanoseconds now = 10 * kHour;
};

TEST_F(Silences, OneLimitAfterItWasSeenToBeAsked) {
  EXPECT_FALSE(look({}, 0));
  EXPECT_EQ(looks_until_gone(sent), 1 + Silence::kLooks);
}

TEST_F(Silences, AnythingHeardBeginsAnew) {
  for (int i = 0; i < 3 * Silence::kLooks; ++i) EXPECT_FALSE(look(sent, i % 4 ? kHour : kStep / 2));
  EXPECT_EQ(looks_until_gone(sent), Silence::kLooks - 3);
}

TEST_F(Silences, WhoIsNotAskedMaySayNothing) {
  EXPECT_EQ(looks_until_gone({}), 0);
  EXPECT_EQ(looks_until_gone({.unsent = true}), 0);
  // What it was asked in between was answered.
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(look(i % Silence::kLooks ? sent : Pulse{}, kHour));
}

// A live one answers some only: the kernel limits how often.
TEST_F(Silences, OneProbeOfAClosedWindowSaysNothing) {
  EXPECT_EQ(looks_until_gone({.unsent = true, .probes = 1}), 0);
  EXPECT_TRUE(look({.unsent = true, .probes = 2}, kHour));
}

// A machine that was suspended, or an engine that did not get to run, has seen nothing meanwhile.
TEST_F(Silences, AreCountedInLooks) {
  EXPECT_FALSE(look(sent, kHour));
  now += kHour;
  EXPECT_FALSE(look(sent, 2 * kHour));
  EXPECT_FALSE(look(sent, 2 * kHour));
}

TEST_F(Silences, NeedNotBeLookedAtWhileNothingIsOnItsWay) {
  EXPECT_TRUE(silence.idle());
  look(sent, 0);
  EXPECT_FALSE(silence.idle());
  look({.unsent = true}, 0);
  EXPECT_FALSE(silence.idle());
  look({}, 0);
  EXPECT_TRUE(silence.idle());
}

}  // namespace
}  // namespace uiw::transport
