// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "json.h"
#include "trace/history.h"
#include "trace_capture.h"
#include "trace_events.h"
#include "trace_page.h"

namespace uiw::tool {
namespace {

using nlohmann::ordered_json;
using trace::History;
using trace::kNobody;

// Visits requests and events in the order of time.
template <class OnRequest, class OnEvent>
void in_order(const History& history, OnRequest on_request, OnEvent on_event) {
  auto event = history.events.begin();
  for (const trace::Request& request : history.requests) {
    for (; event != history.events.end() && event->time <= request.posted; ++event)
      on_event(*event);
    on_request(request);
  }
  for (; event != history.events.end(); ++event) on_event(*event);
}

void print_text(const History& history) {
  for (const trace::Snapshot& process : history.processes)
    std::printf("process %u %s, %" PRIu64 " older records lost\n", process.pid,
                process.program.c_str(), process.lost);
  for (size_t i = 0; i < history.queue_pairs.size(); ++i) {
    const trace::QueuePair& qp = history.queue_pairs[i];
    if (!qp.is_connected) continue;
    std::printf("queue pair %s of %u: %s - %s", trace::number_of(history, i).c_str(),
                history.processes[qp.process].pid, trace::local_of(qp).c_str(),
                trace::peer_of(qp).c_str());
    if (qp.peer != kNobody)
      std::printf(", queue pair %s of %u", trace::number_of(history, qp.peer).c_str(),
                  history.processes[history.queue_pairs[qp.peer].process].pid);
    std::printf("\n");
  }
  std::printf("Times are microseconds from %s on.\n\n", moment(history.began).c_str());
  std::printf("%14s %8s %-9s %-20s %12s %18s %12s %s\n", "POSTED", "PROCESS", "QP", "OPCODE",
              "BYTES", "WR-ID", "LATENCY", "STATUS");
  in_order(
      history,
      [&](const trace::Request& request) {
        char latency[32] = "-", vendor[32] = "";
        if (request.outcome == trace::Outcome::kCompleted)
          std::snprintf(latency, sizeof latency, "%.3f", trace::microseconds(request.latency()));
        if (request.vendor_err != 0)
          std::snprintf(vendor, sizeof vendor, ", vendor_err 0x%x", request.vendor_err);
        std::printf("%14.3f %8u %-9s %-20s %12" PRIu64 " %#18" PRIx64 " %12s %s%s\n",
                    trace::microseconds(request.posted), history.processes[request.process].pid,
                    trace::number_of(history, request.queue_pair).c_str(),
                    trace::opcode_of(request).c_str(), request.bytes, request.wr_id, latency,
                    trace::status_of(request).c_str(), vendor);
      },
      [&](const trace::Event& event) {
        std::printf("%14.3f %8u %-9s %s\n", trace::microseconds(event.time),
                    history.processes[event.process].pid,
                    trace::number_of(history, event.queue_pair).c_str(),
                    trace::text_of(event).c_str());
      });
  std::printf("\nMicroseconds from post to poll, of requests that succeeded:\n");
  std::printf("%8s %-9s %-20s %10s %12s %12s %12s %12s %12s\n", "PROCESS", "QP", "OPCODE", "COUNT",
              "50%", "90%", "99%", "99.9%", "MOST");
  for (const trace::Percentiles& row : trace::percentiles(history))
    std::printf("%8u %-9s %-20s %10" PRIu64 " %12.3f %12.3f %12.3f %12.3f %12.3f\n",
                history.processes[history.queue_pairs[row.queue_pair].process].pid,
                trace::number_of(history, row.queue_pair).c_str(),
                trace::opcode_of(row.opcode, row.is_receive).c_str(), row.count,
                trace::microseconds(row.p50), trace::microseconds(row.p90),
                trace::microseconds(row.p99), trace::microseconds(row.p999),
                trace::microseconds(row.most));
  if (history.unmatched)
    std::printf("%" PRIu64
                " completions are of requests that were posted before the oldest record.\n",
                history.unmatched);
}

// A member that is an array.
class List : public JsonArray {
 public:
  explicit List(const char* name) : JsonArray((std::printf(",\n\"%s\": ", name), stdout)) {}
};

ordered_json index_or_null(size_t index) {
  return index == kNobody ? ordered_json() : ordered_json(index);
}

void print_json(const History& history) {
  std::printf("{\"began_ns\": %" PRId64 ", \"unmatched_completions\": %" PRIu64, history.began,
              history.unmatched);
  {
    List list("processes");
    for (const trace::Snapshot& process : history.processes)
      list.add({{"pid", process.pid}, {"program", process.program}, {"lost", process.lost}});
  }
  {
    List list("queue_pairs");
    for (const trace::QueuePair& qp : history.queue_pairs)
      list.add({{"process", qp.process},
                {"number", qp.number},
                {"local", trace::local_of(qp)},
                {"peer", trace::peer_of(qp)},
                {"peer_queue_pair", index_or_null(qp.peer)}});
  }
  {
    List list("requests");
    for (const trace::Request& request : history.requests) {
      const bool completed = request.outcome == trace::Outcome::kCompleted;
      list.add({{"process", request.process},
                {"queue_pair", index_or_null(request.queue_pair)},
                {"opcode", trace::opcode_of(request)},
                {"bytes", request.bytes},
                {"wr_id", request.wr_id},
                {"posted_ns", request.posted},
                {"latency_ns", completed ? ordered_json(request.latency()) : ordered_json()},
                {"status", trace::status_of(request)},
                {"vendor_err", request.vendor_err}});
    }
  }
  {
    List list("events");
    for (const trace::Event& event : history.events)
      list.add({{"process", event.process},
                {"queue_pair", index_or_null(event.queue_pair)},
                {"time_ns", event.time},
                {"what", trace::text_of(event)}});
  }
  {
    List list("percentiles");
    for (const trace::Percentiles& row : trace::percentiles(history))
      list.add({{"queue_pair", row.queue_pair},
                {"opcode", trace::opcode_of(row.opcode, row.is_receive)},
                {"count", row.count},
                {"bytes", row.bytes},
                {"p50_ns", row.p50},
                {"p90_ns", row.p90},
                {"p99_ns", row.p99},
                {"p99_9_ns", row.p999},
                {"max_ns", row.most}});
  }
  std::printf("}\n");
}

// Into a file that is none of `files`. The exit status.
template <class Write>
int write_file(const std::string& path, const std::vector<std::string>& files, Write write) {
  for (const std::string& file : files) {
    std::error_code ignored;
    if (!std::filesystem::equivalent(file, path, ignored)) continue;
    std::fprintf(stderr, "uiwarp: %s is the trace that is read, and would be overwritten\n",
                 path.c_str());
    return 2;
  }
  std::FILE* const out = std::fopen(path.c_str(), "we");
  const bool written = out && write(out);
  // What is still in its buffer is written now.
  if (out && std::fclose(out) == 0 && written) return 0;
  std::fprintf(stderr, "uiwarp: %s cannot be written: %s\n", path.c_str(), std::strerror(errno));
  return 2;
}

// Each trace once, under whatever names it is there: links, or copies, of which the one with the
// newest record is taken. False: one cannot be read, which has been said.
bool read_all(const std::vector<std::string>& files, std::vector<trace::Snapshot>& snapshots) {
  std::vector<const std::string*> names;  // of snapshots
  for (const std::string& file : files) {
    trace::Snapshot snapshot;
    if (const std::string problem = trace::read(file, snapshot); !problem.empty()) {
      std::fprintf(stderr, "uiwarp: %s: %s\n", file.c_str(), problem.c_str());
      return false;
    }
    const auto known =
        std::ranges::find_if(snapshots, [&](const auto& each) { return each.is_same(snapshot); });
    if (known == snapshots.end()) {
      snapshots.push_back(std::move(snapshot));
      names.push_back(&file);
      continue;
    }
    std::fprintf(stderr, "uiwarp: %s and %s are the same trace, which counts once\n",
                 names[static_cast<size_t>(known - snapshots.begin())]->c_str(), file.c_str());
    if (snapshot.last >= known->last) *known = std::move(snapshot);
  }
  return true;
}

}  // namespace

int show_trace(const std::vector<std::string>& files, TraceAs as, const std::string& to) {
  std::vector<trace::Snapshot> snapshots;
  if (!read_all(files, snapshots)) return 2;
  if (as == TraceAs::kCapture) {
    if (!has_fpdus(snapshots)) return 2;
    return write_file(to, files, [&](std::FILE* out) { return write_fpdus(snapshots, out); });
  }
  const History history = trace::build(std::move(snapshots));
  switch (as) {
    case TraceAs::kTimeline:
      return write_file(to, files,
                        [&](std::FILE* out) { return write_trace_events(history, out); });
    case TraceAs::kPage:
      return write_file(to, files, [&](std::FILE* out) {
        const std::string page = trace_page(history);
        return std::fwrite(page.data(), 1, page.size(), out) == page.size();
      });
    case TraceAs::kJson:
      print_json(history);
      return 0;
    default:
      print_text(history);
      return 0;
  }
}

}  // namespace uiw::tool
