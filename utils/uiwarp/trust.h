// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Who may change the files that are loaded into other users' programs, set-uid ones among them.
#pragma once

#include <string>
#include <vector>

#include "layout.h"

namespace uiw::tool {

// A file, folder or link that is not in root's hands alone.
struct Untrusted {
  std::string said;  // "user 1000 (ann) may change /home/ann"; empty: there is none
  std::string mend;  // the command by which root takes it over; empty: none would be right

  explicit operator bool() const { return !said.empty(); }
};

// The first on the way to what the absolute `path` leads to, from / downwards, links followed, that
// does not belong to root or that others may write to. Whatever can be renamed, removed or written
// to by others counts. A sticky folder (/tmp) does too: what root removes there anybody may make
// anew.
Untrusted find_untrusted(const std::string& path);

// Every file that the parts of `layout` bring into a program: themselves and what the loader finds
// for them, as it looks in a set-uid program (without LD_LIBRARY_PATH). None of their code runs for
// that.
std::vector<std::string> loaded_files(const Layout& layout);

}  // namespace uiw::tool
