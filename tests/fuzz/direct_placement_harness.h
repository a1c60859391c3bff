// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Large messages without CRC, with a right length hint, a wrong one or none, cut in any way,
// and placed directly or fed, in any pieces. Whatever comes, nothing is written but where
// the peer has named something or sent a hint of it, or where the program has posted something.
// First octet: how much is posted. Then segments of three octets each; from a zero octet on,
// pieces.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "ddp/header.h"
#include "fuzz/check.h"
#include "mpa/framing.h"
#include "qp/connection.h"
#include "qp/peer_hints.h"
#include "support/direct_placement.h"
#include "support/post.h"
#include "support/wiring.h"

namespace uiw::test {

class DirectPlacementHarness {
 public:
  static void run(const uint8_t* data, size_t size) {
    if (size == 0) return;
    DirectPlacementHarness harness(data[0]);
    size_t at = 1;
    for (; at + 3 <= size && data[at] != 0 && harness.stream_.size() < kMostOctets; at += 3)
      harness.add(data[at], data[at + 1], data[at + 2]);
    harness.deliver({data + std::min(at + 1, size), size - std::min(at + 1, size)});
    for (Area* area : {&harness.target_, &harness.inbox_, &harness.sink_}) area->check();
  }

 private:
  static constexpr uint32_t kPd = 7;
  static constexpr size_t kArea = 60000, kMostOctets = 200000;
  static constexpr uint32_t kPosted = 19980;  // octets of a receive or Read
  static constexpr uint8_t kUntouched = 0xee, kPayload = 0x55;
  static constexpr uint32_t kSizes[] = {0, 1, 5000, 8191, 8192, 9001, 9500, 18000};

  struct Area {
    Area(mem::Table& table, uint32_t access)
        : octets(new uint8_t[kArea]),  // its own, so that a sanitizer sees what goes beyond
          stag(*table.add(kPd, octets.get(), start(), kArea, access, 100)) {
      std::memset(octets.get(), kUntouched, kArea);
    }
    uint64_t start() const { return reinterpret_cast<uint64_t>(octets.get()); }
    void allow(uint64_t at, uint64_t size) {
      if (at < kArea) allowed.push_back({at, std::min(size, kArea - at)});
    }
    void check() {
      for (const auto& [at, size] : allowed) std::memset(octets.get() + at, kUntouched, size);
      CHECK(octets[0] == kUntouched);
      CHECK(std::memcmp(octets.get(), octets.get() + 1, kArea - 1) == 0);
    }
    std::unique_ptr<uint8_t[]> octets;
    uint32_t stag;
    std::vector<std::pair<uint64_t, uint64_t>> allowed;  // from, so many octets
  };

  explicit DirectPlacementHarness(uint8_t posts)
      : sends_(qp::SendQueue::create(8, 4, 0)),
        receives_(queue::ReceiveQueue::create(8, 4)),
        send_cq_(queue::CompletionQueue::create(64, nullptr)),
        recv_cq_(queue::CompletionQueue::create(64, nullptr)),
        target_(memory_, mem::kLocalWrite | mem::kRemoteWrite),
        inbox_(memory_, mem::kLocalWrite),
        sink_(memory_, mem::kLocalWrite) {
    qp::Shared& shared = connection_.shared;
    sources_ = wire(shared, 42, kPd, memory_, *sends_, *receives_, *send_cq_, *recv_cq_);
    shared.long_fpdus = true;
    mpa::Agreement agreement;
    agreement.crc = false;
    agreement.initiator = true;
    agreement.ird = agreement.ord = 3;
    CHECK(connection_.start(agreement, 65483, {99, 0}, posts & 0x80));
    for (unsigned i = 0; i < (posts & 3u); ++i) receive(i, posts & 4);
    for (unsigned i = 0; i < (posts >> 4 & 3u); ++i) read(i, posts & 8);
    qp::Tx& tx = connection_.tx;
    while (tx.fill()) {
      size_t octets = 0;
      for (const iovec& piece : tx.pieces()) octets += piece.iov_len;
      tx.consume(octets);
    }
  }

  // Up to three of kPosted octets, in one piece or in two.
  static uint64_t offset_of(unsigned number) { return number * 20000 + 10; }
  static std::vector<ibv_sge> place_of(const Area& area, unsigned number, bool two) {
    const uint64_t start = area.start() + offset_of(number);
    if (!two) return {{start, kPosted, area.stag}};
    return {{start, 9000, area.stag}, {start + 9000, kPosted - 9000, area.stag}};
  }
  void receive(unsigned number, bool two) {
    std::vector<ibv_sge> sges = place_of(inbox_, number, two);
    ibv_recv_wr wr{};
    wr.sg_list = sges.data();
    wr.num_sge = static_cast<int>(sges.size());
    CHECK(test::post(*receives_, wr) == 0);
    inbox_.allow(offset_of(number), kPosted);
  }
  void read(unsigned number, bool two) {
    std::vector<ibv_sge> sges = place_of(sink_, number, two);
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_RDMA_READ;
    wr.sg_list = sges.data();
    wr.num_sge = static_cast<int>(sges.size());
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = 0x5000;
    wr.wr.rdma.rkey = 0x77;
    CHECK(test::post(*sends_, wr) == 0);
    sink_.allow(offset_of(number), kPosted);
  }

