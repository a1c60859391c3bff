// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/symbols.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace uiw::check {
namespace {

// dwfl_standard_find_debuginfo() would ask servers in the network, too.
constexpr Dwfl_Callbacks kCallbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                       .find_debuginfo = dwfl_build_id_find_debuginfo,
                                       .section_address = nullptr,
                                       .debuginfo_path = nullptr};

// A name of C++; those of C may look like the name of a type.
std::string demangled(const char* name) {
  if (!std::string_view(name).starts_with("_Z")) return name;
  int status = 0;
  char* const readable = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 && readable ? readable : name;
  std::free(readable);
  return result;
}

std::string_view base(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// Between the program's call and us; libc is where it calls fork().
bool is_between(const Frame& frame) {
  constexpr std::array<std::string_view, 4> kNames = {"libuiwarp", "libibverbs.so", "librdmacm.so",
                                                      "libuiwarp-rdmav"};
  return is_of_libc(frame) || std::ranges::any_of(kNames, [&](std::string_view name) {
           return base(frame.module).starts_with(name);
         });
}

// By which libuiwarp-preload.so calls main().
bool is_preloaded(const Frame& frame) {
  return base(frame.module).starts_with("libuiwarp-preload");
}

bool is_of_interpreter(const Frame& frame) {
  const std::string_view name = base(frame.module);
  return name.starts_with("python") || name.starts_with("libpython");
}

}  // namespace

bool is_of_libc(const Frame& frame) {
  return base(frame.module).starts_with("libc.so");
}

struct Symbols::State {
  Dwfl* dwfl = dwfl_begin(&kCallbacks);
};

Symbols::Symbols() : state_(std::make_unique<State>()) {}

Symbols::~Symbols() {
  if (state_->dwfl) dwfl_end(state_->dwfl);
}

namespace {

std::string name_of(Dwarf_Die* function) {
  Dwarf_Attribute attribute;
  const char* name =
      dwarf_formstring(dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute));
  if (!name) name = dwarf_diename(function);
  return name ? demangled(name) : std::string();
}

// Where `inlined` was called from: a file, or null, and a line.
const char* call_of(Dwarf_Die* unit, Dwarf_Die* inlined, int& line) {
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0, number = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) != 0 ||
      dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &number) != 0)
    return nullptr;
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (dwarf_getsrcfiles(unit, &files, &count) != 0 || file >= count) return nullptr;
  line = static_cast<int>(number);
  return dwarf_filesrc(files, file, nullptr, nullptr);
}

// The compilation unit that `address` belongs to; null: there is no debug information. Clang writes
// no index of them (.debug_aranges) unless it is told to; then each is asked.
Dwarf_Die* unit_of(Dwfl_Module* module, uintptr_t address, Dwarf_Addr& bias) {
  const auto has = [&](Dwarf_Die* unit) { return dwarf_haspc(unit, address - bias) > 0; };
  Dwarf_Die* unit = dwfl_module_addrdie(module, address, &bias);
  if (unit && has(unit)) return unit;
  for (unit = nullptr; (unit = dwfl_module_nextcu(module, unit, &bias));)
    if (has(unit)) return unit;
  return nullptr;
}

// The calls that the compiler has put in place of one another at `address`, which counts as the
// unit's debug information does, the innermost first: ibv_post_send() is one. `frame` is the
// outermost, with the line of the innermost.
void expand(Dwarf_Die* unit, uintptr_t address, Frame frame, std::vector<Frame>& out) {
  Dwarf_Die* scopes = nullptr;
  int count = dwarf_getscopes(unit, address, &scopes);
  if (count > 0) {
    // Outside of an inlined function come the scopes of its definition; wanted are those of its
    // call.
    Dwarf_Die innermost = scopes[0];
    std::free(std::exchange(scopes, nullptr));
    count = dwarf_getscopes_die(&innermost, &scopes);
  }
  const std::string outermost = frame.function;
  for (int i = 0; i < count; ++i) {
    if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine) continue;
    frame.function = name_of(&scopes[i]);
    int line = 0;
    const char* const file = call_of(unit, &scopes[i], line);
    if (!file) break;
    out.push_back(frame);
    frame.file = file;
    frame.line = line;
  }
  std::free(scopes);
  frame.function = outermost;
  out.push_back(std::move(frame));
}

void append(Dwfl* dwfl, uintptr_t return_address, std::vector<Frame>& out) {
  Frame frame;
  const uintptr_t address = return_address - 1;  // in the call
  frame.offset = address;
  Dwfl_Module* const module = dwfl ? dwfl_addrmodule(dwfl, address) : nullptr;
  if (!module) {
    out.push_back(std::move(frame));
    return;
  }
  Dwarf_Addr start = 0;
  if (const char* name =
          dwfl_module_info(module, nullptr, &start, nullptr, nullptr, nullptr, nullptr, nullptr))
    frame.module = name;
  frame.offset = address - start;
  if (const char* name = dwfl_module_addrname(module, address)) frame.function = demangled(name);
  Dwarf_Addr bias = 0;
  Dwarf_Die* const unit = unit_of(module, address, bias);
  if (!unit) {
    out.push_back(std::move(frame));
    return;
  }
  if (Dwarf_Line* const source = dwarf_getsrc_die(unit, address - bias)) {
    if (const char* file = dwarf_linesrc(source, nullptr, nullptr)) frame.file = file;
    dwarf_lineno(source, &frame.line);
  }
  expand(unit, address - bias, std::move(frame), out);
}

// In place of the interpreter's own frames, and of what is behind them.
void show_python(const PythonStack& stack, std::vector<Frame>& frames) {
  frames.erase(std::ranges::find_if(frames, is_of_interpreter), frames.end());
  for (const PythonFrame& one : stack)
    frames.push_back(
        {.function = one.function, .file = one.file, .line = one.line, .module = {}, .offset = 0});
}

}  // namespace

std::vector<Frame> Symbols::frames_of(const Backtrace& calls) {
  // Libraries come and go.
  if (Dwfl* const dwfl = state_->dwfl) {
    dwfl_report_begin(dwfl);
    dwfl_linux_proc_report(dwfl, getpid());
    dwfl_report_end(dwfl, nullptr, nullptr);
  }
  std::vector<Frame> frames;
  for (const uintptr_t address : calls.addresses()) append(state_->dwfl, address, frames);
  const auto first = std::ranges::find_if_not(frames, is_between);
  if (first != frames.end()) frames.erase(frames.begin(), first);
  // How programs and threads begin: main() is called by libc, which is called by what has no name
  // in a stripped program.
  const auto is_last = [&] {
    return is_of_libc(frames.back()) || frames.back().function == "_start" ||
           is_preloaded(frames.back()) || is_of_libc(frames[frames.size() - 2]);
  };
  while (frames.size() > 1 && is_last()) frames.pop_back();
  if (calls.python) show_python(*calls.python, frames);
  return frames;
}

}  // namespace uiw::check
