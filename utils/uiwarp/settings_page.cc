// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "settings_page.h"

#include <stdlib.h>

#include <cstdio>
#include <string>

namespace uiw::tool {

void print_settings() {
  core::Settings ignored;
  for (const core::SettingInfo& info : core::setting_table()) {
    const char* text = getenv(info.name);
    std::string problem;
    if (text && !core::parse_setting(info.name, text, ignored, problem))
      fprintf(stderr, "uiwarp: %s\n", problem.c_str());
    printf("%s=%s\n    %s; default %s%s\n    %s\n", info.name, text ? text : info.fallback,
           info.type, info.fallback, text ? "; set in the environment" : "", info.help);
  }
}

void print_settings_markdown() {
  printf(
      "# Settings\n\n"
      "<!-- Written by `uiwarp settings --markdown`; tests compare it with the table in "
      "core/settings.cc. -->\n\n"
      "Environment variables, read once when a program first touches an RDMA device. A wrong value "
      "is\n"
      "reported with the variable and the allowed values, and opening a device fails with "
      "`EINVAL`.\n\n"
      "| variable | values | default | effect |\n|---|---|---|---|\n");
  for (const core::SettingInfo& info : core::setting_table()) {
    printf("| `%s` | ", info.name);
    for (const char* c = info.type; *c; c++) {
      if (*c == '|') putchar('\\');  // a bar would end the cell
      putchar(*c);
    }
    printf(" | `%s` | %s |\n", info.fallback, info.help);
  }
}

}  // namespace uiw::tool
