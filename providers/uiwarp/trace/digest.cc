// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace/digest.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

namespace uiw::trace {
namespace {

bool has_succeeded(const Request& request) {
  return request.outcome == Outcome::kCompleted && request.status == IBV_WC_SUCCESS;
}
bool is_done(const Request& request) {
  return request.outcome == Outcome::kUnsignaled || has_succeeded(request);
}
bool has_failed(const Request& request) {
  return request.outcome == Outcome::kCompleted && request.status != IBV_WC_SUCCESS;
}
bool is_flushed(const Request& request) {
  return has_failed(request) && request.status == IBV_WC_WR_FLUSH_ERR;
}

// Wraps around with the numbers of a spoilt file.
uint64_t between(int64_t from, int64_t to) {
  return static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
}

// 1, 2 or 5 times a power of ten: the least that is not below `least`.
uint64_t round_step(uint64_t least) {
  uint64_t power = 1;
  while (power < least / 10) power *= 10;
  for (const uint64_t step : {power, 2 * power, 5 * power, 10 * power})
    if (step >= least) return step;
  return 20 * power;
}

Bins bins_of(const History& history) {
  Bins bins;
  int64_t first = INT64_MAX, last = INT64_MIN;
  const auto see = [&](int64_t time) {
    first = std::min(first, time);
    last = std::max(last, time);
  };
  for (const Request& request : history.requests) {
    // Receives may be posted long before anything happens.
    if (!request.is_receive) see(request.posted);
    if (request.outcome != Outcome::kOpen) see(request.completed);
  }
  if (first > last) return bins;
  // Of few requests a bin holds some, so that a rate is one.
  const size_t most = std::clamp(history.requests.size() / 8, kLeastBins, kMostBins);
  const uint64_t step = round_step(between(first, last) / (most - 2) + 1);
  bins.width = static_cast<int64_t>(std::min<uint64_t>(step, INT64_MAX));
  bins.from = first >= 0 ? first - first % bins.width : first;
  bins.count = between(bins.from, last) / static_cast<uint64_t>(bins.width) + 1;
  bins.count = std::min(bins.count, kMostBins);
  return bins;
}

// Widened to 1, 2 or 5 times a power of ten, and to a factor of 4 at least.
class Extent {
 public:
  void add(int64_t nanoseconds) {
    const double value = std::max<double>(1, static_cast<double>(nanoseconds));
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  LogAxis axis() const {
    if (low_ > high_) return {};
    LogAxis axis{rounded(low_, false), rounded(high_, true)};
    while (axis.high / axis.low < 4) axis.high = rounded(axis.high * 1.01, true);
    return axis;
  }

 private:
  static double rounded(double value, bool up) {
    const double power = std::pow(10, std::floor(std::log10(value)));
    double best = power;
    for (const double step : {power, 2 * power, 5 * power, 10 * power}) {
      if (up && step >= value) return step;
      if (step <= value) best = step;
    }
    return best;
  }
  double low_ = INFINITY, high_ = 0;
};

size_t bin_of(const LogAxis& axis, int64_t nanoseconds, size_t bins) {
  const double place = axis.place(static_cast<double>(nanoseconds));
  return std::min(bins - 1, static_cast<size_t>(place * static_cast<double>(bins)));
}

void count(Sums& sums, const Request& request) {
  ++sums.requests;
  sums.succeeded += has_succeeded(request);
  sums.failed += has_failed(request) && !is_flushed(request);
  sums.flushed += is_flushed(request);
  sums.unsignaled += request.outcome == Outcome::kUnsignaled;
  sums.open += request.outcome == Outcome::kOpen;
  if (is_done(request)) sums.bytes += request.bytes;
}

// Those that are first by `before`, in that order.
template <class T, class Before>
void keep(Most<T>& most, size_t limit, Before before) {
  most.all = most.shown.size();
  const size_t kept = std::min(limit, most.shown.size());
  std::partial_sort(most.shown.begin(), most.shown.begin() + static_cast<ptrdiff_t>(kept),
                    most.shown.end(), before);
  most.shown.resize(kept);
  most.shown.shrink_to_fit();
}

void find_sums(const History& history, Digest& out) {
  std::vector<Traffic>& traffic = out.queue_pairs.shown;
  for (size_t i = 0; i < history.queue_pairs.size(); ++i) traffic.push_back({i, {}, {}});
  std::map<std::tuple<size_t, uint8_t, bool>, size_t> places;
  std::vector<Series>& series = out.series.shown;
  for (const Request& request : history.requests) {
    count(out.sums, request);
    if (request.queue_pair != kNobody) {
      Traffic& its = traffic[request.queue_pair];
      count(request.is_receive ? its.receives : its.sends, request);
    }
    const auto [found, is_new] = places.try_emplace(
        {request.process, request.opcode, request.is_receive}, out.series.shown.size());
    if (is_new) series.push_back({request.process, request.opcode, request.is_receive, {}, {}, {}});
    count(series[found->second].sums, request);
    out.last = std::max({out.last, request.posted, request.completed});
  }
  for (const Event& event : history.events) out.last = std::max(out.last, event.time);
  keep(out.queue_pairs, kMostRows, [](const Traffic& a, const Traffic& b) {
    const uint64_t of_a = a.sends.requests + a.receives.requests;
    const uint64_t of_b = b.sends.requests + b.receives.requests;
    return of_a != of_b ? of_a > of_b : a.queue_pair < b.queue_pair;
  });
  std::erase_if(series,
                [](const Series& one) { return one.sums.succeeded + one.sums.unsignaled == 0; });
  keep(out.series, kMostSeries, [](const Series& a, const Series& b) {
    return std::tuple(~a.sums.bytes, a.process, a.is_receive, a.opcode) <
           std::tuple(~b.sums.bytes, b.process, b.is_receive, b.opcode);
  });
}

void fill_series(const History& history, Digest& out) {
  std::map<std::tuple<size_t, uint8_t, bool>, Series*> places;
  for (Series& series : out.series.shown) {
    series.requests.assign(out.bins.count, 0);
    series.bytes.assign(out.bins.count, 0);
    places[{series.process, series.opcode, series.is_receive}] = &series;
  }
  for (const Request& request : history.requests) {
    const size_t bin = is_done(request) ? out.bins.of(request.completed) : kNobody;
    const auto found = places.find({request.process, request.opcode, request.is_receive});
    if (bin == kNobody || found == places.end()) continue;
    ++found->second->requests[bin];
    found->second->bytes[bin] += request.bytes;
  }
}

// A sum of one queue pair says nothing new.
std::vector<Percentiles> all_percentiles(const History& history) {
  std::vector<Percentiles> rows = percentiles(history);
  for (const Percentiles& sum : percentiles(history, By::kProcess)) {
    const bool is_of_one = std::ranges::any_of(rows, [&](const Percentiles& row) {
      return row.queue_pair != kNobody && row.process == sum.process && row.opcode == sum.opcode &&
             row.is_receive == sum.is_receive && row.count == sum.count;
    });
    if (!is_of_one) rows.push_back(sum);
  }
  return rows;
}

void find_latencies(const History& history, Digest& out) {
  // Sums first.
  const auto key_of = [](const Percentiles& row) {
    return std::tuple(row.process, row.queue_pair + 1, row.is_receive, row.opcode);
  };
  std::vector<Percentiles>& rows = out.percentiles.shown;
  rows = all_percentiles(history);
  keep(out.percentiles, kMostRows, [&](const Percentiles& a, const Percentiles& b) {
    return a.count != b.count ? a.count > b.count : key_of(a) < key_of(b);
  });
  for (size_t i = 0; i < std::min(rows.size(), kMostHistograms); ++i)
    out.histograms.push_back({rows[i], {}, {}});
  std::ranges::sort(rows, {}, key_of);
  std::ranges::sort(out.histograms, {}, [&](const Histogram& one) {
    return std::tuple(one.of.is_receive, one.of.opcode, key_of(one.of));
  });

  using Key = std::tuple<size_t, size_t, bool, uint8_t>;
  std::map<Key, Histogram*> places;
  for (Histogram& one : out.histograms)
    places[{one.of.process, one.of.queue_pair, one.of.is_receive, one.of.opcode}] = &one;
  std::map<std::pair<bool, uint8_t>, Extent> extents;
  const auto each = [&](auto visit) {
    for (const Request& request : history.requests) {
      if (!has_succeeded(request)) continue;
      for (const size_t queue_pair : {request.queue_pair, kNobody}) {
        const auto found =
            places.find({request.process, queue_pair, request.is_receive, request.opcode});
        if (found != places.end()) visit(request, *found->second);
      }
    }
  };
  each([&](const Request& request, Histogram&) {
    extents[{request.is_receive, request.opcode}].add(request.latency());
  });
  for (Histogram& histogram : out.histograms)
    histogram.axis = extents[{histogram.of.is_receive, histogram.of.opcode}].axis();
  each([&](const Request& request, Histogram& histogram) {
    ++histogram.counts[bin_of(histogram.axis, request.latency(), kHistogramBins)];
  });
}

void find_heat(const History& history, Digest& out) {
  const auto is_shown = [&](const Request& request) {
    return has_succeeded(request) && request.is_receive == out.heat_of_receives;
  };
  out.heat_of_receives = std::ranges::none_of(history.requests, is_shown);
  Extent extent;
  for (const Request& request : history.requests)
    if (is_shown(request)) extent.add(request.latency());
  out.heat_axis = extent.axis();
  out.heat.resize(out.bins.count);
  for (auto* lane : {&out.failures, &out.flushes, &out.waits, &out.refusals})
    lane->assign(out.bins.count, 0);
  const auto mark = [&](std::vector<uint64_t>& lane, int64_t time) {
    if (const size_t bin = out.bins.of(time); bin != kNobody) ++lane[bin];
  };
  for (const Request& request : history.requests) {
    const size_t bin = is_shown(request) ? out.bins.of(request.completed) : kNobody;
    if (bin != kNobody) ++out.heat[bin][bin_of(out.heat_axis, request.latency(), kHeatRows)];
    if (has_failed(request))
      mark(is_flushed(request) ? out.flushes : out.failures, request.completed);
  }
  for (const Event& event : history.events) {
    if (event.record.kind == Kind::kAwaited) mark(out.waits, event.time);
    if (event.record.kind == Kind::kRefused || event.record.kind == Kind::kPeerRefused)
      mark(out.refusals, event.time);
  }
}

void find_requests(const History& history, Digest& out) {
  const std::vector<Request>& requests = history.requests;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (has_succeeded(requests[i]) && requests[i].is_receive == out.heat_of_receives)
      out.slowest.shown.push_back(i);
    if (has_failed(requests[i])) out.failed.shown.push_back(i);
  }
  keep(out.slowest, kMostRequests, [&](size_t a, size_t b) {
    return std::tuple(requests[b].latency(), a) < std::tuple(requests[a].latency(), b);
  });
  keep(out.failed, kMostRequests, [&](size_t a, size_t b) {
    const auto key = [&](size_t i) {
      return std::tuple(is_flushed(requests[i]), requests[i].completed, i);
    };
    return key(a) < key(b);
  });
}

void find_events(const History& history, Digest& out) {
  const std::vector<Event>& events = history.events;
  uint64_t sum = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].record.kind != Kind::kAwaited) {
      out.events.shown.push_back(i);
      continue;
    }
    out.awaited.shown.push_back(i);
    sum += events[i].record.work.bytes;
    out.awaited_in_vain += (events[i].record.flags & kInVain) != 0;
  }
  out.awaited_sum = static_cast<int64_t>(sum);
  keep(out.awaited, kMostRequests, [&](size_t a, size_t b) {
    return std::tuple(~events[a].record.work.bytes, a) <
           std::tuple(~events[b].record.work.bytes, b);
  });
  std::vector<size_t>& shown = out.events.shown;
  out.events.all = shown.size();
  if (shown.size() > kMostEvents)
    shown.erase(shown.begin() + kMostEvents / 2, shown.end() - kMostEvents / 2);
}

}  // namespace

size_t Bins::of(int64_t time) const {
  if (time < from) return kNobody;
  const uint64_t bin = between(from, time) / static_cast<uint64_t>(width);
  return bin < count ? bin : kNobody;
}

double LogAxis::place(double nanoseconds) const {
  const double place = std::log(std::max(nanoseconds, 1.0) / low) / std::log(high / low);
  return std::clamp(place, 0.0, 1.0);
}

Digest digest(const History& history) {
  Digest out;
  out.bins = bins_of(history);
  find_sums(history, out);
  fill_series(history, out);
  find_latencies(history, out);
  find_heat(history, out);
  find_requests(history, out);
  find_events(history, out);
  return out;
}

}  // namespace uiw::trace
