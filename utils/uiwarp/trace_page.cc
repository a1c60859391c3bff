// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace_page.h"

#include <infiniband/verbs.h>

#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <initializer_list>
#include <set>

#include "core/cause.h"
#include "core/verbs_names.h"
#include "explain.h"
#include "html.h"
#include "trace/digest.h"
#include "trace_chart.h"
#include "trace_page_style.h"

namespace uiw::tool {
namespace {

using trace::Digest;
using trace::History;
using trace::kNobody;

constexpr size_t kNamesInTitle = 4;

class Table {
 public:
  struct Column {
    const char* name;
    bool is_number = false;
  };

  Table(const char* id, std::initializer_list<Column> columns) : columns_(columns) {
    out_ = std::string("<div class=\"scroll\"><table id=\"") + id + "\"><thead><tr>";
    for (const Column& column : columns_)
      out_ += std::string("<th") + kind(column) + ">" + column.name + "</th>";
    out_ += "</tr></thead><tbody>";
  }

  // Cells are HTML, one for each column.
  void row(std::initializer_list<std::string> cells) {
    out_ += "\n<tr>";
    auto column = columns_.begin();
    for (const std::string& cell : cells)
      out_ += std::string("<td") + kind(*column++) + ">" + cell + "</td>";
    out_ += "</tr>";
  }
  void gap(const std::string& text) {
    out_ += "\n<tr><td class=\"gap\" colspan=\"" + std::to_string(columns_.size()) + "\">" + text +
            "</td></tr>";
  }
  std::string take() { return std::move(out_) + "</tbody></table></div>\n"; }

 private:
  static const char* kind(const Column& column) { return column.is_number ? " class=\"n\"" : ""; }
  std::vector<Column> columns_;
  std::string out_;
};

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "%#" PRIx64, value);
  return text;
}

std::string process_of(const History& history, size_t process) {
  const trace::Snapshot& of = history.processes[process];
  return std::to_string(of.pid) + " " + html::escaped(of.program);
}

// "12 of 3 000 are shown, those with ..."
std::string rest(uint64_t shown, uint64_t all, const char* which) {
  if (shown >= all) return "";
  return "<p class=\"note\">" + html::number(shown) + " of " + html::number(all) + " are shown" +
         which + "; <code>uiwarp trace --json</code> has all.</p>\n";
}

std::string section(const char* title, const std::string& content, const char* note = "") {
  return std::string("<section><h2>") + title + "</h2>" +
         (*note ? std::string("<p class=\"note\">") + note + "</p>\n" : "\n") + content +
         "</section>\n";
}

std::string summary(const History& history, const Digest& digest) {
  std::string out = "<dl class=\"figures\">";
  const auto figure = [&](const char* name, const std::string& value, const char* kind = "") {
    out += std::string("<div") + kind + "><dt>" + name + "</dt><dd>" + value + "</dd></div>";
  };
  const trace::Sums& sums = digest.sums;
  figure("requests", html::number(sums.requests));
  figure("succeeded", html::number(sums.succeeded));
  figure("failed", html::number(sums.failed), sums.failed ? " class=\"bad\"" : "");
  figure("flushed", html::number(sums.flushed));
  figure("unsignaled", html::number(sums.unsignaled));
  figure("open at the end", html::number(sums.open));
  figure("waited for a receive", html::number(digest.awaited.all),
         digest.awaited_in_vain ? " class=\"bad\""
         : digest.awaited.all   ? " class=\"late\""
                                : "");
  figure("duration", html::duration(static_cast<double>(digest.last)));
  uint64_t lost = 0;
  for (const trace::Snapshot& process : history.processes) lost += process.lost;
  if (lost) figure("older records lost", html::number(lost), " class=\"bad\"");
  if (history.unmatched) figure("completions without a post", html::number(history.unmatched));
  return out + "</dl>\n";
}

std::string programs(const History& history) {
  Table table("programs", {{"process", true}, {"program"}, {"records lost", true}});
  size_t shown = 0;
  for (const trace::Snapshot& process : history.processes) {
    if (++shown > trace::kMostRows) break;
    table.row(
        {std::to_string(process.pid), html::escaped(process.program), html::number(process.lost)});
  }
  return section("Programs", table.take() + rest(std::min(shown, trace::kMostRows),
                                                 history.processes.size(), ", the first"));
}

