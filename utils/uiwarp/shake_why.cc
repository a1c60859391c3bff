// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "shake_why.h"

#include <cstdio>
#include <vector>

#include "core/shake_options.h"

namespace uiw::tool {
namespace {

using core::LibertyInfo;

// Whether a run fails depends on the machine, too, so one that passes says little.
constexpr int kTries = 3;

struct Verdict {
  bool failed = false;
  int status = 0;  // as why_no_result()
};

// A line for it.
Verdict try_out(const ShakenCommand& command, const char* label, const std::string& options) {
  Run run;
  for (int i = 0; i < kTries && !run.failed(); ++i) {
    KeptOutput ignored;
    run = command.run(options, ignored);
    if (const int status = why_no_result(run, options)) return {false, status};
  }
  fprintf(stderr, "    %-16s %s\n", label, command.text_of(run).c_str());
  return {run.failed(), 0};
}

// Tries each liberty with `option` in front of its name; `wanted`: the verdict of those that are
// kept in `found`.
int try_each(const ShakenCommand& command, const std::string& seed, const std::string& option,
             bool wanted, std::vector<const LibertyInfo*>& found) {
  for (const LibertyInfo& info : core::liberty_table()) {
    const std::string word = option + "=" + info.name;
    const Verdict verdict = try_out(command, word.c_str(), seed + "," + word);
    if (verdict.status != 0) return verdict.status;
    if (verdict.failed == wanted) found.push_back(&info);
  }
  return 0;
}

void tell_alone(const ShakenCommand& command, const std::string& seed,
                const std::vector<const LibertyInfo*>& enough) {
  for (const LibertyInfo* const info : enough) {
    fprintf(stderr, "uiwarp: it fails where %s (doc/shake.md); again by:\n    %s\n", info->what,
            command.again(seed + ",only=" + info->name).c_str());
  }
}

void tell_together(const ShakenCommand& command, const std::string& seed,
                   const std::vector<const LibertyInfo*>& needed) {
  std::string options = seed;
  for (const LibertyInfo* const info : needed) options += std::string(",only=") + info->name;
  if (needed.empty()) {
    fputs(
        "uiwarp: no liberty is enough, and none is needed: it fails by different ones, or now "
        "and then. Try another seed (--from)\n",
        stderr);
    return;
  }
  fprintf(stderr, "uiwarp: it takes %s; again by:\n    %s\n",
          needed.size() == 1 ? "this one and others" : "these together",
          command.again(options).c_str());
}

}  // namespace

int tell_why(const ShakenCommand& command, const std::string& seed) {
  fprintf(stderr, "uiwarp: seed %s with one liberty alone, up to %d runs of each:\n", seed.c_str(),
          kTries);
  const Verdict plain = try_out(command, "none of them", "off");
  if (plain.status != 0) return plain.status;
  if (plain.failed) {
    fputs("uiwarp: it fails without --shake, too\n", stderr);
    return 0;
  }
  std::vector<const LibertyInfo*> enough, needed;
  if (const int status = try_each(command, seed, "only", true, enough)) return status;
  if (!enough.empty()) {
    tell_alone(command, seed, enough);
    return 0;
  }
  fputs("uiwarp: none alone makes it fail; all but one:\n", stderr);
  if (const int status = try_each(command, seed, "without", false, needed)) return status;
  tell_together(command, seed, needed);
  return 0;
}

}  // namespace uiw::tool
