// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// uiwarp-probe devices|loopback: what `uiwarp devices` and `uiwarp doctor` start.
#include "probe.h"

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "devices") == 0) return uiw::probe::list_devices();
  if (argc == 2 && strcmp(argv[1], "loopback") == 0) return uiw::probe::loopback();
  fprintf(stderr, "usage: uiwarp-probe devices|loopback (see `uiwarp --help`)\n");
  return 2;
}