std::string connections(const History& history, const Digest& digest) {
  if (digest.queue_pairs.all == 0) return "";
  Table table("queue-pairs", {{"process"},
                              {"queue pair"},
                              {"type"},
                              {"local"},
                              {"peer"},
                              {"peer's queue pair"},
                              {"sends", true},
                              {"bytes sent", true},
                              {"receives", true},
                              {"bytes received", true},
                              {"failed", true},
                              {"flushed", true},
                              {"open", true}});
  for (const trace::Traffic& traffic : digest.queue_pairs.shown) {
    const trace::QueuePair& qp = history.queue_pairs[traffic.queue_pair];
    const char* const type = core::name_of_type(qp.type);
    std::string peer = "-";
    if (qp.peer != kNobody)
      peer = trace::number_of(history, qp.peer) + " of " +
             process_of(history, history.queue_pairs[qp.peer].process);
    table.row({process_of(history, qp.process), trace::number_of(history, traffic.queue_pair),
               type ? type : "?", html::escaped(trace::local_of(qp)),
               html::escaped(trace::peer_of(qp)), peer, html::number(traffic.sends.requests),
               html::number(traffic.sends.bytes), html::number(traffic.receives.requests),
               html::number(traffic.receives.bytes),
               html::number(traffic.sends.failed + traffic.receives.failed),
               html::number(traffic.sends.flushed + traffic.receives.flushed),
               html::number(traffic.sends.open + traffic.receives.open)});
  }
  return section(
      "Connections",
      table.take() + rest(digest.queue_pairs.shown.size(), digest.queue_pairs.all,
                          ", those with the most requests"),
      "Sends are all requests of the send queue. Bytes are those of requests that "
      "succeeded, or are unsignaled and over; those of Reads are among those sent. Receives "
      "of a shared queue count for the queue pair that took them.");
}

std::string throughput(const History& history, const Digest& digest) {
  if (digest.series.all == 0) return "";
  std::string cards;
  for (const trace::Series& series : digest.series.shown)
    cards += rate_chart(history, digest.bins, series);
  return section(
      "Throughput",
      "<div class=\"cards\">" + cards + "</div>" +
          rest(digest.series.shown.size(), digest.series.all, ", those with the most bytes"),
      "Bytes and requests per second, counted when the program polled the completion; unsignaled "
      "requests with the next completion. A Send is counted at its sender and, as a receive, at "
      "its receiver.");
}

std::string latency(const History& history, const Digest& digest) {
  if (digest.percentiles.all == 0) return "";
  std::string cards;
  for (const trace::Histogram& histogram : digest.histograms)
    cards += histogram_chart(history, histogram);
  Table table("percentiles", {{"process"},
                              {"queue pair"},
                              {"opcode"},
                              {"completions", true},
                              {"bytes", true},
                              {"50\u202f%", true},
                              {"90\u202f%", true},
                              {"99\u202f%", true},
                              {"99.9\u202f%", true},
                              {"most", true}});
  for (const trace::Percentiles& row : digest.percentiles.shown)
    table.row({process_of(history, row.process),
               row.queue_pair == kNobody ? "all" : trace::number_of(history, row.queue_pair),
               html::escaped(trace::opcode_of(row.opcode, row.is_receive)), html::number(row.count),
               html::number(row.bytes), html::microseconds(row.p50), html::microseconds(row.p90),
               html::microseconds(row.p99), html::microseconds(row.p999),
               html::microseconds(row.most)});
  const std::string which = ", those with the most requests";
  std::string note =
      "From the beginning of the call that posted a request to the end of the one that polled its "
      "completion; of requests that succeeded. For a receive this includes the wait for the "
      "message.";
  if (digest.sums.unsignaled)
    note += " Unsignaled requests (" + html::number(digest.sums.unsignaled) +
            ") have no completion, and so no latency.";
  return section("Latency",
                 heat_chart(digest) + "<div class=\"cards\">" + cards + "</div>" +
                     rest(digest.histograms.size(), digest.percentiles.all, which.c_str()) +
                     "<h3>Percentiles, \u00b5s</h3>" + table.take() +
                     rest(digest.percentiles.shown.size(), digest.percentiles.all, which.c_str()),
                 note.c_str());
}

std::string requests(const History& history, const trace::Most<size_t>& most, const char* id) {
  Table table(id, {{"posted, \u00b5s", true},
                   {"status"},
                   {"opcode"},
                   {"wr_id", true},
                   {"bytes", true},
                   {"latency, \u00b5s", true},
                   {"vendor_err", true},
                   {"queue pair"},
                   {"process"}});
  for (const size_t index : most.shown) {
    const trace::Request& request = history.requests[index];
    table.row(
        {html::microseconds(request.posted), html::escaped(trace::status_of(request)),
         html::escaped(trace::opcode_of(request)), hex(request.wr_id), html::number(request.bytes),
         html::microseconds(request.latency()), request.vendor_err ? hex(request.vendor_err) : "-",
         trace::number_of(history, request.queue_pair), process_of(history, request.process)});
  }
  return table.take();
}

// What `uiwarp explain` says of each vendor_err that is shown, and begins with of each status. Of
// what a rule of --faults did the status is the rule's: what else it may mean would mislead.
std::string explanations(const History& history, const Digest& digest) {
  std::set<uint32_t> causes;
  std::set<uint8_t> said;
  std::string out;
  for (const size_t index : digest.failed.shown) {
    const uint32_t cause = history.requests[index].vendor_err;
    VendorErr found;
    if (cause && causes.insert(cause).second && find_vendor_err(cause, found))
      out += "<dt>vendor_err " + html::escaped(found.name) + "</dt><dd>" +
             html::escaped(found.text) + "</dd>";
  }
  for (const size_t index : digest.failed.shown) {
    const trace::Request& request = history.requests[index];
    if (request.vendor_err == static_cast<uint32_t>(core::Cause::kInjected)) continue;
    if (!said.insert(request.status).second) continue;
    for (const Explanation& one : explained_statuses())
      if (one.value == request.status && one.here)
        out += "<dt>" + html::escaped(trace::status_of(request)) + "</dt><dd>" +
               html::escaped(one.here) + "</dd>";
  }
  if (out.empty()) return "";
  return "<dl class=\"words\">" + out +
         "</dl><p class=\"note\"><code>uiwarp explain</code> says more of a status and of a "
         "vendor_err.</p>\n";
}

