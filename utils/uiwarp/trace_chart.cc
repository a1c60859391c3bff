// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "html.h"

namespace uiw::tool {
namespace {

using trace::Bins;
using trace::Digest;
using trace::History;
using trace::LogAxis;
using trace::Series;

constexpr int kHeight = 1000;  // of a picture's own coordinates; its width is the number of bins

struct Tick {
  double place;  // from 0 to 1
  std::string label;
};

std::string digits(double value, int decimals) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

// 1, 2 or 5 times a power of ten, so that there are not more than `most` of them up to `whole`.
double round_step(double whole, int most) {
  const double least = whole / most;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double step : {power, 2 * power, 5 * power})
    if (step >= least * 0.9999) return step;
  return 10 * power;
}

int decimals_of(double step) {
  return std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
}

struct Unit {
  double size;
  const char* name;
};

Unit unit_of_time(double nanoseconds) {
  if (nanoseconds >= 2e9) return {1e9, "s"};
  if (nanoseconds >= 2e6) return {1e6, "ms"};
  if (nanoseconds >= 2e3) return {1e3, "\u00b5s"};
  return {1, "ns"};
}

struct Scale {
  double top;
  std::vector<Tick> ticks;
};

// From 0 up to a round number that is not below `most`, by steps of a round number.
Scale linear_scale(double most, const char* unit, int most_steps, double least_step = 0) {
  if (most <= 0) most = 1;
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  double factor = 1;
  while (most / factor >= 1000 && prefix + 1 < std::size(kPrefixes)) {
    factor *= 1000;
    ++prefix;
  }
  const double step = std::max(round_step(most / factor, most_steps), least_step / factor);
  const int steps = std::max(1, static_cast<int>(std::ceil(most / factor / step - 1e-9)));
  Scale scale{step * steps * factor, {}};
  for (int i = 0; i <= steps; ++i) {
    std::string label = digits(step * i, decimals_of(step));
    if (i == steps) label += std::string(" ") + kPrefixes[prefix] + unit;
    scale.ticks.push_back({static_cast<double>(i) / steps, label});
  }
  return scale;
}

std::vector<Tick> ticks_of_time(const Bins& bins) {
  const double from = static_cast<double>(bins.from);
  const double whole = static_cast<double>(bins.width) * static_cast<double>(bins.count);
  const Unit unit = unit_of_time(from + whole);
  const double step = round_step(whole / unit.size, 6);
  std::vector<Tick> ticks;
  for (double at = std::ceil(from / unit.size / step) * step; ticks.size() < 8; at += step) {
    const double place = (at * unit.size - from) / whole;
    if (place > 1.0001) break;
    const std::string label = digits(at, decimals_of(step));
    ticks.push_back({place, ticks.empty() ? label + " " + unit.name : label});
  }
  return ticks;
}

// Decades; between them 2 and 5, where there are few.
std::vector<Tick> ticks_of_latency(const LogAxis& axis) {
  const double decades = std::log10(axis.high / axis.low);
  std::vector<Tick> ticks;
  const int every = std::max(1, static_cast<int>(std::ceil(decades / 5)));
  const int first = static_cast<int>(std::floor(std::log10(axis.low) + 1e-9));
  for (int power = first; power <= first + 22; ++power) {
    for (const int factor : {1, 2, 5}) {
      if (factor != 1 && decades > 1.8) continue;
      if (decades > 5 && (power - first) % every != 0) continue;
      const double value = factor * std::pow(10, power);
      if (value < axis.low * 0.999 || value > axis.high * 1.001) continue;
      ticks.push_back({axis.place(value), html::duration(value)});
    }
  }
  return ticks;
}

std::string labels(const std::vector<Tick>& ticks, const char* kind, const char* side) {
  std::string out = std::string("<div class=\"") + kind + "\">";
  for (const Tick& tick : ticks)
    out += std::string("<span style=\"") + side + ":" + html::percent(tick.place) + "%\">" +
           tick.label + "</span>";
  return out + "</div>";
}

// Lines across a picture at its ticks.
std::string grid(const std::vector<Tick>& up, const std::vector<Tick>& across, double width) {
  std::string path;
  for (const Tick& tick : up)
    path += "M0," + digits(kHeight * (1 - tick.place), 1) + "H" + digits(width, 0);
  for (const Tick& tick : across)
    path += "M" + digits(width * tick.place, 3) + ",0V" + std::to_string(kHeight);
  return "<path class=\"grid\" d=\"" + path + "\"/>";
}

std::string picture(double width, const std::string& what, const std::string& content) {
  return "<svg viewBox=\"0 0 " + digits(width, 0) + " " + std::to_string(kHeight) +
         "\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"" + what + "\">" + content +
         "</svg>";
}

std::string time_of(const Bins& bins, size_t bin) {
  const auto from = static_cast<double>(bins.from);
  const auto width = static_cast<double>(bins.width);
  return html::duration(from + width * static_cast<double>(bin)) + " to " +
         html::duration(from + width * static_cast<double>(bin + 1));
}

// What is said of a bin where a pointer rests.
std::string hover(size_t bin, const std::string& text) {
  return "<rect class=\"hover\" x=\"" + std::to_string(bin) + "\" y=\"0\" width=\"1\" height=\"" +
         std::to_string(kHeight) + "\"><title>" + text + "</title></rect>";
}

std::string steps(const std::vector<double>& heights) {
  std::string line, y;
  for (size_t bin = 0; bin < heights.size(); ++bin) {
    const std::string next = digits(kHeight * (1 - heights[bin]), 0);
    if (bin == 0)
      line += "M0," + next;
    else if (next != y)
      line += "H" + std::to_string(bin) + "V" + next;
    y = next;
  }
  line += "H" + std::to_string(heights.size());
  const std::string base = std::to_string(kHeight);
  return "<path class=\"area\" d=\"" + line + "V" + base + "H0Z\"/><path class=\"line\" d=\"" +
         line + "\"/>";
}

// A plot of values of bins, a second.
std::string rate_plot(const Bins& bins, const std::vector<uint64_t>& values, const char* unit,
                      const std::vector<Tick>& times, const std::string& what) {
  const double seconds = static_cast<double>(bins.width) / 1e9;
  const uint64_t most = *std::ranges::max_element(values);
  const Scale scale = linear_scale(static_cast<double>(most) / seconds, unit, 3);
  const auto width = static_cast<double>(bins.count);
  std::vector<double> heights(bins.count);
  std::string said;
  for (size_t bin = 0; bin < bins.count; ++bin) {
    const double value = static_cast<double>(values[bin]) / seconds;
    heights[bin] = value / scale.top;
    if (values[bin] != 0) said += hover(bin, time_of(bins, bin) + ": " + html::scaled(value, unit));
  }
  return labels(scale.ticks, "y", "bottom") +
         picture(width, what, grid(scale.ticks, times, width) + steps(heights) + said);
}

}  // namespace

