// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace/history.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>

#include "trace/timeline.h"

namespace uiw::trace {
namespace {

// Requests of one queue that have not completed. Each is taken up once and let go once, so that no
// file makes this slow.
class Outstanding {
 public:
  explicit Outstanding(std::vector<Request>& requests) : requests_(requests) {}

  void add(size_t index) {
    order_.push_back(index);
    by_id_[key(requests_[index])].push_back(index);
  }

  // Nothing has been posted to this send queue before.
  void begin() { place_ = 0; }

  // Which one this completion is of. One that succeeded is that of the oldest with its wr_id that
  // has asked for it. One that failed may be anybody's with its wr_id: where both are known, its
  // place and that of the completion before it say whose, otherwise the oldest is taken for it.
  std::optional<size_t> find(const Work& completion, bool success) {
    const auto signaled = front({completion.wr_id, true});
    std::optional<size_t> found = signaled;
    if (!success) {
      const auto silent = front({completion.wr_id, false});
      if (!signaled || (silent && *silent < *signaled)) found = silent;
      if (const auto told = at_place(completion)) found = told;
    }
    before_.reset();
    if (success && place_ && completion.place) before_ = completion.place - *place_ - 1;
    place_.reset();
    if (found && completion.place) place_ = completion.place;
    return found;
  }

  // Those before it are over, too. Of two threads that post at once the one that began first may
  // have come second. Where there are more before it than the places of the completions tell, those
  // that have a completion of their own are not over yet.
  template <class Visit>
  void complete_up_to(size_t index, Visit visit) {
    constexpr size_t kMostPosters = 64;  // of one queue pair at once
    const auto end = std::ranges::upper_bound(order_, index);
    const bool some_come_later = before_ && end - order_.begin() > int64_t{*before_} + 1;
    std::vector<size_t> later;
    while (!order_.empty() && order_.front() <= index) {
      const size_t oldest = order_.front();
      order_.pop_front();
      const Request& request = requests_[oldest];
      if (some_come_later && request.signaled && request.outcome == Outcome::kOpen &&
          later.size() < kMostPosters) {
        later.push_back(oldest);
        continue;
      }
      forget(oldest);
      if (request.outcome == Outcome::kOpen) visit(oldest);
    }
    order_.insert(order_.begin(), later.begin(), later.end());
  }

  // It alone: receives of a shared queue complete in any order.
  void forget(size_t index) {
    const auto found = by_id_.find(key(requests_[index]));
    if (found == by_id_.end() || found->second.empty() || found->second.front() != index) return;
    found->second.pop_front();
    if (found->second.empty()) by_id_.erase(found);
  }

 private:
  std::optional<size_t> at_place(const Work& completion) const {
    if (!place_ || !completion.place) return {};
    const uint32_t between = completion.place - *place_ - 1;  // those had no completion
    if (between >= order_.size() || requests_[order_[between]].wr_id != completion.wr_id) return {};
    return order_[between];
  }

  using Key = std::pair<uint64_t, bool>;  // wr_id, signaled
  static Key key(const Request& request) { return {request.wr_id, request.signaled}; }

  std::optional<size_t> front(Key wanted) const {
    const auto found = by_id_.find(wanted);
    if (found == by_id_.end() || found->second.empty()) return {};
    return found->second.front();
  }

  std::vector<Request>& requests_;
  std::deque<size_t> order_;
  std::optional<uint32_t> place_;   // of the last completion, behind which order_ begins
  std::optional<uint32_t> before_;  // how many between it and the one before it had no completion
  std::map<Key, std::deque<size_t>> by_id_;
};

class Builder {
 public:
  explicit Builder(std::vector<Snapshot> snapshots) : timeline_(snapshots) {
    history_.processes = std::move(snapshots);
  }

  History build() {
    history_.began = first_time();
    for (process_ = 0; process_ < history_.processes.size(); ++process_) {
      numbers_.clear();
      sends_.clear();
      receives_.clear();
      for (const Record& record : history_.processes[process_].records) take(record);
      std::vector<Record>().swap(history_.processes[process_].records);
    }
    find_peers();
    std::ranges::stable_sort(history_.requests, {}, &Request::posted);
    std::ranges::stable_sort(history_.events, {}, &Event::time);
    return std::move(history_);
  }