std::string failed(const History& history, const Digest& digest) {
  if (digest.failed.all == 0) return "";
  return section(digest.sums.failed ? "Failed requests" : "Flushed requests",
                 requests(history, digest.failed, "failed") +
                     rest(digest.failed.shown.size(), digest.failed.all, ", the first") +
                     explanations(history, digest),
                 digest.sums.failed
                     ? "In the order of their completions; those that were flushed come last."
                     : "No request failed: these were left when a connection ended.");
}

std::string slowest(const History& history, const Digest& digest) {
  if (digest.slowest.all == 0) return "";
  return section(digest.heat_of_receives ? "Receives that took longest" : "Slowest requests",
                 requests(history, digest.slowest, "slowest") +
                     rest(digest.slowest.shown.size(), digest.slowest.all, ", the slowest"),
                 digest.heat_of_receives ? "" : "Of send queues, and of those that succeeded.");
}

std::string awaited(const History& history, const Digest& digest) {
  if (digest.awaited.all == 0) return "";
  Table table(
      "awaited",
      {{"at, \u00b5s", true}, {"process"}, {"queue pair"}, {"waited, \u00b5s", true}, {"then"}});
  for (const size_t index : digest.awaited.shown) {
    const trace::Event& event = history.events[index];
    table.row({html::microseconds(event.time), process_of(history, event.process),
               trace::number_of(history, event.queue_pair),
               html::microseconds(static_cast<int64_t>(event.record.work.bytes)),
               event.record.flags & trace::kInVain ? "the connection ended" : "it was received"});
  }
  return section("Messages that waited for a receive",
                 "<p>" + html::counted(digest.awaited.all, "message") + " waited " +
                     html::duration(static_cast<double>(digest.awaited_sum)) +
                     (digest.awaited.all == 1 ? "" : " together") + ".</p>\n" + table.take() +
                     rest(digest.awaited.shown.size(), digest.awaited.all, ", the longest"),
                 "The program had no receive posted when they came. An adapter would have had the "
                 "peer send them again, or have failed the connection.");
}

std::string events(const History& history, const Digest& digest) {
  if (digest.events.all == 0) return "";
  const uint64_t left_out = digest.events.all - digest.events.shown.size();
  Table table("events", {{"at, \u00b5s", true}, {"process"}, {"queue pair"}, {"what"}});
  for (size_t i = 0; i < digest.events.shown.size(); ++i) {
    if (left_out && i == trace::kMostEvents / 2)
      table.gap(html::number(left_out) +
                " events are left out; <code>uiwarp trace --json</code> "
                "has all.");
    const trace::Event& event = history.events[digest.events.shown[i]];
    table.row({html::microseconds(event.time), process_of(history, event.process),
               trace::number_of(history, event.queue_pair), html::escaped(trace::text_of(event))});
  }
  return section("Events", table.take());
}

std::string title_of(const History& history) {
  std::string title = "Trace of ";
  const size_t all = history.processes.size();
  for (size_t i = 0; i < std::min(all, kNamesInTitle); ++i)
    title += (i ? ", " : "") + html::escaped(history.processes[i].program) + " " +
             std::to_string(history.processes[i].pid);
  if (all > kNamesInTitle) title += " and " + std::to_string(all - kNamesInTitle) + " more";
  return title;
}

}  // namespace

std::string moment(int64_t nanoseconds) {
  const time_t seconds = nanoseconds / 1'000'000'000;
  tm parts{};
  char text[64] = "?";
  if (gmtime_r(&seconds, &parts)) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string trace_page(const History& history) {
  const Digest digest = trace::digest(history);
  const std::string title = title_of(history);
  const bool is_empty = history.requests.empty() && history.events.empty();
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
      // Whatever the trace holds: nothing is loaded and nothing runs.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n<title>" +
      title + "</title>\n<style>" + kTracePageStyle + "</style></head>\n<body><main>\n<h1>" +
      title + "</h1>\n";
  out += is_empty ? "<p class=\"note\">The trace holds no request and no event.</p>\n"
                  : "<p class=\"note\">Times count from " + moment(history.began) +
                        ", from the first record on.</p>\n";
  out += summary(history, digest);
  // What went wrong is looked for first.
  if (digest.sums.failed) out += failed(history, digest);
  out += awaited(history, digest);
  out += throughput(history, digest) + latency(history, digest) + slowest(history, digest);
  if (!digest.sums.failed) out += failed(history, digest);
  out += connections(history, digest) + programs(history) + events(history, digest);
  return out + "</main></body></html>\n";
}

}  // namespace uiw::tool
