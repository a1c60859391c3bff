// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <array>
#include <cerrno>
#include <string_view>

#include "core/covers.h"
#include "core/per_process.h"
#include "core/settings.h"
#include "shake/instrument.h"
#include "shake/wraps.h"

namespace uiw::shake {

const uiwarp_verbs* next = nullptr;
uint64_t seed = 0;

Process* this_process() {
  static constinit core::PerProcess<Process> processes;
  return processes.get();
}

namespace {

#define UIW_NAME(name) std::string_view(#name),
constexpr std::array kWrapped = {UIW_SHAKEN_VERBS(UIW_NAME)};
#undef UIW_NAME
static_assert(core::Covers<uiwarp_cq, uiwarp_qp_init>::all(kWrapped));

}  // namespace

int make_table(const char* text, const uiwarp_verbs* next_table, const uiwarp_verbs** table) {
  const std::optional<uint64_t> number = core::seed_of(text);
  if (!number) return ENOTSUP;
  seed = *number;
  static uiwarp_verbs ours;
  next = next_table;
  ours = *next_table;
#define UIW_TAKE(name) ours.name = wrap::name;
  UIW_SHAKEN_VERBS(UIW_TAKE)
#undef UIW_TAKE
  *table = &ours;
  return 0;
}

}  // namespace uiw::shake
