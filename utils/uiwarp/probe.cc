// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// uiwarp-probe devices [text|json]|loopback: what `uiwarp devices` and `uiwarp doctor` start.
#include "probe.h"

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  using uiw::probe::Form;
  if (argc >= 2 && argc <= 3 && strcmp(argv[1], "devices") == 0) {
    const bool as_json = argc == 3 && strcmp(argv[2], "json") == 0;
    return uiw::probe::list_devices(as_json ? Form::kJson : Form::kText);
  }
  if (argc == 2 && strcmp(argv[1], "loopback") == 0) return uiw::probe::loopback();
  fprintf(stderr, "usage: uiwarp-probe devices [text|json]|loopback (see `uiwarp --help`)\n");
  return 2;
}