std::string rate_chart(const History& history, const Bins& bins, const Series& series) {
  const trace::Snapshot& process = history.processes[series.process];
  const std::string opcode = html::escaped(trace::opcode_of(series.opcode, series.is_receive));
  const std::string program = std::to_string(process.pid) + " " + html::escaped(process.program);
  const std::vector<Tick> times = ticks_of_time(bins);
  const uint64_t over = series.sums.succeeded + series.sums.unsignaled;
  std::string note =
      program + ", " + html::counted(over, "request") + ", " +
      (series.sums.unsignaled ? html::number(series.sums.unsignaled) + " of them unsignaled, "
                              : "") +
      html::scaled(static_cast<double>(series.sums.bytes), "B");
  const std::string what = opcode + ", " + program;
  return "<figure class=\"card\"><figcaption>" + opcode + "<small>" + note +
         "</small></figcaption><div class=\"plot rates\">" +
         rate_plot(bins, series.bytes, "B/s", times, "Bytes per second of " + what) +
         labels({}, "x", "left") +
         rate_plot(bins, series.requests, "/s", times, "Requests per second of " + what) +
         labels(times, "x", "left") + "</div></figure>";
}

std::string histogram_chart(const History& history, const trace::Histogram& histogram) {
  const trace::Percentiles& of = histogram.of;
  const uint64_t most = *std::ranges::max_element(histogram.counts);
  const Scale scale = linear_scale(static_cast<double>(most), "", 4, 1);
  const std::vector<Tick> latencies = ticks_of_latency(histogram.axis);
  const double width = static_cast<double>(trace::kHistogramBins);
  std::string bars, said;
  for (size_t bin = 0; bin < trace::kHistogramBins; ++bin) {
    if (histogram.counts[bin] == 0) continue;
    // One request in a million is to be seen.
    const double height =
        std::max(0.012, static_cast<double>(histogram.counts[bin]) / scale.top) * kHeight;
    bars += "M" + std::to_string(bin) + "," + std::to_string(kHeight) + "V" +
            digits(kHeight - height, 0) + "h1V" + std::to_string(kHeight) + "Z";
    const double ratio = histogram.axis.high / histogram.axis.low;
    const auto edge = [&](size_t at) {
      return html::duration(histogram.axis.low * std::pow(ratio, static_cast<double>(at) / width));
    };
    said +=
        hover(bin, edge(bin) + " to " + edge(bin + 1) + ": " + html::number(histogram.counts[bin]));
  }
  std::string content =
      grid(scale.ticks, latencies, width) + "<path class=\"bars\" d=\"" + bars + "\"/>";
  const auto mark = [&](const char* kind, int64_t at) {
    const std::string x = digits(width * histogram.axis.place(static_cast<double>(at)), 2);
    content += std::string("<path class=\"mark ") + kind + "\" d=\"M" + x + ",0V" +
               std::to_string(kHeight) + "\"/>";
  };
  mark("p50", of.p50);
  mark("p99", of.p99);
  mark("p999", of.p999);
  const trace::Snapshot& process = history.processes[of.process];
  const std::string opcode = html::escaped(trace::opcode_of(of.opcode, of.is_receive));
  const std::string where =
      (of.queue_pair == trace::kNobody ? "all" : trace::number_of(history, of.queue_pair)) +
      " of " + std::to_string(process.pid) + " " + html::escaped(process.program);
  const auto figure = [](const char* kind, const char* name, int64_t value) {
    return std::string("<div><dt><i class=\"") + kind + "\"></i>" + name + "</dt><dd>" +
           html::duration(static_cast<double>(value)) + "</dd></div>";
  };
  return "<figure class=\"card\"><figcaption>" + opcode + "<small>" + where + ", " +
         html::counted(of.count, "completion") + "</small></figcaption><div class=\"plot\">" +
         labels(scale.ticks, "y", "bottom") +
         picture(width, "Latencies of " + opcode + ", " + where, content + said) +
         labels(latencies, "x", "left") + "</div><dl class=\"marks\">" +
         figure("p50", "50\u202f%", of.p50) + figure("p99", "99\u202f%", of.p99) +
         figure("p999", "99.9\u202f%", of.p999) + figure("", "most", of.most) + "</dl></figure>";
}

