// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "live_faults.h"

#include <cstdint>
#include <cstdio>
#include <sstream>
#include <vector>

#include "core/printable.h"
#include "core/read_file.h"
#include "environment.h"
#include "faults.h"
#include "faults/files.h"
#include "json.h"
#include "mailboxes.h"

namespace uiw::tool {
namespace {

struct LiveRule {
  int line = 0;
  uint64_t injected = 0;
  std::string text;
};

struct Live {
  std::string problem;  // why the rules were not changed
  uint64_t seed = 0;
  std::string name;
  std::vector<LiveRule> rules;
};

// What faults/changes.cc answers.
Live parse_answer(const std::string& text) {
  Live live;
  std::istringstream lines(text);
  std::getline(lines, live.problem);
  std::string line;
  std::getline(lines, line);
  std::istringstream first(line);
  first >> live.seed;
  first.ignore();
  std::getline(first, live.name);
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    LiveRule rule;
    words >> rule.line >> rule.injected;
    words.ignore();
    if (std::getline(words, rule.text)) live.rules.push_back(std::move(rule));
  }
  return live;
}

nlohmann::ordered_json json_of(pid_t pid, const Live& live) {
  nlohmann::ordered_json rules = nlohmann::ordered_json::array();
  for (const LiveRule& rule : live.rules)
    rules.push_back({{"line", rule.line}, {"rule", rule.text}, {"injected", rule.injected}});
  return {{"pid", pid},
          {"program", program_of(pid)},
          {"file", live.name},
          {"seed", live.seed},
          {"rules", std::move(rules)}};
}

void print(pid_t pid, const Live& live) {
  const char* const name = live.rules.empty() ? "no rule is in force" : live.name.c_str();
  std::printf("%d %s: %s", pid, core::printable(program_of(pid)).c_str(),
              core::printable(name).c_str());
  if (live.seed) std::printf(", seed %llu", static_cast<unsigned long long>(live.seed));
  std::printf("\n");
  if (live.rules.empty()) return;
  std::printf("%6s %10s  %s\n", "LINE", "INJECTED", "RULE");
  for (const LiveRule& rule : live.rules)
    std::printf("%6d %10llu  %s\n", rule.line, static_cast<unsigned long long>(rule.injected),
                core::printable(rule.text).c_str());
}

int fail(int status, const std::string& problem) {
  std::fprintf(stderr, "uiwarp: %s\n", problem.c_str());
  return status;
}

// One process; without `is_only` it is one of several, which may have ended meanwhile.
int show(pid_t pid, const faults::Question& question, bool is_only, LiveAs as,
         nlohmann::ordered_json& list) {
  const Reply reply = ask(pid, question);
  if (!reply.answered) return is_only ? fail(1, reply.text) : (fail(1, reply.text), 0);
  const Live live = parse_answer(reply.text);
  if (!live.problem.empty()) return fail(1, live.problem);
  if (as == LiveAs::kJson)
    list.push_back(json_of(pid, live));
  else
    print(pid, live);
  return 0;
}

int show_one(pid_t pid, const faults::Question& question, LiveAs as) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const int status = show(pid, question, true, as, list);
  if (as == LiveAs::kJson && status == 0) print_json(list.front());
  return status;
}

}  // namespace

int show_live_faults(pid_t pid, LiveAs as) {
  if (pid != 0) return show_one(pid, {}, as);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const std::vector<pid_t> found = processes_under_faults();
  for (const pid_t each : found) show(each, {}, false, as, list);
  if (as == LiveAs::kJson)
    print_json(list);
  else if (found.empty())
    std::fprintf(stderr,
                 "uiwarp: no process of yours has a device open under --faults. `uiwarp run "
                 "--faults none PROGRAM` starts one whose rules can be changed; `uiwarp faults "
                 "--help` lists the other uses\n");
  return 0;
}

int change_live_faults(pid_t pid, const std::string& name, LiveAs as) {
  std::string problem;
  const std::string path = find_faults(name, problem);
  if (path.empty()) return fail(2, problem);
  faults::Question question{.changes = true, .name = path, .text = ""};
  if (path != faults::kNoRules) {
    faults::Rules ignored;
    if (problem = faults::load(path, ignored); !problem.empty()) return fail(2, problem);
    if (problem = core::read_file(path, question.text); !problem.empty())
      return fail(2, path + ": " + problem);
    question.name = core::printable(absolute(path));
  }
  constexpr size_t kMost = faults::Mailbox::kMostText / 4;  // its answer is longer
  if (question.text.size() > kMost)
    return fail(2, path + " has more than " + std::to_string(kMost >> 10) +
                       " KiB, the limit for a running process");
  return show_one(pid, question, as);
}

}  // namespace uiw::tool
