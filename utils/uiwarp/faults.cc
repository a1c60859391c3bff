// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

#include "faults/files.h"
#include "interfaces.h"
#include "layout.h"

namespace uiw::tool {

std::string find_faults(const std::string& name, std::string& problem) {
  return faults::find_rules(name, find_layout().faults, problem);
}

int list_faults() {
  const std::string folder = find_layout().faults;
  const std::vector<std::string> names = faults::ready_made(folder);
  for (const std::string& name : names) {
    std::ifstream file(faults::ready_made_file(folder, name));
    std::string line;
    std::getline(file, line);
    printf("%-14s %s\n", name.c_str(), line.substr(std::min<size_t>(2, line.size())).c_str());
  }
  if (!names.empty()) return 0;
  fprintf(stderr,
          "uiwarp: there are no ready-made rules beside %s. Build or install uiwarp again.\n",
          find_layout().binary.c_str());
  return 1;
}

namespace {

// A rule may be for another host, or for a device that comes later: no mistake, but worth a word.
std::string note_of(const faults::Rule& rule) {
  if (rule.event != faults::Event::kTime || rule.device == "*") return {};
  std::string all;
  for (const std::string& device : devices_now()) {
    if (device == rule.device) return {};
    all += (all.empty() ? " (there are " : ", ") + device;
  }
  return "There is no device " + rule.device + " on this host now" + all +
         (all.empty() ? "" : ")") + ": the rule does nothing while the device does not exist.";
}

}  // namespace

int explain_faults(const std::string& name) {
  faults::Rules rules;
  std::string problem;
  const std::string path = find_faults(name, problem);
  if (!path.empty()) problem = faults::load(path, rules);
  if (!problem.empty()) {
    fprintf(stderr, "uiwarp: %s\n", problem.c_str());
    return 2;
  }
  for (const faults::Rule& rule : rules.list) {
    printf("%s\n", faults::explain(rule).c_str());
    if (const std::string note = note_of(rule); !note.empty()) printf("  %s\n", note.c_str());
  }
  if (rules.list.empty()) printf("There is no rule: no fault is injected.\n");
  if (rules.list.size() > 1)
    printf(
        "If several rules match one event, the first is carried out. Each rule counts all "
        "events.\n");
  return 0;
}

namespace {

// "`a`, `b`" of what `next` gives until it gives null.
template <class List, class Name>
std::string listed(const List& list, Name name) {
  std::string all;
  for (const auto& each : list)
    if (const char* const text = name(each))
      all += (all.empty() ? "`" : ", `") + std::string(text) + "`";
  return all;
}

std::string calls(faults::Scope scope) {
  return listed(faults::event_table(), [&](const faults::EventInfo& event) {
    return event.form == faults::Form::kVerb && event.scope == scope ? event.name : nullptr;
  });
}

std::string names(std::span<const faults::Name> list) {
  return listed(list, [](const faults::Name& name) { return name.name; });
}

}  // namespace

void print_faults_markdown() {
  printf("| word | allowed with | meaning |\n|---|---|---|\n");
  for (const faults::Word& word : faults::word_table()) {
    std::string of;
    for (const faults::Word& form : faults::word_table())
      if (form.role == faults::Role::kForm && (form.forms & word.forms))
        of += (of.empty() ? "`" : ", `") + std::string(form.name) + "`";
    printf("| `%s` | %s | %s |\n", faults::written(word).c_str(),
           word.role == faults::Role::kForm ? "" : of.c_str(), word.meaning);
  }
  printf("\n| value of | |\n|---|---|\n");
  printf("| `verb=`, counted for the process | %s |\n", calls(faults::Scope::kProcess).c_str());
  printf("| `verb=`, counted for each queue pair | %s |\n",
         calls(faults::Scope::kQueuePair).c_str());
  printf("| `verb=`, counted for each completion queue | %s |\n",
         calls(faults::Scope::kCompletionQueue).c_str());
  printf("| `errno=` | %s |\n", names(faults::errno_names()).c_str());
  printf("| `event=` | %s |\n", names(faults::async_names()).c_str());
  printf("| `status=` of requests posted to a send queue | %s |\n",
         names(faults::status_names()).c_str());
  printf("| `status=` of `op=UD_SEND` | %s |\n", names(faults::datagram_status_names()).c_str());
  printf("| `status=` of `op=RECV` | %s |\n", names(faults::receive_status_names()).c_str());
}

}  // namespace uiw::tool