 private:
  int64_t first_time() const {
    int64_t first = INT64_MAX;
    for (const Snapshot& snapshot : history_.processes)
      if (!snapshot.records.empty())
        first = std::min(first, timeline_.real(snapshot, snapshot.records.front().time));
    return first == INT64_MAX ? 0 : first;
  }

  int64_t since_began(int64_t time) const {
    return static_cast<int64_t>(
        static_cast<uint64_t>(timeline_.real(history_.processes[process_], time)) -
        static_cast<uint64_t>(history_.began));
  }

  size_t queue_pair(uint32_t number) {
    const auto [found, is_new] = numbers_.try_emplace(number, history_.queue_pairs.size());
    if (is_new) history_.queue_pairs.push_back({.process = process_, .number = number});
    return found->second;
  }

  void take(const Record& record) {
    switch (record.kind) {
      case Kind::kSend:
      case Kind::kReceive:
        return post(record);
      case Kind::kCompletion:
        return complete(record);
      case Kind::kCreated: {
        numbers_.erase(record.qp);
        QueuePair& made = history_.queue_pairs[queue_pair(record.qp)];
        made.type = record.opcode;
        made.queue = record.work.queue;
        begin_anew(record.qp);
        break;
      }
      case Kind::kState:
        if (record.opcode == IBV_QPS_RESET) begin_anew(record.qp);
        break;
      case Kind::kSharedGone:
        receives_.erase({record.work.queue, kNobody});
        return;
      case Kind::kDropped:
        return drop(record);
      case Kind::kConnected:
        connect(record);
        break;
      case Kind::kStands:
        return connect(record);
      case Kind::kAgreed:
      case Kind::kFpdu:
      case Kind::kFpduRest:
        return;  // wire.h
      default:
        break;
    }
    const bool is_of_qp = record.qp != 0 && record.kind != Kind::kCmEvent;
    history_.events.push_back({.queue_pair = is_of_qp ? queue_pair(record.qp) : kNobody,
                               .process = process_,
                               .time = since_began(record.time),
                               .record = record});
  }

  void connect(const Record& record) {
    QueuePair& qp = history_.queue_pairs[queue_pair(record.qp)];
    qp.is_connected = true;
    qp.addresses = record.addresses;
  }

  Outstanding& outstanding(std::map<std::pair<uint64_t, size_t>, Outstanding>& from, uint64_t queue,
                           size_t qp) {
    return from.try_emplace({queue, qp}, history_.requests).first->second;
  }

  // What was posted to it before has no completion any more.
  void begin_anew(uint32_t number) {
    const size_t qp = queue_pair(number);
    receives_.erase({0, qp});
    sends_.erase({0, qp});
    outstanding(sends_, 0, qp).begin();
  }

  void post(const Record& record) {
    const bool is_receive = record.kind == Kind::kReceive;
    const bool is_shared = is_receive && record.work.queue != 0;
    const size_t qp = is_shared ? kNobody : queue_pair(record.qp);
    history_.requests.push_back({.queue_pair = qp,
                                 .process = process_,
                                 .posted = since_began(record.time),
                                 .wr_id = record.work.wr_id,
                                 .bytes = record.work.bytes,
                                 .opcode = record.opcode,
                                 .is_receive = is_receive,
                                 .signaled = (record.flags & kSignaled) != 0});
    outstanding(is_receive ? receives_ : sends_, is_shared ? record.work.queue : 0, qp)
        .add(history_.requests.size() - 1);
  }

