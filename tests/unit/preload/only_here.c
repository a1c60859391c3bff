// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A library to be found. */
__attribute__((visibility("default"))) extern const int uiwarp_test_found;
const int uiwarp_test_found = 1;
