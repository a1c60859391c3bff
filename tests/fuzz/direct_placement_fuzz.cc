// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Large messages that are placed directly.
#include "fuzz/direct_placement_harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uiw::test::DirectPlacementHarness::run(data, size);
  return 0;
}