  void complete(const Record& record) {
    const bool is_receive = record.flags & kHasReceived, success = record.status == 0;
    const size_t qp = queue_pair(record.qp);
    const uint64_t shared = is_receive ? history_.queue_pairs[qp].queue : 0;
    Outstanding& queue =
        outstanding(is_receive ? receives_ : sends_, shared, shared ? kNobody : qp);
    const std::optional<size_t> found = queue.find(record.work, success);
    if (!found) {
      ++history_.unmatched;
      return;
    }
    const int64_t time = since_began(record.time);
    Request& request = history_.requests[*found];
    request.outcome = Outcome::kCompleted;
    request.completed = time;
    request.status = record.status;
    request.vendor_err = record.work.vendor_err;
    request.queue_pair = qp;
    if (is_receive && success) request.bytes = record.work.bytes;
    if (is_receive) return queue.forget(*found);
    queue.complete_up_to(*found, [&](size_t before) {
      history_.requests[before].outcome = Outcome::kUnsignaled;
      history_.requests[before].completed = time;
    });
  }

  // It stays open, and the next completion with its wr_id is another one's. Those of a queue pair's
  // own queue are forgotten all together: begin_anew().
  void drop(const Record& record) {
    const size_t qp = queue_pair(record.qp);
    const uint64_t shared = history_.queue_pairs[qp].queue;
    if (shared == 0) return;
    Outstanding& queue = outstanding(receives_, shared, kNobody);
    const std::optional<size_t> found = queue.find(record.work, true);
    if (!found) return;
    history_.requests[*found].queue_pair = qp;
    queue.forget(*found);
  }

  void find_peers() {
    using Ends = std::pair<std::string, std::string>;
    const auto end = [](const uint8_t(&address)[16], uint16_t port) {
      return std::string(reinterpret_cast<const char*>(address), sizeof address) +
             static_cast<char>(port >> 8) + static_cast<char>(port);
    };
    std::map<Ends, size_t> by_ends;
    for (size_t i = 0; i < history_.queue_pairs.size(); ++i) {
      QueuePair& qp = history_.queue_pairs[i];
      if (!qp.is_connected) continue;
      const Addresses& at = qp.addresses;
      const std::string local = end(at.local, at.local_port), peer = end(at.peer, at.peer_port);
      by_ends[{local, peer}] = i;
      const auto found = by_ends.find({peer, local});
      if (found == by_ends.end() || found->second == i) continue;
      qp.peer = found->second;
      history_.queue_pairs[found->second].peer = i;
    }
  }

  History history_;
  const Timeline timeline_;
  size_t process_ = 0;
  // Of the process that is being looked at.
  std::unordered_map<uint32_t, size_t> numbers_;
  std::map<std::pair<uint64_t, size_t>, Outstanding> sends_, receives_;
};

}  // namespace

History build(std::vector<Snapshot> snapshots) {
  return Builder(std::move(snapshots)).build();
}

std::vector<Percentiles> percentiles(const History& history, By by) {
  using Key = std::tuple<size_t, bool, uint8_t>;
  struct Group {
    std::vector<int64_t> latencies;
    uint64_t bytes = 0;
  };
  std::map<Key, Group> groups;
  for (const Request& request : history.requests) {
    if (request.outcome != Outcome::kCompleted || request.status != 0) continue;
    const size_t of = by == By::kProcess ? request.process : request.queue_pair;
    Group& group = groups[{of, request.is_receive, request.opcode}];
    group.latencies.push_back(request.latency());
    group.bytes += request.bytes;
  }
  std::vector<Percentiles> out;
  for (auto& [key, group] : groups) {
    std::vector<int64_t>& all = group.latencies;
    std::sort(all.begin(), all.end());
    // The least that so many thousandths are not above.
    const auto at = [&](size_t thousandths) {
      return all[std::min(all.size() - 1, (all.size() * thousandths + 999) / 1000 - 1)];
    };
    const size_t of = std::get<0>(key);
    out.push_back({.process = by == By::kProcess ? of : history.queue_pairs[of].process,
                   .queue_pair = by == By::kProcess ? kNobody : of,
                   .opcode = std::get<2>(key),
                   .is_receive = std::get<1>(key),
                   .count = all.size(),
                   .bytes = group.bytes,
                   .p50 = at(500),
                   .p90 = at(900),
                   .p99 = at(990),
                   .p999 = at(999),
                   .most = all.back()});
  }
  return out;
}

}  // namespace uiw::trace
