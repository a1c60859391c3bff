// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "stat.h"

#include <infiniband/verbs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "core/gid.h"
#include "core/verbs_names.h"
#include "processes.h"

namespace uiw::tool {
namespace {

using counters::Kind;
using counters::Row;

std::vector<Process> chosen(pid_t only) {
  std::vector<Process> found = find_processes(runtime_folders());
  if (only != 0) std::erase_if(found, [&](const Process& p) { return p.pid != only; });
  return found;
}

const char* type_of(const Row& row) {
  const char* const name = core::name_of_type(row.type);
  return name ? name : "?";
}

std::string endpoint(const in6_addr& address, uint16_t port) {
  const std::string text = core::text_of(address).text;
  return (IN6_IS_ADDR_V4MAPPED(&address) ? text : "[" + text + "]") + ":" + std::to_string(port);
}

const char* state_of(const Row& row) {
  const uint32_t state = row.state - counters::kKnownState;  // of 0 it wraps around
  return state <= IBV_QPS_ERR ? core::name_of(static_cast<ibv_qp_state>(state)) : "-";
}

// What is said of a row in the first column.
std::string name_of(const Row& row) {
  char text[16];
  switch (row.kind) {
    case Kind::kQueuePair:
      std::snprintf(text, sizeof text, "0x%06x", row.number);
      return text;
    case Kind::kSharedReceiveQueue:
      return "srq " + std::to_string(row.index);
    default:
      return "ended";
  }
}

// Receives that were posted to a queue pair, or where they are.
std::string receives_of(const Row& row, unsigned long long posted) {
  return row.srq != 0 ? "srq " + std::to_string(row.srq) : std::to_string(posted);
}

std::string connection_of(const Row& row) {
  if (!row.connected) return "-";
  return endpoint(row.local, row.local_port) + " " + endpoint(row.peer, row.peer_port);
}

// The completion queue of that slot; null: there is none.
const Row* queue_of(const Process& process, uint32_t index) {
  for (const Row& row : process.rows)
    if (row.kind == Kind::kCompletionQueue && row.index == index) return &row;
  return nullptr;
}

std::string high_water_of(const Process& process, const Row& row) {
  std::string text;
  for (const uint32_t index : {row.send_cq, row.recv_cq}) {
    if (index == row.recv_cq && !text.empty() && row.send_cq == row.recv_cq) break;
    const Row* const queue = queue_of(process, index);
    if (!text.empty()) text += " ";
    text += queue ? std::to_string(queue->high_water) + "/" + std::to_string(queue->capacity) : "-";
  }
  return text;
}

// What is counted, in the order in which it is shown.
struct Counter {
  const char* name;
  uint64_t Row::*value;
  const char* help;
};
constexpr Counter kCounters[] = {
    {"posted_sends", &Row::posted_sends, "Work requests posted to send queues."},
    {"completed_sends", &Row::completed_sends, "Of these, completed, unsignaled ones included."},
    {"failed_sends", &Row::failed_sends, "Of these, completed with an error."},
    {"posted_receives", &Row::posted_receives,
     "Receives posted to queue pairs and shared receive queues."},
    {"completed_receives", &Row::completed_receives, "Receives completed."},
    {"failed_receives", &Row::failed_receives, "Of these, completed with an error."},
    {"bytes_sent", &Row::bytes_sent, "Bytes handed to TCP or UDP, headers included."},
    {"bytes_received", &Row::bytes_received, "Bytes taken from TCP or UDP, headers included."},
    {"rnr_waits", &Row::rnr_waits, "Messages that came before a receive was posted for them."},
};

nlohmann::ordered_json json_of(const Process& process) {
  nlohmann::ordered_json queue_pairs = nlohmann::ordered_json::array();
  nlohmann::ordered_json queues = queue_pairs, shared = queue_pairs, ended = queue_pairs;
  for (const Row& row : process.rows) {
    nlohmann::ordered_json object = {{"device", row.device}};
    if (row.kind == Kind::kCompletionQueue) {
      object["number"] = row.index;
      object["capacity"] = row.capacity;
      object["high_water"] = row.high_water;
      queues.push_back(std::move(object));
      continue;
    }
    if (row.kind == Kind::kSharedReceiveQueue) {
      object["number"] = row.index;
      object["capacity"] = row.capacity;
      object["posted_receives"] = row.posted_receives;
      shared.push_back(std::move(object));
      continue;
    }
    if (row.kind == Kind::kQueuePair) {
      object["number"] = row.number;
      object["type"] = type_of(row);
      object["state"] = state_of(row);
      if (row.connected) {
        object["local"] = endpoint(row.local, row.local_port);
        object["peer"] = endpoint(row.peer, row.peer_port);
      }
      object["send_cq"] = row.send_cq;
      object["recv_cq"] = row.recv_cq;
      if (row.srq != 0) object["srq"] = row.srq;
      object["sends_in_flight"] = row.sends_in_flight();
    }
    for (const Counter& counter : kCounters) object[counter.name] = row.*counter.value;
    (row.kind == Kind::kQueuePair ? queue_pairs : ended).push_back(std::move(object));
  }
  return {{"pid", process.pid},
          {"user", process.user},
          {"program", process.program},
          {"queue_pairs", std::move(queue_pairs)},
          {"completion_queues", std::move(queues)},
          {"shared_receive_queues", std::move(shared)},
          {"ended_queue_pairs", std::move(ended)}};
}

void print_json(const std::vector<Process>& processes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Process& process : processes) list.push_back(json_of(process));
  std::printf("%s\n", list.dump(2).c_str());
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// Of a process and a device, its ended queue pairs included: what never goes back.
void print_prometheus(const std::vector<Process>& processes) {
  struct Line {
    std::string labels;
    Row sum;
    uint64_t queue_pairs = 0, in_error = 0, in_flight = 0;
  };
  std::vector<Line> lines;
  for (const Process& process : processes) {
    std::map<std::string, Line> devices;
    for (const Row& row : process.rows) {
      if (row.kind == Kind::kCompletionQueue) continue;
      Line& line = devices[row.device];
      add(line.sum, row);
      if (row.kind != Kind::kQueuePair) continue;
      ++line.queue_pairs;
      line.in_error += row.state == counters::kKnownState + IBV_QPS_ERR;
      line.in_flight += row.sends_in_flight();
    }
    for (auto& [device, line] : devices) {
      line.labels = "{pid=\"" + std::to_string(process.pid) + "\",program=\"" +
                    escaped(process.program) + "\",device=\"" + escaped(device) + "\"}";
      lines.push_back(std::move(line));
    }
  }
  const auto print = [&](const std::string& name, const char* type, const char* help, auto value) {
    std::printf("# HELP uiwarp_%s %s\n# TYPE uiwarp_%s %s\n", name.c_str(), help, name.c_str(),
                type);
    for (const Line& line : lines)
      std::printf("uiwarp_%s%s %llu\n", name.c_str(), line.labels.c_str(),
                  static_cast<unsigned long long>(value(line)));
  };
  for (const Counter& counter : kCounters)
    print(std::string(counter.name) + "_total", "counter", counter.help,
          [&](const Line& line) { return line.sum.*counter.value; });
  print("queue_pairs", "gauge", "Queue pairs there are.",
        [](const Line& line) { return line.queue_pairs; });
  print("queue_pairs_in_error", "gauge", "Of these, in state ERR.",
        [](const Line& line) { return line.in_error; });
  print("sends_in_flight", "gauge", "Work requests posted to send queues and not completed.",
        [](const Line& line) { return line.in_flight; });
}

// Rates are of the time since `before`; without it there are sums.
void print_text(const std::vector<Process>& processes, const std::vector<Process>* before,
                double seconds) {
  const auto earlier = [&](const Process& process, const Row& row) -> const Row* {
    if (!before) return nullptr;
    for (const Process& then : *before) {
      if (then.pid != process.pid) continue;
      for (const Row& old : then.rows)
        if (old.kind == row.kind && old.index == row.index && old.number == row.number) return &old;
    }
    return nullptr;
  };
  std::printf("%-10s %-4s %-5s %10s %10s %9s %10s %10s %14s %14s %6s %6s %-12s %s\n", "QP", "TYPE",
              "STATE", "POSTED", "COMPLETED", "IN-FLIGHT", "RECV", "RECV-DONE", "BYTES-SENT",
              "BYTES-RECV", "RNR", "ERRORS", "CQ-HIGH", "DEVICE LOCAL PEER");
  for (const Process& process : processes) {
    std::printf("%d %s, user %u\n", process.pid, process.program.c_str(), process.user);
    for (const Row& row : process.rows) {
      if (row.kind == Kind::kCompletionQueue || (row.kind == Kind::kEnded && before)) continue;
      const Row* const old = earlier(process, row);
      const auto shown = [&](uint64_t Row::*value) {
        if (!before) return static_cast<unsigned long long>(row.*value);
        if (!old || row.*value < old->*value) return 0ull;
        return static_cast<unsigned long long>(static_cast<double>(row.*value - old->*value) /
                                               seconds);
      };
      const bool is_pair = row.kind == Kind::kQueuePair;
      std::printf(
          "%-10s %-4s %-5s %10llu %10llu %9llu %10s %10llu %14llu %14llu %6llu %6llu %-12s %s %s\n",
          name_of(row).c_str(), is_pair ? type_of(row) : "-", is_pair ? state_of(row) : "-",
          shown(&Row::posted_sends), shown(&Row::completed_sends),
          is_pair ? static_cast<unsigned long long>(row.sends_in_flight()) : 0ull,
          receives_of(row, shown(&Row::posted_receives)).c_str(), shown(&Row::completed_receives),
          shown(&Row::bytes_sent), shown(&Row::bytes_received), shown(&Row::rnr_waits),
          static_cast<unsigned long long>(row.failed_sends + row.failed_receives),
          is_pair ? high_water_of(process, row).c_str() : "-", row.device.c_str(),
          is_pair ? connection_of(row).c_str() : "");
    }
  }
}

int nothing(pid_t only) {
  if (only == 0) {
    std::fprintf(stderr,
                 "uiwarp: no process with queue pairs or completion queues that you may look at\n");
    return 0;
  }
  std::fprintf(stderr,
               "uiwarp: process %d has no queue pair or completion queue of uiwarp, or is another "
               "user's: run this as that user or as root\n",
               only);
  return 1;
}

}  // namespace

int stat(pid_t only, StatAs as) {
  const std::vector<Process> processes = chosen(only);
  const int status = processes.empty() && (only != 0 || as == StatAs::kText) ? nothing(only) : 0;
  if (as == StatAs::kJson) print_json(processes);
  if (as == StatAs::kPrometheus) print_prometheus(processes);
  if (as == StatAs::kText && !processes.empty()) print_text(processes, nullptr, 1);
  return status;
}

int watch(pid_t only, double seconds) {
  std::vector<Process> before = chosen(only);
  for (auto then = std::chrono::steady_clock::now();;) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    std::vector<Process> now = chosen(only);
    const auto at = std::chrono::steady_clock::now();
    if (only != 0 && now.empty()) return nothing(only);
    if (isatty(STDOUT_FILENO)) std::printf("\033[H\033[2J");
    print_text(now, &before, std::chrono::duration<double>(at - then).count());
    if (std::fflush(stdout) != 0) return 0;  // nobody reads any more
    before = std::move(now);
    then = at;
  }
}

}  // namespace uiw::tool
