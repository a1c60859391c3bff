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
  static uint64_t editions = 0;
  all_rules().edition = ++editions;
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
  char what[40];
  std::snprintf(what, sizeof what, "fails with %s", name_of(errno_names(), hit.rule->error));
  say(hit, 0, what);
}

void Notes::request(const Hit& hit, const Qp& qp, ibv_wc_status status) {
  char what[60];
  std::snprintf(what, sizeof what, "completes with IBV_WC_%s", name_of_status(status));
  say(hit, qp.number, what);
}

void Notes::late(const Hit& hit, const Qp& qp) {
  char what[60];
  std::snprintf(what, sizeof what, "has its completion handed out %.3f ms late",
                static_cast<double>(hit.delay) / core::kMillisecond);
  say(hit, qp.number, what);
}

void Notes::connection(const Hit& hit, uint32_t qp_num) {
  switch (hit.rule->action) {
    case Action::kReject:
      return say(hit, qp_num, "is rejected");
    case Action::kTimeOut:
      return say(hit, qp_num, "gets no answer");
    case Action::kUnreachable:
      return say(hit, qp_num, "finds no way to its peer");
    default:
      return say(hit, qp_num, "is reset");
  }
}

// `qp_num` 0: of none.
void Notes::say(const Hit& hit, uint32_t qp_num, const char* what) {
  char of[32] = "", line[200];
  if (qp_num) std::snprintf(of, sizeof of, "queue pair 0x%06x: ", qp_num);
  std::snprintf(line, sizeof line, "line %d: %s%s, number %llu, %s", hit.rule->line, of,
                info(hit.rule->event).title, static_cast<unsigned long long>(hit.number), what);
  lines_.emplace_back(line);
}

int failing(Event event, Stream& stream, Notes& notes) {
  const std::optional<Hit> hit = stream.next(rules(), event);
  if (!hit) return 0;
  notes.call(*hit);
  return hit->rule->error;
}

std::optional<Hit> next_of_process(Event event, uint16_t port) {
  static constinit core::PerProcess<Process> processes;
  Process* const process = processes.get();
  if (!process) return {};
  const std::lock_guard lock(process->mutex);
  return process->stream.next(rules(), event, port);
}

int failing(Event event) {
  Notes notes;
  const std::optional<Hit> hit = next_of_process(event, 0);
  if (!hit) return 0;
  notes.call(*hit);
  return hit->rule->error;
}

int failing(Event event, Qp& qp) {
  if (qp.foreign()) return 0;
  Notes notes;
  const std::lock_guard lock(qp.mutex);
  return failing(event, qp.stream, notes);
}

}  // namespace uiw::faults
