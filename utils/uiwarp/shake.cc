// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "shake.h"

#include <signal.h>

#include <cinttypes>
#include <cstdio>

#include "run.h"
#include "shake_why.h"
#include "shaken_command.h"

namespace uiw::tool {
int shake(const Layout& layout, const ShakePlan& plan, const std::vector<std::string>& command) {
  if (const int status = why_not_started(layout, command)) return status;
  if (!(plan.timeout > 0)) {  // what is no number, too
    fputs("uiwarp: --timeout: a number of seconds is wanted\n", stderr);
    return 2;
  }
  signal(SIGCHLD, SIG_DFL);  // ignored, the status of a run would be lost
  const EndSignals signals;
  const ShakenCommand shaken{layout, command, plan.timeout, signals};
  for (uint64_t i = 0; i < plan.runs; ++i) {
    const std::string seed = std::to_string(plan.first_seed + i);
    KeptOutput output;
    const Run run = shaken.run(seed, output);
    if (const int status = why_no_result(run, seed)) return status;
    if (!run.failed()) continue;
    output.print(stdout);
    fprintf(stderr, "uiwarp: seed %s: %s; again by (it may take several runs):\n    %s\n",
            seed.c_str(), shaken.text_of(run).c_str(), shaken.again(seed).c_str());
    if (!plan.why) return 1;
    const int status = tell_why(shaken, seed);
    return status == 0 ? 1 : status;
  }
  printf("%" PRIu64 " runs, seeds %" PRIu64 " to %" PRIu64 ": none failed\n", plan.runs,
         plan.first_seed, plan.first_seed + plan.runs - 1);
  return 0;
}

}  // namespace uiw::tool