  // `what`: kind in its low bits, whether it is the last segment, whether it goes on where the
  // message was. `how`: its size. `where`: where it begins otherwise.
  void add(uint8_t what, uint8_t how, uint8_t where) {
    const uint32_t size = how & 0x80 ? segment_ : kSizes[how & 7];
    const bool last = what & 0x10, continues = what & 0x20;
    switch (what & 3) {
      case 0: {  // a length hint, which ends a Write as any other would
        writing_ = false;
        segment_ = how & 0x40 ? kSizes[where & 7] : size;
        hinted_ = how & 0x20 ? 0xffffffffu : segment_ * (where >> 4) + (where & 0xf);
        return append(ddp::TaggedHeader{true, rdmap::control(rdmap::Opcode::kWrite), segment_,
                                        qp::length_hint_offset({hinted_, segment_})},
                      0);
      }
      case 1: {  // a Write
        const uint64_t at = continues ? write_at_ : where * 240u;
        if (at + size <= kArea) target_.allow(at, size);
        // Also as much as its hint said.
        if (!writing_ && size > 0) target_.allow(at, std::exchange(hinted_, 0));
        writing_ = !last;
        write_at_ = at + size;
        return append(ddp::TaggedHeader{last, rdmap::control(rdmap::Opcode::kWrite), target_.stag,
                                        target_.start() + at},
                      size);
      }
      case 2: {  // a Send
        const uint32_t msn = msn_, at = continues ? send_at_ : where;
        send_at_ = last ? 0 : send_at_ + size;
        msn_ += last;
        return append(ddp::UntaggedHeader{last, rdmap::control(rdmap::Opcode::kSend), 0,
                                          ddp::kQnSend, msn, at},
                      size);
      }
      default: {  // the answer to a Read
        const uint64_t slot = sends_->retired() + answered_;
        const uint32_t sink = sends_->slot(slot).cookie;
        const uint64_t at = continues ? answer_at_ : where;
        const bool whole = answer_at_ + size >= kPosted || last;
        const auto part = static_cast<uint32_t>(std::min<uint64_t>(size, kPosted - answer_at_));
        const bool right = how & 0x10;
        answer_at_ = whole ? 0 : answer_at_ + size;
        answered_ += whole;
        return append(
            ddp::TaggedHeader{whole, rdmap::control(rdmap::Opcode::kReadResponse), sink, at},
            right ? part : size);
      }
    }
  }
  template <class Header>
  void append(const Header& header, uint32_t payload) {
    uint8_t octets[ddp::kUntaggedHeaderSize];
    uint8_t* const end = ddp::encode(octets, header);
    const auto ulpdu = static_cast<uint32_t>(end - octets) + payload;
    stream_.push_back(static_cast<uint8_t>(ulpdu >> 8));
    stream_.push_back(static_cast<uint8_t>(ulpdu));
    stream_.insert(stream_.end(), &octets[0], end);
    stream_.resize(stream_.size() + payload, kPayload);
    stream_.resize(stream_.size() + mpa::pad_size(ulpdu) + mpa::kCrcSize);
  }

  // In pieces, each received to where it belongs or fed.
  void deliver(core::Bytes pieces) {
    static constexpr size_t kPieces[] = {1, 7, 20, 34, 1000, 9060, 30000, ~size_t{0}};
    core::Bytes left = stream_;
    qp::Rx& rx = connection_.rx;
    qp::RxStatus status = qp::RxStatus::kOk;
    while (!left.empty() && status == qp::RxStatus::kOk) {
      const uint8_t piece = pieces.empty() ? 0x0f : pieces[0];
      if (!pieces.empty()) pieces = pieces.subspan(1);
      const size_t size = std::min(
          kPieces[piece & 7] - std::min<size_t>(piece >> 4, kPieces[piece & 7] - 1), left.size());
      status = piece & 8 ? receive_directly(rx, left.first(size)) : rx.on_octets(left.first(size));
      left = left.subspan(size);
    }
    if (status == qp::RxStatus::kWantReceive) CHECK(rx.give_up_waiting() == qp::RxStatus::kFault);
  }

  mem::Table memory_;
  std::unique_ptr<qp::SendQueue> sends_;
  std::unique_ptr<queue::ReceiveQueue> receives_;
  std::unique_ptr<Sources> sources_;
  std::unique_ptr<queue::CompletionQueue> send_cq_, recv_cq_;
  Area target_, inbox_, sink_;
  qp::Connection connection_;
  std::vector<uint8_t> stream_;
  uint32_t segment_ = 9000, hinted_ = 0;
  uint64_t write_at_ = 0, answer_at_ = 0, answered_ = 0;
  uint32_t send_at_ = 0, msn_ = 1;
  bool writing_ = false;
};

}  // namespace uiw::test
