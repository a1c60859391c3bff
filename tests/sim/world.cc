// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "sim/world.h"

namespace uiw::test {

End::End(mem::Table& its_memory, uint32_t its_qp_num, const EndOptions& its_options)
    : memory(its_memory),
      qp_num(its_qp_num),
      options(its_options),
      send_cq(queue::CompletionQueue::create(8192, nullptr)),
      recv_cq(queue::CompletionQueue::create(8192, nullptr)) {}

void End::collect_locked() {
  ibv_wc wc[16];
  for (int count; (count = send_cq->poll(16, wc)) > 0;) sent_.insert(sent_.end(), wc, wc + count);
  while (recv_cq->poll(1, wc) > 0) {
    received_.push_back(wc[0]);
    if (on_received) on_received(received_.size() - 1);
  }
}

void End::collect() {
  const std::lock_guard guard(mutex_);
  collect_locked();
}

std::vector<ibv_wc> End::sent() {
  const std::lock_guard guard(mutex_);
  collect_locked();
  return sent_;
}

std::vector<ibv_wc> End::received() {
  const std::lock_guard guard(mutex_);
  collect_locked();
  return received_;
}

std::vector<Notice> End::notices() {
  const std::lock_guard guard(mutex_);
  return notices_;
}

size_t End::sent_count() {
  const std::lock_guard guard(mutex_);
  collect_locked();
  return sent_.size();
}

size_t End::received_count() {
  const std::lock_guard guard(mutex_);
  collect_locked();
  return received_.size();
}

bool End::ended() {
  return end_error().has_value();
}

std::optional<int> End::end_error() {
  for (const Notice& notice : notices())
    if (notice.kind == Notice::kEnded) return notice.error;
  return std::nullopt;
}

std::vector<ibv_event_type> End::async_events() {
  std::vector<ibv_event_type> out;
  for (const Notice& notice : notices())
    if (notice.kind == Notice::kAsync) out.push_back(notice.event);
  return out;
}

void End::notice(Notice notice) {
  const std::lock_guard guard(mutex_);
  if (notice.kind != Notice::kFirstFpdu) collect_locked();  // tests may be polling themselves
  notice.completions = sent_.size() + received_.size();
  notices_.push_back(notice);
}

void apply(const Medium& medium, EndOptions& first, EndOptions& second) {
  first.crc = second.crc = medium.crc;
  first.rx_markers = second.tx_markers = medium.markers_to_first;
  first.tx_markers = second.rx_markers = medium.markers_to_second;
}

mpa::Agreement agreement_of(const EndOptions& options, bool initiator) {
  mpa::Agreement agreement;
  agreement.initiator = initiator;
  agreement.crc = options.crc;
  agreement.tx_markers = options.tx_markers;
  agreement.rx_markers = options.rx_markers;
  agreement.rtr = options.rtr;
  agreement.ird = options.ird;
  agreement.ord = options.ord;
  return agreement;
}

void PrintTo(const Medium& medium, std::ostream* out) {
  *out << medium.name;
}

}  // namespace uiw::test
