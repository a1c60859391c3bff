// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A machine whose peer has sent the capability hint.
#pragma once

#include "qp/peer_hints.h"
#include "support/machine.h"
#include "support/segments.h"

namespace uiw::test {

// Its first message has gone already.
struct HintedMachine : Machine {
  static constexpr uint32_t kEmss = 65483;  // loopback

  explicit HintedMachine(MachineOptions options = {.crc = false}) : Machine(as_wanted(options)) {
    EXPECT_EQ(feed(fpdu(tagged(0, 1, qp::kCapabilityHint, {}), options.crc)), qp::RxStatus::kOk);
    transmit();  // the answering hint
  }
  static MachineOptions as_wanted(MachineOptions options) {
    options.emss = kEmss;
    options.long_fpdus = true;
    return options;
  }
};

}  // namespace uiw::test
