// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Rules in words.
#include "core/gid.h"
#include "core/verbs_names.h"
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

// "the 3rd", "each 3rd", "with probability 0.01 each".
std::string which(const Rule& rule) {
  char probability[32];
  switch (rule.when) {
    case When::kAlways:
      return "each";
    case When::kNth:
      return "the " + ordinal(rule.number);
    case When::kEvery:
      return rule.number == 1 ? "each" : "each " + ordinal(rule.number);
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
    return std::string(" completes with IBV_WC_") + core::name_of(rule.status) +
           " when its message has come; the queue pair goes to ERR, the rest flushes, and its "
           "connection ends";
  if (rule.event == Event::kUdSend)
    return std::string(" is not sent, and completes with IBV_WC_") + core::name_of(rule.status) +
           "; the queue pair goes to ERR, and the rest flushes";
  return std::string(
             " is not carried out: behind the requests before it, it completes with "
             "IBV_WC_") +
         core::name_of(rule.status) +
         "; the queue pair goes to ERR, the rest flushes, and its connection ends";
}

std::string late(const Rule& rule) {
  return rule.least == rule.most ? time_of(rule.least)
                                 : time_of(rule.least) + " to " + time_of(rule.most);
}

std::string delayed(const Rule& rule) {
  if (rule.event == Event::kUdRecv)
    return " comes " + late(rule) + " late, and those that come meanwhile overtake it";
  return " has its completion handed out " + late(rule) +
         " late; what is behind it in the completion queue waits, too";
}

std::string size_of(uint64_t bytes) {
  if (bytes > 0 && bytes % (1 << 20) == 0) return std::to_string(bytes >> 20) + " MiB";
  if (bytes > 0 && bytes % (1 << 10) == 0) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes) + " bytes";
}

// Those by number have no port.
std::string not_connected(const Rule& rule, const char* by_cm) {
  std::string text = by_cm;
  if (rule.port == 0)
    text +=
        "; one by number does not find its peer: its first request completes with "
        "IBV_WC_RETRY_EXC_ERR, and the rest flushes";
  return text;
}

std::string reset(const Rule& rule) {
  return " is reset before the request with which more than " + size_of(rule.bytes) +
         " of requests would be posted to it: what is outstanding flushes, IBV_EVENT_QP_FATAL "
         "comes, and by rdma_cm RDMA_CM_EVENT_DISCONNECTED at both ends";
}

// A connection that is requested of this process; the program hears nothing of it.
std::string not_accepted(const Rule& rule) {
  return rule.action == Action::kReject
             ? " is rejected in the name of the program, which does not get the request: the peer "
               "gets RDMA_CM_EVENT_REJECTED"
             : " is not answered, and the program does not get the request: the peer gets "
               "RDMA_CM_EVENT_UNREACHABLE when its UIWARP_REPLY_TIMEOUT_MS have passed";
}

// Of rules that meet a time.
std::string at_a_time(const Rule& rule) {
  const std::string device = rule.device == "*" ? "each device" : rule.device;
  const std::string when =
      time_of(rule.at) +
      " after the process has opened its first device, or these rules were put in force later, ";
  switch (rule.action) {
    case Action::kPortDown:
      return when + "the port of " + device + " goes down" +
             (rule.lasts ? " for " + time_of(rule.lasts) : ", and stays so") +
             ": IBV_EVENT_PORT_ERR" + (rule.lasts ? ", then IBV_EVENT_PORT_ACTIVE" : "") +
             "; what is posted meanwhile waits until its time-outs are over, and nothing of the "
             "peer comes";
    case Action::kShiftGids:
      return when + "the GIDs of " + device + " move one index up: IBV_EVENT_GID_CHANGE";
    default:
      return when + "IBV_EVENT_" + name_of(async_names(), rule.async) + " comes of " + device +
             (rule.async == IBV_EVENT_DEVICE_FATAL ? ", and its queue pairs go to ERR" : "");
  }
}

// As the rule has it: in the largest unit that it is whole in.
std::string rate_of(uint64_t bits) {
  if (bits % 1'000'000'000 == 0) return std::to_string(bits / 1'000'000'000) + " Gbit/s";
  if (bits % 1'000'000 == 0) return std::to_string(bits / 1'000'000) + " Mbit/s";
  return std::to_string(bits / 1000) + " kbit/s";
}

std::string paced(const Rule& rule) {
  std::string text =
      "what is posted to be sent to " +
      (IN6_IS_ADDR_UNSPECIFIED(&rule.peer) ? "any host"
                                           : std::string(core::text_of(rule.peer).text)) +
      " leaves";
  if (rule.rate) text += " at " + rate_of(rule.rate) + ", of all queue pairs together";
  if (rule.most) text += std::string(rule.rate ? ", and" : "") + " " + late(rule) + " later";
  return text + ", in its order";
}

std::string to_port(const Rule& rule) {
  const char* const where = rule.event == Event::kAccept ? " at port " : " to port ";
  return rule.port ? where + std::to_string(rule.port) : "";
}

}  // namespace

std::string explain(const Rule& rule) {
  if (rule.event == Event::kTime)
    return "line " + std::to_string(rule.line) + ": " + at_a_time(rule) + ".";
  if (rule.event == Event::kDeparture)
    return "line " + std::to_string(rule.line) + ": " + paced(rule) + ".";
  const EventInfo& event = info(rule.event);
  std::string text = "line " + std::to_string(rule.line) + ": " + which(rule) + " " + event.title +
                     to_port(rule) + of(event.scope);
  if (rule.event == Event::kAccept && rule.action != Action::kReset)
    return text + not_accepted(rule) + ".";
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
    case Action::kDrop:
      text += rule.event == Event::kUdSend ? " is lost on its way, and completes all the same"
                                           : " is lost before it takes a receive";
      break;
    case Action::kDuplicate:
      text += " comes twice, and takes two receives";
      break;
    case Action::kReorder:
      text += " comes behind the next one, or never when there is none";
      break;
    case Action::kReject:
      text += not_connected(rule, " is rejected by the peer: RDMA_CM_EVENT_REJECTED");
      break;
    case Action::kTimeOut:
      text += not_connected(rule,
                            " gets no answer: RDMA_CM_EVENT_UNREACHABLE when "
                            "UIWARP_CONNECT_TIMEOUT_MS have passed");
      break;
    case Action::kUnreachable:
      text += not_connected(
          rule,
          " finds no way to the peer (EHOSTUNREACH): RDMA_CM_EVENT_CONNECT_ERROR at once, on the "
          "RoCE face RDMA_CM_EVENT_UNREACHABLE");
      break;
    case Action::kReset:
      text += reset(rule);
      break;
    case Action::kOverrun:
      text +=
          " is lost, as if there were no room for it: IBV_EVENT_CQ_ERR comes, and the queue pairs "
          "that complete there go to ERR";
      break;
    case Action::kPortDown:
    case Action::kAsync:
    case Action::kShiftGids:
    case Action::kPace:
      break;  // said above
  }
  return text + ".";
}

}  // namespace uiw::faults
