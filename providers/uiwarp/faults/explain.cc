// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Rules in words.
#include "faults/rules.h"

namespace uiw::faults {
namespace {

std::string ordinal(uint64_t number) {
  const bool teen = number / 10 % 10 == 1;
  const uint64_t last = teen ? 0 : number % 10;
  return std::to_string(number) + (last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

std::string time_of(core::Nanoseconds time) {
  if (time % core::kSecond == 0) return std::to_string(time / core::kSecond) + " s";
  if (time % core::kMillisecond == 0) return std::to_string(time / core::kMillisecond) + " ms";
  return std::to_string(time / core::kMicrosecond) + " us";
}

// "the 3rd", "every 3rd", "with probability 0.01 each".
std::string which(const Rule& rule) {
  char probability[32];
  switch (rule.when) {
    case When::kAlways:
      return "each";
    case When::kNth:
      return "the " + ordinal(rule.number);
    case When::kEvery:
      return rule.number == 1 ? "each" : "every " + ordinal(rule.number);
    case When::kProbability:
      std::snprintf(probability, sizeof probability, "%g", rule.probability);
      return std::string("with probability ") + probability + " each";
  }
  return "";
}

const char* of(Scope scope) {
  switch (scope) {
    case Scope::kProcess:
      return " of the process";
    case Scope::kQueuePair:
      return " of each queue pair";
    case Scope::kCompletionQueue:
      return " of each completion queue";
  }
  return "";
}

std::string failure(const Rule& rule) {
  const std::string error = name_of(errno_names(), rule.error);
  switch (info(rule.event).failure) {
    case Failure::kNull:
      return " returns NULL, with errno " + error + ", and nothing is made";
    case Failure::kErrno:
      return " returns " + error + ", and does nothing";
    case Failure::kNegative:
      return " fails with a negative result, for " + error + ", and does nothing";
    case Failure::kNone:
      break;
  }
  return "";
}

std::string failed_request(const Rule& rule) {
  if (rule.event == Event::kRecv)
    return std::string(" completes with IBV_WC_") + name_of(receive_status_names(), rule.status) +
           " when its message has come; the queue pair goes to ERR, the rest flushes, and its "
           "connection ends";
  return std::string(
             " is not carried out: behind the requests before it, it completes with "
             "IBV_WC_") +
         name_of(status_names(), rule.status) +
         "; the queue pair goes to ERR, the rest flushes, and its connection ends";
}

std::string delayed(const Rule& rule) {
  const std::string time = rule.least == rule.most
                               ? time_of(rule.least)
                               : time_of(rule.least) + " to " + time_of(rule.most);
  return " has its completion handed out " + time +
         " late; what is behind it in the completion queue waits, too";
}

}  // namespace

std::string explain(const Rule& rule) {
  const EventInfo& event = info(rule.event);
  std::string text = "line " + std::to_string(rule.line) + ": " + which(rule) + " " + event.title +
                     of(event.scope);
  switch (rule.action) {
    case Action::kErrno:
      text += failure(rule);
      break;
    case Action::kStatus:
      text += failed_request(rule);
      break;
    case Action::kDelay:
      text += delayed(rule);
      break;
  }
  return text + ".";
}

}  // namespace uiw::faults
