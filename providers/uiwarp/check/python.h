// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Where a program in Python is, as its interpreter tells: CPython from 3.9 on, by functions of its
// C interface that are looked up in the process. Without an interpreter there is nothing to look
// up.
#pragma once

#include <string>
#include <vector>

namespace uiw::check {

struct PythonFrame {
  std::string function;
  std::string file;
  int line = 0;

  auto operator<=>(const PythonFrame&) const = default;
};
using PythonStack = std::vector<PythonFrame>;  // the innermost first; no more than kMostPython
constexpr size_t kMostPython = 6;

// Of the calling thread, for the life of the process. Null: the thread does not run Python, or the
// program calls from too many places. Runs no code of the program; not with a lock held that a
// program's thread may wait for while it has the interpreter's. Thread: any.
const PythonStack* python_stack();

}  // namespace uiw::check
