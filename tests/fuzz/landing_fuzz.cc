// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Large messages that are received to their places.
#include "fuzz/landing_harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uiw::test::LandingHarness::run(data, size);
  return 0;
}
