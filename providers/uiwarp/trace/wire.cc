// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace/wire.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <unordered_map>

#include "trace/timeline.h"

namespace uiw::trace {
namespace {

// One end of a connection, as its process has recorded it.
struct End {
  size_t process;
  uint32_t qp;
  Addresses addresses;
  const Record* agreed = nullptr;
  bool has_orphans = false;  // FPDUs before it was told again are its own
  std::vector<WireFpdu> sent{}, received{};

  bool is_initiator() const { return (agreed->flags & kInitiator) != 0; }
};

// The connection's name, the initiator first.
using Key = std::pair<std::string, std::string>;

std::string socket_name(const uint8_t (&address)[16], uint16_t port) {
  return std::string(reinterpret_cast<const char*>(address), sizeof address) +
         static_cast<char>(port >> 8) + static_cast<char>(port);
}

Key key_of(const End& end) {
  const Addresses& at = end.addresses;
  Key key{socket_name(at.local, at.local_port), socket_name(at.peer, at.peer_port)};
  if (!end.is_initiator()) key.first.swap(key.second);
  return key;
}

class Reader {
 public:
  explicit Reader(std::span<const Snapshot> snapshots)
      : snapshots_(snapshots), timeline_(snapshots) {}

  Wire read() {
    for (process_ = 0; process_ < snapshots_.size(); ++process_) {
      current_.clear();
      orphans_.clear();
      for (const Record& record : snapshots_[process_].records) take(record);
      for (const auto& [qp, orphans] : orphans_) lose(orphans);
    }
    join_ends();
    std::ranges::stable_sort(wire_.fpdus, {}, &WireFpdu::time);
    return std::move(wire_);
  }

 private:
  int64_t real(size_t process, int64_t time) const {
    return timeline_.real(snapshots_[process], time);
  }

  void take(const Record& record) {
    switch (record.kind) {
      case Kind::kCreated:
        forget(record.qp);
        return;
      case Kind::kConnected:
        forget(record.qp);
        begin(record, false);
        return;
      case Kind::kStands:
        if (!end_of(record.qp)) begin(record, true);
        return;
      case Kind::kAgreed:
        return take_agreed(record);
      case Kind::kFpdu:
      case Kind::kFpduRest: {
        End* const end = end_of(record.qp);
        if (end && end->agreed)
          take_fpdu(*end, record);
        else
          orphans_[record.qp].push_back(&record);
        return;
      }
      default:
        return;
    }
  }

  void begin(const Record& record, bool has_orphans) {
    current_[record.qp] = ends_.size();
    ends_.push_back({.process = process_,
                     .qp = record.qp,
                     .addresses = record.addresses,
                     .has_orphans = has_orphans});
  }

  void forget(uint32_t qp) {
    current_.erase(qp);
    const auto orphans = orphans_.find(qp);
    if (orphans == orphans_.end()) return;
    lose(orphans->second);
    orphans_.erase(orphans);
  }

  void lose(const std::vector<const Record*>& orphans) {
    for (const Record* const orphan : orphans)
      wire_.unplaced += orphan->kind == Kind::kFpdu ? 1 : 0;
  }

  void take_agreed(const Record& record) {
    End* const end = end_of(record.qp);
    if (!end || end->agreed) return;
    end->agreed = &record;
    const auto orphans = orphans_.find(record.qp);
    if (orphans == orphans_.end() || !end->has_orphans) return;
    for (const Record* const orphan : orphans->second) take_fpdu(*end, *orphan);
    orphans_.erase(orphans);
  }

  void take_fpdu(End& end, const Record& record) {
    std::vector<WireFpdu>& fpdus = record.flags & kSent ? end.sent : end.received;
    if (record.kind == Kind::kFpduRest) {
      if (!fpdus.empty()) fpdus.back().rest = &record;
      return;
    }
    fpdus.push_back({.time = real(process_, record.time),
                     .record = &record,
                     .rest = nullptr,
                     .connection = 0,
                     .by_initiator = ((record.flags & kSent) != 0) == end.is_initiator()});
  }

