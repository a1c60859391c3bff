// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What two ends may do to each other in any order.
#include "fuzz/pair_harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uiw::test::PairHarness::run(data, size);
  return 0;
}
