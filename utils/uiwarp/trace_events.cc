// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace_events.h"

#include "json.h"

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
  std::string name = process.program + " " + std::to_string(process.pid) + " QP " +
                     trace::number_of(history, queue_pair);
  if (qp.is_connected) name += " to " + trace::peer_of(qp);
  return name;
}

void add_request(JsonArray& events, const trace::Request& request, size_t id) {
  ordered_json event = {{"name", trace::opcode_of(request)},
                        {"cat", "request"},
                        {"ph", "b"},
                        {"id", id},
                        {"pid", group_of(request.queue_pair)},
                        {"tid", 0},
                        {"ts", trace::microseconds(request.posted)}};
  ordered_json end = event;
  event["args"] = {{"bytes", request.bytes},
                   {"wr_id", request.wr_id},
                   {"status", trace::status_of(request)},
                   {"vendor_err", request.vendor_err}};
  events.add(event);
  end["ph"] = "e";
  end["ts"] = trace::microseconds(request.completed);
  events.add(end);
}

}  // namespace

bool write_trace_events(const History& history, std::FILE* out) {
  std::fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": ", out);
  {
    JsonArray events(out);
    const auto name_group = [&](size_t queue_pair) {
      events.add({{"name", "process_name"},
                  {"ph", "M"},
                  {"pid", group_of(queue_pair)},
                  {"tid", 0},
                  {"args", {{"name", name_of(history, queue_pair)}}}});
    };
    name_group(kNobody);
    for (size_t i = 0; i < history.queue_pairs.size(); ++i) name_group(i);
    for (size_t i = 0; i < history.requests.size(); ++i)
      if (history.requests[i].outcome != trace::Outcome::kOpen)
        add_request(events, history.requests[i], i + 1);
    for (const trace::Event& event : history.events)
      events.add({{"name", trace::text_of(event)},
                  {"ph", "i"},
                  {"s", "p"},
                  {"pid", group_of(event.queue_pair)},
                  {"tid", 0},
                  {"ts", trace::microseconds(event.time)}});
  }
  std::fputs("}\n", out);
  return std::fflush(out) == 0 && !std::ferror(out);
}

}  // namespace uiw::tool
