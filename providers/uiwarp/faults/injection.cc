// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults/injection.h"

#include <atomic>
#include <cstdio>
#include <forward_list>
#include <map>
#include <utility>

#include "core/injected.h"
#include "core/log.h"
#include "core/per_process.h"
#include "core/verbs_names.h"
#include "faults/files.h"

namespace uiw::faults {
namespace {

double milliseconds_late(const Hit& hit) {
  return static_cast<double>(hit.delay) / core::kMillisecond;
}

struct Process {
  std::mutex mutex;
  Stream stream{Scope::kProcess, 0};
};

// None of them is ever destroyed: hits, times and counts refer to them, and a program's destructors
// may come after ours.
std::atomic<const Rules*> current{nullptr};

struct Tally {
  std::mutex mutex;
  std::map<const Rule*, uint64_t> counts;  // under mutex: how often each was carried out
  bool has_device = false;                 // under mutex: the process has opened one

  uint64_t count_of(const Rule& rule) const {  // with mutex held
    const auto found = counts.find(&rule);
    return found == counts.end() ? 0 : found->second;
  }
};
constinit core::PerProcess<Tally> tallies;

void carried_out(const Rule& rule) {
  Tally* const tally = tallies.get();
  if (!tally) return;
  const std::lock_guard lock(tally->mutex);
  ++tally->counts[&rule];
}

// When the program ends.
__attribute__((destructor)) void tell_what_met_nothing() {
  if (!current.load()) return;
  Tally* const tally = tallies.get();
  if (!tally) return;
  std::vector<std::string> idle;
  {
    const std::lock_guard lock(tally->mutex);
    if (!tally->has_device) return;
    for (const Rule& rule : rules().list)
      if (tally->count_of(rule) == 0) idle.push_back(explain(rule));
  }
  for (const std::string& rule : idle)
    core::log(core::LogLevel::kWarn, "faults: met nothing: %s", rule.c_str());
}

}  // namespace

void device_is_open() {
  Tally* const tally = tallies.get();
  if (!tally) return;
  const std::lock_guard lock(tally->mutex);
  tally->has_device = true;
}

void put_in_force(Rules fresh) {
  static constinit std::forward_list<Rules>* all = nullptr;
  if (!all) all = new std::forward_list<Rules>;
  fresh.edition = all->empty() ? 1 : all->front().edition + 1;
  current.store(&all->emplace_front(std::move(fresh)), std::memory_order_release);
}

bool configure(const char* name) {
  Rules fresh;
  std::string problem;
  const std::string path = find_rules(name, folder_beside_library(), problem);
  if (!path.empty()) problem = load(path, fresh);
  const bool is_good = problem.empty();
  put_in_force(std::move(fresh));
  if (is_good) return true;
  core::log(core::LogLevel::kError,
            "UIWARP_FAULTS: %s. Correct or unset it; until then no device can be opened",
            problem.c_str());
  return false;
}

std::string report() {
  const Rules& now = rules();
  std::string text = std::to_string(now.seed) + "\t" + now.name + "\n";
  Tally* const tally = tallies.get();
  if (!tally) return text;
  const std::lock_guard lock(tally->mutex);
  for (const Rule& rule : now.list)
    text += std::to_string(rule.line) + "\t" + std::to_string(tally->count_of(rule)) + "\t" +
            rule.text + "\n";
  return text;
}

const Rules& rules() {
  return *current.load(std::memory_order_acquire);
}

Notes::~Notes() {
  before_the_stack();
}

void Notes::before_the_stack() {
  for (const std::string& line : lines_)
    core::log(core::LogLevel::kWarn, "faults: %s", line.c_str());
  lines_.clear();
}

void Notes::call(const Hit& hit) {
  char what[40];
  std::snprintf(what, sizeof what, "fails with %s", name_of(errno_names(), hit.rule->error));
  say(hit, 0, what);
}

void Notes::request(const Hit& hit, const Qp& qp, ibv_wc_status status) {
  char what[60];
  std::snprintf(what, sizeof what, "completes with IBV_WC_%s", core::name_of(status));
  say(hit, qp.number, what);
}

void Notes::late(const Hit& hit, const Qp& qp) {
  char what[60], brief[40];
  const double late = milliseconds_late(hit);
  std::snprintf(what, sizeof what, "has its completion handed out %.3f ms late", late);
  std::snprintf(brief, sizeof brief, "completes %.3f ms late", late);
  say(hit, qp.number, what, brief);
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

void Notes::overrun(const Hit& hit, uint32_t qp_num) {
  say(hit, qp_num, "is lost: its completion queue overruns", "its completion queue overruns");
}

void Notes::datagram(const Hit& hit, const Qp& qp) {
  char late[40];
  switch (hit.rule->action) {
    case Action::kDuplicate:
      return say(hit, qp.number, "comes twice");
    case Action::kReorder:
      return say(hit, qp.number, "comes behind the next one");
    case Action::kDelay:
      std::snprintf(late, sizeof late, "comes %.3f ms late", milliseconds_late(hit));
      return say(hit, qp.number, late);
    default:
      return say(hit, qp.number, "is lost");
  }
}

void Notes::paced(const Hit& hit, const Qp& qp) {
  say(hit, qp.number, "leaves later, as those behind it will", "leaves later");
}

void Notes::unanswered(const Rule& rule, const Qp& qp) {
  char line[200];
  std::snprintf(line, sizeof line,
                "line %d: queue pair 0x%06x: what it has posted is not answered in time, as the "
                "port is down: the oldest completes with IBV_WC_RETRY_EXC_ERR",
                rule.line, qp.number);
  tell(rule, qp.number, line, "not answered in time");
}

void Notes::timed(const Rule& rule, const char* what) {
  char line[200];
  std::snprintf(line, sizeof line, "line %d: device %s: %s", rule.line, rule.device.c_str(), what);
  say(rule, 0, line, what);
}

void Notes::say(const Rule& rule, uint32_t qp_num, const char* line, const char* brief) {
  carried_out(rule);
  tell(rule, qp_num, line, brief);
}

void Notes::tell(const Rule& rule, uint32_t qp_num, const char* line, const char* brief) {
  if (const core::OnInjected told = core::on_injected.load(std::memory_order_acquire))
    told(qp_num, rule.line, brief);
  lines_.emplace_back(line);
}

// `qp_num` 0: of none.
void Notes::say(const Hit& hit, uint32_t qp_num, const char* what, const char* brief) {
  char of[32] = "", line[200];
  if (qp_num) std::snprintf(of, sizeof of, "queue pair 0x%06x: ", qp_num);
  std::snprintf(line, sizeof line, "line %d: %s%s, number %llu, %s", hit.rule->line, of,
                info(hit.rule->event).title, static_cast<unsigned long long>(hit.number), what);
  say(*hit.rule, qp_num, line, brief ? brief : what);
}

namespace {

int fail(const Hit& hit, Notes& notes) {
  ++core::calls_injected;
  notes.call(hit);
  return hit.rule->error;
}

}  // namespace

int failing(Event event, Stream& stream, Notes& notes) {
  const std::optional<Hit> hit = stream.next(rules(), event);
  return hit ? fail(*hit, notes) : 0;
}

std::optional<Hit> next_of_process(const Occasion& happens) {
  static constinit core::PerProcess<Process> processes;
  Process* const process = processes.get();
  if (!process) return {};
  const std::lock_guard lock(process->mutex);
  return process->stream.next(rules(), happens);
}

int failing(Event event) {
  Notes notes;
  const std::optional<Hit> hit = next_of_process({.event = event});
  return hit ? fail(*hit, notes) : 0;
}

int failing(Event event, Qp& qp) {
  if (qp.foreign() || core::is_own_call) return 0;
  Notes notes;
  const std::lock_guard lock(qp.mutex);
  return failing(event, qp.stream, notes);
}

}  // namespace uiw::faults