  End* end_of(uint32_t qp) {
    const auto found = current_.find(qp);
    return found == current_.end() ? nullptr : &ends_[found->second];
  }

  // Where a pair of sockets was used several times, the first end of one is that of the other's.
  void join_ends() {
    std::map<Key, std::pair<std::vector<End*>, std::vector<End*>>> by_key;
    for (End& end : ends_) {
      if (!end.agreed) continue;
      auto& both = by_key[key_of(end)];
      (end.is_initiator() ? both.first : both.second).push_back(&end);
    }
    for (const auto& [key, both] : by_key) {
      const auto& [initiators, responders] = both;
      for (size_t i = 0; i < std::max(initiators.size(), responders.size()); ++i)
        add(i < initiators.size() ? initiators[i] : nullptr,
            i < responders.size() ? responders[i] : nullptr);
    }
  }

  void add(End* initiator, End* responder) {
    // The initiator's Reply time is before all that it sends, and that before what is answered.
    const End& told_by = initiator ? *initiator : *responder;
    wire_.connections.push_back(
        {.addresses = initiator ? told_by.addresses : turned(told_by.addresses),
         .agreed = told_by.agreed->agreed,
         .began = real(told_by.process, told_by.agreed->agreed.began),
         .replied = real(told_by.process, told_by.agreed->agreed.agreed),
         .ends = name_of("initiator", initiator) + name_of("responder", responder)});
    add_direction(initiator ? &initiator->sent : nullptr,
                  responder ? &responder->received : nullptr);
    add_direction(responder ? &responder->sent : nullptr,
                  initiator ? &initiator->received : nullptr);
  }

  std::string name_of(const char* role, const End* end) const {
    if (!end) return {};
    const Snapshot& process = snapshots_[end->process];
    char text[64];
    std::snprintf(text, sizeof text, ": queue pair 0x%06x of process %u, ", end->qp, process.pid);
    return role + (text + process.program) + ". ";
  }

  // What was sent, and what else was received: the record of its sending is lost.
  void add_direction(const std::vector<WireFpdu>* sent, const std::vector<WireFpdu>* received) {
    std::vector<uint64_t> known;
    const auto put = [&](WireFpdu fpdu) {
      fpdu.connection = static_cast<uint32_t>(wire_.connections.size() - 1);
      wire_.fpdus.push_back(fpdu);
    };
    if (sent) {
      for (const WireFpdu& fpdu : *sent) {
        known.push_back(fpdu.position());
        put(fpdu);
      }
    }
    std::ranges::sort(known);
    if (!received) return;
    for (const WireFpdu& fpdu : *received)
      if (!std::ranges::binary_search(known, fpdu.position())) put(fpdu);
  }

  std::span<const Snapshot> snapshots_;
  const Timeline timeline_;
  Wire wire_;
  std::vector<End> ends_;
  size_t process_ = 0;
  // Of this process, by queue pair: which of ends_; FPDUs whose connection is not known yet.
  std::unordered_map<uint32_t, size_t> current_;
  std::unordered_map<uint32_t, std::vector<const Record*>> orphans_;
};

}  // namespace

Addresses turned(const Addresses& from) {
  Addresses to;
  std::memcpy(to.local, from.peer, sizeof to.local);
  std::memcpy(to.peer, from.local, sizeof to.peer);
  to.local_port = from.peer_port;
  to.peer_port = from.local_port;
  return to;
}

uint32_t WireFpdu::head(uint8_t (&to)[kMaxHead]) const {
  const Fpdu& fpdu = record->fpdu;
  std::memset(to, 0, sizeof to);
  std::memcpy(to, fpdu.head, sizeof fpdu.head);
  if (rest) std::memcpy(to + sizeof fpdu.head, rest->rest, sizeof rest->rest);
  return std::min<uint32_t>({record->status, fpdu.ulpdu_size, sizeof to});
}

Wire wire_of(std::span<const Snapshot> snapshots) {
  return Reader(snapshots).read();
}

}  // namespace uiw::trace
