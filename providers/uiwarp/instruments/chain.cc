// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The one place where instruments are put in front of the stack, in the order of kInstruments: the
// first stands next to it. They come from libuiwarp-instruments.so, which is loaded when a setting
// asks for one.
#include <dlfcn.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>

#include "core/instrumented.h"
#include "core/log.h"
#include "core/own_stack.h"
#include "core/settings.h"
#include "uiwarp/uiwarp-verbs.h"

namespace {

using Table = uiwarp_verbs;
using namespace uiw;

constexpr char kLibrary[] = "libuiwarp-instruments.so";

#define UIW_VERB(name) .name = uiwarp_##name,
constexpr Table kPlain = {UIWARP_VERBS(UIW_VERB)};
#undef UIW_VERB

struct Instrument {
  const char* name;     // as libuiwarp-instruments.so knows it
  const char* setting;  // which asks for it
  const char* options;  // that setting's text; "off": not wanted
};

using Make = decltype(&uiwarp_instrument);

struct Loaded {
  Make make = nullptr;
  char why_not[256] = "no path to it";
};

void load(void* argument) {
  auto& loaded = *static_cast<Loaded*>(argument);
  char path[PATH_MAX];
  Dl_info here;
  if (!dladdr(&kPlain, &here) || !here.dli_fname) return;
  const char* const slash = std::strrchr(here.dli_fname, '/');
  // Beside us, so that all parts are of one build.
  const int length = std::snprintf(path, sizeof path, "%.*s%s",
                                   slash ? static_cast<int>(slash + 1 - here.dli_fname) : 0,
                                   here.dli_fname, kLibrary);
  if (length < 0 || static_cast<size_t>(length) >= sizeof path) return;
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library) loaded.make = reinterpret_cast<Make>(dlsym(library, "uiwarp_instrument"));
  // Of this thread's last step.
  const char* const why = loaded.make ? nullptr : dlerror();
  if (why) std::snprintf(loaded.why_not, sizeof loaded.why_not, "%s", why);
}

// The loader recurses for each library that another one needs.
Loaded load_somewhere() {
  constexpr size_t kEnough = 256 * 1024, kStack = 1024 * 1024;
  Loaded loaded;
  core::run_with_enough_stack(kEnough, kStack, load, &loaded);
  return loaded;
}

// What is opened when an instrument that was asked for is not to be had: never unchecked instead.
int refuse(const uiwarp_device*, uint64_t, uiwarp_context**, int*) {
  return EINVAL;
}

const Table* refusal() {
  static Table table = kPlain;
  table.context_open = refuse;
  return &table;
}

const Table* make_chain() {
  // What goes wrong by a rule, or comes by a seed, is seen by --trace and --check as the program
  // sees it; what --check leaves undefined --trace sees before.
  const Instrument instruments[] = {{"faults", "UIWARP_FAULTS", core::settings().faults},
                                    {"shake", "UIWARP_SHAKE", core::settings().shake},
                                    {"trace", "UIWARP_TRACE", core::settings().trace},
                                    {"check", "UIWARP_CHECK", core::settings().check}};
  const Table* table = &kPlain;
  // A wrong setting has been reported, and nothing is opened.
  if (core::settings_error()) return table;
  std::optional<Loaded> loaded;
  for (const Instrument& instrument : instruments) {
    if (std::strcmp(instrument.options, "off") == 0) continue;
    if (!loaded) loaded = load_somewhere();
    if (!loaded->make) {
      core::log(core::LogLevel::kError,
                "%s is set, but %s cannot be loaded (%s): no device can be opened. Install uiwarp "
                "again, or unset %s",
                instrument.setting, kLibrary, loaded->why_not, instrument.setting);
      return refusal();
    }
    const int error =
        loaded->make(UIWARP_ABI_VERSION, instrument.name, instrument.options, table, &table);
    if (error == EINVAL) return refusal();
    if (error) {
      core::log(core::LogLevel::kError,
                "%s is set, but %s comes from a different build than libuiwarp.so.0: no device can "
                "be opened. Install uiwarp again, or unset %s",
                instrument.setting, kLibrary, instrument.setting);
      return refusal();
    }
  }
  if (table != &kPlain) core::instrumented.store(table, std::memory_order_release);
  return table;
}

}  // namespace

const Table* uiwarp_get_verbs() {
  static std::once_flag once;
  static const Table* chain = nullptr;
  std::call_once(once, [] { chain = make_chain(); });
  return chain;
}
