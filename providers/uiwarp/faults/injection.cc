// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults/injection.h"

#include <cstdio>

#include "core/log.h"
#include "core/per_process.h"

namespace uiw::faults {
namespace {

struct Process {
  std::mutex mutex;
  Stream stream{Scope::kProcess, 0};
};

// Never destroyed: a program's destructors may come after ours.
Rules& all_rules() {
  static auto* const rules = new Rules;
  return *rules;
}

}  // namespace

bool configure(const char* path) {
  const std::string problem = load(path, all_rules());
  if (problem.empty()) return true;
  core::log(core::LogLevel::kError,
            "UIWARP_FAULTS: %s. Correct or unset it; until then no device can be opened",
            problem.c_str());
  return false;
}

const Rules& rules() {
  return all_rules();
}

Notes::~Notes() {
  for (const std::string& line : lines_)
    core::log(core::LogLevel::kWarn, "faults: %s", line.c_str());
}

void Notes::call(const Hit& hit) {
  char line[160];
  std::snprintf(line, sizeof line, "line %d: %s, number %llu, fails with %s", hit.rule->line,
                info(hit.rule->event).title, static_cast<unsigned long long>(hit.number),
                name_of(errno_names(), hit.rule->error));
  lines_.emplace_back(line);
}

void Notes::request(const Hit& hit, const Qp& qp) {
  char line[160], what[80];
  if (hit.rule->action == Action::kStatus)
    std::snprintf(what, sizeof what, "completes with IBV_WC_%s",
                  name_of(hit.rule->event == Event::kRecv ? receive_status_names() : status_names(),
                          hit.rule->status));
  else
    std::snprintf(what, sizeof what, "has its completion handed out %.3f ms late",
                  static_cast<double>(hit.delay) / core::kMillisecond);
  std::snprintf(line, sizeof line, "line %d: queue pair 0x%06x: %s, number %llu, %s",
                hit.rule->line, qp.number, info(hit.rule->event).title,
                static_cast<unsigned long long>(hit.number), what);
  lines_.emplace_back(line);
}

int failing(Event event, Stream& stream, Notes& notes) {
  const std::optional<Hit> hit = stream.next(rules(), event);
  if (!hit) return 0;
  notes.call(*hit);
  return hit->rule->error;
}

int failing(Event event) {
  static constinit core::PerProcess<Process> processes;
  Notes notes;
  Process* const process = processes.get();
  if (!process) return 0;
  const std::lock_guard lock(process->mutex);
  return failing(event, process->stream, notes);
}

int failing(Event event, Qp& qp) {
  if (qp.foreign()) return 0;
  Notes notes;
  const std::lock_guard lock(qp.mutex);
  return failing(event, qp.stream, notes);
}

}  // namespace uiw::faults
