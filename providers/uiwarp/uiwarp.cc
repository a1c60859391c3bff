// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// libuiwarp.so.0: says which private ABI it speaks; everything else is in the layers.
#include "uiwarp/uiwarp-abi.h"

int uiwarp_abi_version(void) {
  return UIWARP_ABI_VERSION;
}
