// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "explain.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/cause.h"
#include "core/edit_distance.h"
#include "core/wrapped.h"

namespace uiw::tool {
namespace {

constexpr size_t kIndent = 4;
constexpr char kMark[] = "- ";
constexpr char kFindings[] = "Findings of --check";
constexpr char kVendorErrKind[] = "vendor_err";
constexpr char kTerminateKind[] = "Terminate code";
constexpr char kWordsTaken[] =
    "It takes the name, number or text of a completion status (IBV_WC_LOC_PROT_ERR, 4, 'local "
    "protection error') or of an asynchronous or rdma_cm event (IBV_EVENT_CQ_ERR; REJECTED -111); "
    "an errno, with or without its call (EINVAL; EINVAL ibv_post_send); a vendor_err (0x15) or "
    "Terminate code (0x1202) as messages print it; the state of a queue pair (SQD); a kind of "
    "finding of --check (event-lost).";
constexpr const char* kPrefixes[] = {"ibv_wc_", "ibv_event_", "rdma_cm_event_"};

struct Table {
  const char* title;
  std::span<const Explanation> rows;
};
std::vector<Table> tables() {
  return {
      {"Completion statuses", explained_statuses()},     {"Errors of calls", explained_errnos()},
      {"Asynchronous events", explained_async_events()}, {"rdma_cm events", explained_cm_events()},
      {"States of a queue pair", explained_states()},    {kFindings, explained_findings()}};
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Without what all names of a kind begin with.
std::string short_name(const std::string& name) {
  const std::string text = lower(name);
  for (const std::string prefix : kPrefixes)
    if (text.starts_with(prefix)) return text.substr(prefix.size());
  return text;
}

bool number_of(const std::string& word, long& number) {
  char* end = nullptr;
  number = std::strtol(word.c_str(), &end, 0);
  return !word.empty() && *end == '\0';
}

}  // namespace

bool find_vendor_err(long number, VendorErr& out) {
  const core::CauseInfo* info =
      number < 0 || number > 0xffffffff ? nullptr : core::find_cause(static_cast<uint32_t>(number));
  if (!info) return false;
  char name[64];
  std::snprintf(name, sizeof name, "0x%lx %s", static_cast<unsigned long>(number), info->name);
  out = {name, info->text};
  if (info->cause >= core::Cause::kPeerTerminated) {
    const auto code = static_cast<core::TermCode>(number & 0xffff);
    char text[160];
    std::snprintf(text, sizeof text, " Here 0x%04lx: %s.", number & 0xffff, core::describe(code));
    out.text += text;
  }
  return true;
}

namespace {

// As warnings have it: by four digits. Smaller numbers with less are something else.
struct Terminate {
  std::string name, here, advice;
};
bool find_terminate(const std::string& word, Terminate& out) {
  constexpr size_t kDigits = 6;  // with 0x
  long number;
  if (!number_of(word, number) || !lower(word).starts_with("0x") || word.size() != kDigits)
    return false;
  const auto code = static_cast<core::TermCode>(number);
  if (!core::is_defined(code)) return false;
  char name[16], here[256];
  std::snprintf(name, sizeof name, "0x%04lx ", static_cast<unsigned long>(number));
  std::snprintf(here, sizeof here,
                "One end ended the connection by a Terminate message with this code. The "
                "vendor_err is 0x1%04lx if the peer sent it, 0x2%04lx if this end did.",
                static_cast<unsigned long>(number), static_cast<unsigned long>(number));
  out = {std::string(name) + core::describe(code), here,
         std::string("At the end that received it: ") + core::advice(code) + "."};
  return true;
}

void print_wrapped(const std::string& text, size_t indent, size_t hang = 0) {
  fputs(core::wrapped(text, indent, hang).c_str(), stdout);
}

void print_list(const char* title, const std::vector<const char*>& texts) {
  if (texts.empty()) return;
  printf("  %s\n", title);
  for (const char* text : texts)
    print_wrapped(std::string(kMark) + text, kIndent, sizeof kMark - 1);
}

std::string title_of(const Explanation& row) {
  std::string title = row.name;
  if (row.kind == kTerminateKind) return title + " (" + row.kind + ")";
  if (row.value == kNoNumber) return title + ": " + row.also + " (" + row.kind + ")";
  if (row.also) title += std::string(row.kind) == "errno" ? " of " : ", ";
  const bool status_of_event = row.value < 0 || (row.also && title.starts_with("RDMA_CM"));
  if (status_of_event)
    title = std::string(row.name) + ", status " + std::to_string(row.value) + ", ";
  if (row.also) title += row.also;
  title += std::string(" (") + row.kind;
  if (!status_of_event) title += " " + std::to_string(row.value);
  return title + ")";
}

void print(const Explanation& row) {
  printf("%s\n", title_of(row).c_str());
  if (row.here) print_wrapped(row.here, kIndent);
  if (row.adapters) {
    printf("  On adapters:\n");
    print_wrapped(row.adapters, kIndent);
  }
  if (row.remedy) {
    printf("  What to do:\n");
    print_wrapped(row.remedy, kIndent);
  }
  print_list("Usual causes, the likely ones first:", row.causes);
  print_list("Look at:", row.look);
}

std::string json_of(const Explanation& row) {
  nlohmann::ordered_json object = {{"kind", row.kind}, {"name", row.name}};
  if (row.value != kNoNumber) object["value"] = row.value;
  const auto add = [&](const char* field, const char* text) {
    if (text) object[field] = text;
  };
  add("also", row.also);
  add("here", row.here);
  add("adapters", row.adapters);
  add("remedy", row.remedy);
  object["causes"] = row.causes;
  object["look"] = row.look;
  return object.dump();
}

// The exit status of `uiwarp explain`.
int show_all(const std::vector<Explanation>& rows, ExplainAs as) {
  const char* before = as == ExplainAs::kJson ? "[\n" : "";
  for (const Explanation& row : rows) {
    fputs(before, stdout);
    before = as == ExplainAs::kJson ? ",\n" : "\n";
    if (as == ExplainAs::kJson)
      fputs(json_of(row).c_str(), stdout);
    else
      print(row);
  }
  if (as == ExplainAs::kJson) puts("\n]");
  return 0;
}

// Whether one word means this row by itself.
bool is_meant(const Explanation& row, const std::string& word) {
  long number;
  if (number_of(word, number)) return row.value == number;
  const std::string text = lower(word);
  const bool is_status = row.also && std::string(row.kind) == "completion status";
  const bool is_errno = std::string(row.kind) == "errno";
  return text == lower(row.name) || short_name(word) == short_name(row.name) ||
         (is_status && text == lower(row.also)) ||
         (is_errno && text == lower(strerrordesc_np(static_cast<int>(row.value))));
}

// What a second word leaves of the rows of the first: the call of an errno, the status of an event.
bool is_narrowed(const Explanation& row, const std::string& word) {
  long number;
  if (number_of(word, number)) return row.value == number;
  return row.also && lower(row.also).find(lower(word)) != std::string::npos;
}

std::vector<const Explanation*> find(const std::vector<std::string>& words) {
  std::vector<const Explanation*> found;
  const std::string whole =
      std::accumulate(words.begin() + 1, words.end(), words.front(),
                      [](const std::string& a, const std::string& b) { return a + " " + b; });
  const auto collect = [&](const std::function<bool(const Explanation&)>& wanted) {
    for (const Table& table : tables())
      for (const Explanation& row : table.rows)
        if (wanted(row)) found.push_back(&row);
  };
  collect([&](const Explanation& row) { return is_meant(row, whole); });
  if (found.empty() && words.size() == 2)
    collect([&](const Explanation& row) {
      return is_meant(row, words[0]) && is_narrowed(row, words[1]);
    });
  return found;
}

// Of a line that a program printed what tells something: "RDMA_CM_EVENT_REJECTED, error -111" is of
// the event and -111.
std::vector<std::string> what_tells(const std::vector<std::string>& words) {
  static constexpr const char* kFillers[] = {"error", "status", "terminate", "errno"};
  std::vector<std::string> told;
  for (std::string word : words) {
    while (!word.empty() && strchr(",:;", word.back())) word.pop_back();
    if (!word.empty() && std::ranges::find(kFillers, lower(word)) == std::end(kFillers))
      told.push_back(word);
  }
  return told.empty() ? words : told;
}

// Names that the word may be meant for: it is a part of them, or few letters are wrong.
std::vector<std::string> nearest(const std::string& word) {
  constexpr size_t kMost = 3, kShortest = 3;
  const std::string meant = short_name(word);
  if (meant.size() < kShortest) return {};
  std::vector<std::pair<size_t, std::string>> all;
  for (const Table& table : tables())
    for (const Explanation& row : table.rows) {
      const std::string name = short_name(row.name);
      const size_t away = core::edit_distance(meant, name);
      if (name.find(meant) != std::string::npos)
        all.emplace_back(0, row.name);
      else if (away <= meant.size() / core::kLettersForOneWrong)
        all.emplace_back(away, row.name);
    }
  std::ranges::sort(all);
  std::vector<std::string> names;
  for (const auto& [away, name] : all)
    if (names.size() < kMost && std::ranges::find(names, name) == names.end())
      names.push_back(name);
  return names;
}

void print_unknown(const std::string& word) {
  const std::vector<std::string> names = nearest(word);
  std::string line = "uiwarp: there is nothing called '" + word + "' here.";
  for (size_t i = 0; i < names.size(); ++i) line += (i ? ", " : " Perhaps: ") + names[i];
  if (names.empty()) line += std::string(" ") + kWordsTaken;
  fputs(core::wrapped(line, 0).c_str(), stderr);
  fputs("`uiwarp explain` alone lists all.\n", stderr);
}

void list_all(ExplainAs as) {
  if (as == ExplainAs::kJson) {
    const char* before = "[\n";
    for (const Table& table : tables())
      for (const Explanation& row : table.rows) {
        printf("%s%s", before, json_of(row).c_str());
        before = ",\n";
      }
    puts("\n]");
    return;
  }
  puts(
      "uiwarp explain WORD: a name below, a number, a text that programs print, or a Terminate "
      "code.");
  for (const Table& table : tables()) {
    printf("\n%s\n", table.title);
    std::string line, last;
    for (const Explanation& row : table.rows) {
      if (last == row.name) continue;
      last = row.name;
      line += (line.empty() ? "" : " ") + last;
    }
    print_wrapped(line, 2);
  }
  puts("\nvendor_err of completions");
  for (const core::CauseInfo& info : core::cause_table())
    printf("  0x%-6x %s\n", static_cast<unsigned>(info.cause), info.name);
}

}  // namespace

int explain(const std::vector<std::string>& given, ExplainAs as) {
  if (given.empty()) {
    list_all(as);
    return 0;
  }
  const std::vector<std::string> words = find(given).empty() ? what_tells(given) : given;
  const std::vector<const Explanation*> found = find(words);
  long number = 0;
  VendorErr vendor;
  // As programs print it.
  if (words.size() == 2 && words[0] == kVendorErrKind && number_of(words[1], number) &&
      find_vendor_err(number, vendor)) {
    return show_all({{kVendorErrKind, vendor.name.c_str(), number, nullptr, vendor.text.c_str()}},
                    as);
  }
  // A Terminate code that no RFC defines is one only where somebody writes it as messages do.
  const bool is_vendor =
      words.size() == 1 && number_of(words[0], number) && find_vendor_err(number, vendor) &&
      (number < static_cast<long>(core::Cause::kPeerTerminated) || words[0].starts_with("0x") ||
       core::is_defined(static_cast<core::TermCode>(number & 0xffff)));
  if (found.empty() && words.size() > 1 && !find({words.front()}).empty()) {
    fprintf(stderr,
            "uiwarp: there is no explanation of '%s' together with '%s'. Of the first word "
            "alone:\n",
            words.front().c_str(), words[1].c_str());
    explain({words.front()}, as);
    return 2;
  }
  Terminate terminate;
  const bool is_terminate = words.size() == 1 && find_terminate(words[0], terminate);
  if (found.empty() && !is_vendor && !is_terminate) {
    print_unknown(words.front());
    return 2;
  }
  const Explanation vendor_row{kVendorErrKind, vendor.name.c_str(), number, nullptr,
                               vendor.text.c_str()};
  std::vector<Explanation> shown;
  // Who writes it as messages and doc/errors.md do means a vendor_err.
  const bool is_vendor_first = is_vendor && words[0].starts_with("0x");
  if (is_terminate)
    shown.push_back({kTerminateKind,
                     terminate.name.c_str(),
                     number,
                     nullptr,
                     terminate.here.c_str(),
                     nullptr,
                     {},
                     {terminate.advice.c_str(), "The messages that the other end printed."}});
  if (is_vendor_first) shown.push_back(vendor_row);
  for (const Explanation* row : found) shown.push_back(*row);
  if (is_vendor && !is_vendor_first) shown.push_back(vendor_row);
  return show_all(shown, as);
}

void print_explanations_markdown() {
  puts(
      "# What went wrong: statuses, errors, events\n\n<!-- Written by `uiwarp explain --markdown`; "
      "tests compare it. -->\n\nAt the default log level uiwarp prints on standard error why it "
      "refused a call or why a request failed: once for each\nobject and rule, and for each rule "
      "for at most 32 objects. `uiwarp explain WORD` prints the entry below for one "
      "status,\nerrno, event or vendor_err.\n\n## vendor_err\n\nThe `vendor_err` of `struct "
      "ibv_wc` says why a request failed; in a flushed completion, it says why the queue pair "
      "went\nto its error state. The values do not change from version to version.\n\n| value | "
      "name | what happened, and what to do |\n|---|---|---|");
  for (const core::CauseInfo& info : core::cause_table()) {
    const char* plus = info.cause >= core::Cause::kPeerTerminated ? " + Terminate code" : "";
    printf("| `0x%02x`%s | %s | %s |\n", static_cast<unsigned>(info.cause), plus, info.name,
           info.text);
  }
  for (const Table& table : tables()) {
    if (table.title == kFindings) continue;  // doc/check.md has them
    printf("\n## %s\n", table.title);
    for (const Explanation& row : table.rows) {
      printf("\n**%s**", title_of(row).c_str());
      if (row.here) printf(" %s", row.here);
      if (row.adapters) printf(" On adapters: %s", row.adapters);
      puts("");
      const auto list = [](const char* title, const std::vector<const char*>& texts) {
        if (texts.empty()) return;
        printf("%s\n", title);
        for (const char* text : texts) printf("- %s\n", text);
      };
      list("\nUsual causes, the likely ones first:", row.causes);
      list("\nLook at:", row.look);
    }
  }
}

}  // namespace uiw::tool
