// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a peer may say in full operation.
#include "fuzz/stream_harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uiw::test::StreamHarness::run(data, size);
  return 0;
}
