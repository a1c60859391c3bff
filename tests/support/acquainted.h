// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A machine that knows of its peer that it is a uiwarp, too.
#pragma once

#include "qp/long_fpdus.h"
#include "support/machine.h"
#include "support/segments.h"

namespace uiw::test {

// Its first message has gone already.
struct Acquainted : Machine {
  static constexpr uint32_t kEmss = 65483;  // loopback

  explicit Acquainted(MachineOptions options = {.crc = false}) : Machine(as_wanted(options)) {
    EXPECT_EQ(feed(fpdu(tagged(0, 1, qp::long_fpdus::kWelcome, {}), options.crc)),
              qp::RxStatus::kOk);
    transmit();  // the answer
  }
  static MachineOptions as_wanted(MachineOptions options) {
    options.emss = kEmss;
    options.long_fpdus = true;
    return options;
  }
};

}  // namespace uiw::test
