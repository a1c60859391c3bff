// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  // Settings are read once per process. Nothing here is to happen because time has passed: on a
  // busy machine any time passes. (tests/raw has that.)
  setenv("UIWARP_RNR_WAIT_MS", "60000", 1);
  setenv("UIWARP_CLOSE_TIMEOUT_MS", "60000", 1);
  setenv("UIWARP_LOG", "error", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
