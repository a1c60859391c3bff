// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace_events.h"

#include <cinttypes>
#include <nlohmann/json.hpp>

namespace uiw::tool {
namespace {

using nlohmann::ordered_json;
using trace::History;
using trace::kNobody;

// The format knows processes and threads only. As a queue pair has requests that overlap, each is a
// process there, from 1; 0 is what belongs to none.
size_t group_of(size_t queue_pair) {
  return queue_pair == kNobody ? 0 : queue_pair + 1;
}

std::string name_of(const History& history, size_t queue_pair) {
  if (queue_pair == kNobody) return "no queue pair";
  const trace::QueuePair& qp = history.queue_pairs[queue_pair];
  const trace::Snapshot& process = history.processes[qp.process];
  char number[16];
  std::snprintf(number, sizeof number, "0x%06x", qp.number);
  std::string name = process.program + " " + std::to_string(process.pid) + " QP " + number;
  if (qp.is_connected) name += " to " + trace::peer_of(qp);
  return name;
}

double microseconds(int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1000;
}

class Writer {
 public:
  explicit Writer(std::FILE* out) : out_(out) {
    std::fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [", out_);
  }
  void add(const ordered_json& event) {
    std::fprintf(out_, "%s\n%s", is_first_ ? "" : ",", event.dump().c_str());
    is_first_ = false;
  }
  bool finish() {
    std::fputs("\n]}\n", out_);
    return std::fflush(out_) == 0 && !std::ferror(out_);
  }

 private:
  std::FILE* out_;
  bool is_first_ = true;
};

void add_request(Writer& writer, const trace::Request& request, size_t id) {
  ordered_json event = {{"name", trace::opcode_of(request)},
                        {"cat", "request"},
                        {"ph", "b"},
                        {"id", id},
                        {"pid", group_of(request.queue_pair)},
                        {"tid", 0},
                        {"ts", microseconds(request.posted)}};
  ordered_json end = event;
  event["args"] = {{"bytes", request.bytes},
                   {"wr_id", request.wr_id},
                   {"status", trace::status_of(request)},
                   {"vendor_err", request.vendor_err}};
  writer.add(event);
  end["ph"] = "e";
  end["ts"] = microseconds(request.completed);
  writer.add(end);
}

}  // namespace

bool write_trace_events(const History& history, std::FILE* out) {
  Writer writer(out);
  const auto name_group = [&](size_t queue_pair) {
    writer.add({{"name", "process_name"},
                {"ph", "M"},
                {"pid", group_of(queue_pair)},
                {"tid", 0},
                {"args", {{"name", name_of(history, queue_pair)}}}});
  };
  name_group(kNobody);
  for (size_t i = 0; i < history.queue_pairs.size(); ++i) name_group(i);
  for (size_t i = 0; i < history.requests.size(); ++i)
    if (history.requests[i].outcome != trace::Outcome::kOpen)
      add_request(writer, history.requests[i], i + 1);
  for (const trace::Event& event : history.events)
    writer.add({{"name", trace::text_of(event)},
                {"ph", "i"},
                {"s", "p"},
                {"pid", group_of(event.queue_pair)},
                {"tid", 0},
                {"ts", microseconds(event.time)}});
  return writer.finish();
}

}  // namespace uiw::tool