std::string heat_chart(const Digest& digest) {
  constexpr size_t kShades = 6;
  const Bins& bins = digest.bins;
  const auto width = static_cast<double>(bins.count);
  const std::vector<Tick> times = ticks_of_time(bins),
                          latencies = ticks_of_latency(digest.heat_axis);
  uint64_t most = 1;
  for (const auto& column : digest.heat) most = std::max(most, *std::ranges::max_element(column));
  // Equal ratios are equal steps of shade: the rare ones are to be seen.
  std::string shades[kShades];
  constexpr int kCell = kHeight / static_cast<int>(trace::kHeatRows);
  for (size_t bin = 0; bin < digest.heat.size(); ++bin) {
    for (size_t row = 0; row < trace::kHeatRows; ++row) {
      const uint64_t count = digest.heat[bin][row];
      if (count == 0) continue;
      const double share = std::log(static_cast<double>(count) + 1) /
                           std::log(static_cast<double>(most) + 1) * kShades;
      shades[std::min(kShades - 1, static_cast<size_t>(share))] +=
          "M" + std::to_string(bin) + "," +
          std::to_string(kHeight - kCell * static_cast<int>(row + 1)) + "h1v" +
          std::to_string(kCell) + "h-1z";
    }
  }
  std::string content = grid(latencies, times, width);
  for (size_t i = 0; i < kShades; ++i)
    if (!shades[i].empty())
      content += "<path class=\"heat h" + std::to_string(i) + "\" d=\"" + shades[i] + "\"/>";

  std::string lanes;
  const auto lane = [&](const char* kind, const char* name, const std::vector<uint64_t>& counts) {
    uint64_t sum = 0;
    std::string ticks;
    for (size_t bin = 0; bin < counts.size(); ++bin) {
      if (counts[bin] == 0) continue;
      sum += counts[bin];
      ticks += "<rect x=\"" + std::to_string(bin) + "\" y=\"0\" width=\"1\" height=\"" +
               std::to_string(kHeight) + "\"><title>" + time_of(bins, bin) + ": " +
               html::number(counts[bin]) + "</title></rect>";
    }
    if (sum == 0) return;
    lanes += std::string("<div class=\"lane ") + kind + "\"><span>" + name + "</span>" +
             picture(width, std::string(name) + " over time", ticks) + "</div>";
  };
  lane("failures", "failed", digest.failures);
  lane("flushes", "flushed", digest.flushes);
  lane("waits", "waited for a receive", digest.waits);
  lane("refusals", "refused", digest.refusals);
  return "<figure class=\"chart\"><figcaption>Latency over time<small>" +
         std::string(digest.heat_of_receives ? "receives" : "requests of send queues") +
         " that succeeded, when their completions were polled; stronger is more, up to " +
         html::number(most) + " in one place</small></figcaption><div class=\"plot tall\">" +
         labels(latencies, "y", "bottom") + picture(width, "Latency over time", content) +
         labels(times, "x", "left") + "</div>" + lanes + "</figure>";
}

}  // namespace uiw::tool
