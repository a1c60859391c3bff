// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Octets of a hostile peer against one connection's protocol machine, and what must hold whatever
// they are. For the fuzz target and for a bounded test with seeds.
//
// Input: octet 0 chooses the machine (bit 0 CRC, 1 initiator, 2 waits for receives, 3 frames are
// made here, 4-5 receives posted, 6 markers are received, 7 unreliable service), octet 1 the size
// of the pieces it is fed in, octet 2 what is posted to send. With "frames are made here" the rest
// is a list of (length, ULPDU) records, which get right CRCs and markers, and an STag field of 1 to
// 6 means the writable, the readable, the foreign region, the sink of a Read, the memory window of
// this stream or that of another; otherwise the rest is the stream itself.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "core/be.h"
#include "core/crc32c.h"
#include "fuzz/check.h"
#include "mpa/framing.h"
#include "mpa/markers.h"
#include "qp/connection.h"
#include "support/post.h"
#include "support/wiring.h"

namespace uiw::test {

class StreamHarness {
 public:
  static void run(const uint8_t* data, size_t size) {
    if (size < 3) return;
    StreamHarness harness(data[0], data[2]);
    harness.feed({data + 3, size - 3}, data[0] & 8, data[1]);
    harness.finish();
  }

 private:
  static constexpr uint32_t kPd = 7, kOtherPd = 8, kThisQp = 42, kOtherQp = 43;
  static constexpr size_t kRegion = 256, kGuard = 64;
  static constexpr uint8_t kGuardOctet = 0xa5;

  struct Area {
    Area(mem::Table& table, uint32_t pd, uint32_t access)
        : octets(kRegion + 2 * kGuard, kGuardOctet) {
      std::memset(inside(), 0, kRegion);
      stag = *table.add(pd, inside(), start(), kRegion, access, 100);
    }
    uint8_t* inside() { return octets.data() + kGuard; }
    uint64_t start() const { return 0x1000; }
    bool guarded() const {
      const auto intact = [](uint8_t octet) { return octet == kGuardOctet; };
      return std::all_of(octets.begin(), octets.begin() + kGuard, intact) &&
             std::all_of(octets.end() - kGuard, octets.end(), intact);
    }
    bool untouched() {
      return std::all_of(inside(), inside() + kRegion, [](uint8_t octet) { return octet == 0; });
    }
    std::vector<uint8_t> octets;
    uint32_t stag = 0;
  };

  StreamHarness(uint8_t kind, uint8_t posts)
      : sends_(qp::SendQueue::create(12, 4, 0)),
        receives_(queue::ReceiveQueue::create(8, 4)),
        send_cq_(queue::CompletionQueue::create(64, nullptr)),
        recv_cq_(queue::CompletionQueue::create(64, nullptr)),
        writable_(memory_, kPd, mem::kLocalWrite | mem::kRemoteWrite | mem::kRemoteAtomic),
        readable_(memory_, kPd, mem::kRemoteRead),
        foreign_(memory_, kOtherPd, mem::kLocalWrite | mem::kRemoteWrite | mem::kRemoteRead),
        receive_area_(memory_, kPd, mem::kLocalWrite),
        sink_(memory_, kPd, mem::kLocalWrite),
        lent_(memory_, kPd, mem::kLocalWrite | mem::kMwBind),
        window_(lend(kThisQp, 64)),
        other_window_(lend(kOtherQp, 128)) {
    qp::Shared& shared = connection_.shared;
    sources_ = wire(shared, kThisQp, kPd, memory_, *sends_, *receives_, *send_cq_, *recv_cq_);
    shared.long_fpdus = shared.immediates = true;
    if (kind & 0x80) shared.service = core::Service::kUnreliable;
    sends_->allow(qp::opcodes_of(shared.service, true));
    mpa::Agreement agreement;
    agreement.crc = crc_ = kind & 1;
    agreement.initiator = kind & 2;
    agreement.rx_markers = markers_ = kind & 0x40;
    agreement.ird = agreement.ord = 3;
    CHECK(connection_.start(agreement, posts & 0x40 ? 1460 : 100, {99, 0}, kind & 4));
    // Receives of 128 octets in three pieces, the middle one empty.
    for (receives_posted_ = 0; receives_posted_ < (kind >> 4 & 3u); ++receives_posted_) {
      ibv_sge list[] = {{receive_area_.start(), 50, receive_area_.stag},
                        {0, 0, 0},
                        {receive_area_.start() + 50, 78, receive_area_.stag}};
      ibv_recv_wr wr{};
      wr.wr_id = receives_posted_;
      wr.sg_list = list;
      wr.num_sge = 3;
      CHECK(test::post(*receives_, wr) == 0);
    }
    const bool answers = shared.service == core::Service::kReliable;
    for (unsigned i = 0; answers && i < (posts & 3u); ++i) post(IBV_WR_RDMA_READ);
    for (unsigned i = 0; answers && i < (posts >> 4 & 3u); ++i)
      post(i % 2 ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD);
    for (unsigned i = 0; i < (posts >> 2 & 3u); ++i)
      post(i == 0 ? IBV_WR_RDMA_WRITE : i == 1 ? IBV_WR_SEND_WITH_IMM : IBV_WR_RDMA_WRITE_WITH_IMM);
    transmit();
  }

  // A window of 64 octets for the stream of that queue pair.
  uint32_t lend(uint32_t qp, uint64_t offset) {
    const uint32_t stag = *memory_.add_window(kPd, mem::WindowType::kType2, 100);
    CHECK(memory_.bind({kPd, qp}, {stag, stag, lent_.stag, mem::kRemoteRead | mem::kRemoteWrite,
                                   lent_.start() + offset, 64}) == 0);
    return stag;
  }

  void post(ibv_wr_opcode opcode) {
    ibv_sge list[] = {{sink_.start() + 10, 100, sink_.stag}, {sink_.start() + 200, 30, sink_.stag}};
    ibv_send_wr wr{};
    wr.wr_id = sends_posted_++;
    wr.opcode = opcode;
    wr.sg_list = list;
    wr.num_sge = 2;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      wr.wr.atomic.remote_addr = 0x5000;
      wr.wr.atomic.rkey = 0x77;
    } else {
      wr.wr.rdma.remote_addr = 0x5000;
      wr.wr.rdma.rkey = 0x77;
    }
    CHECK(test::post(*sends_, wr) == 0);
  }

  // What the machine wants to say is always well-formed.
  void transmit() {
    qp::Tx& tx = connection_.tx;
    while (tx.fill()) {
      size_t taken = 0;
      for (const iovec& piece : tx.pieces()) {
        const auto* from = static_cast<const uint8_t*>(piece.iov_base);
        out_.insert(out_.end(), from, from + piece.iov_len);
        taken += piece.iov_len;
      }
      tx.consume(taken);
    }
    if (!over_) tx.retire();
    size_t at = 0;
    while (out_.size() - at >= 2) {
      const size_t length = core::load_be16(&out_[at]),
                   whole = mpa::fpdu_size(static_cast<uint32_t>(length));
      CHECK(out_.size() - at >= whole);
      CHECK(length >= 14);
      if (crc_) {
        uint32_t crc;
        std::memcpy(&crc, &out_[at + whole - 4], 4);
        CHECK(core::crc32c(&out_[at], whole - 4) == crc);
      }
      const uint8_t opcode = out_[at + 3] & 0xf;
      CHECK(!terminated_);  // nothing follows a Terminate
      if (opcode == 7) terminated_ = true;
      if (opcode == 1) cookie_ = core::load_be32(&out_[at + 20]);
      if (opcode == 0xa) cookie_ = core::load_be32(&out_[at + 24]);
      at += whole;
    }
    CHECK(at == out_.size());
    out_.clear();
  }

  void feed(core::Bytes rest, bool make_frames, uint8_t piece_size) {
    const size_t piece = piece_size ? piece_size : 4096;
    if (!make_frames) {
      for (; !rest.empty() && !over_; rest = rest.subspan(std::min(piece, rest.size())))
        handle(connection_.rx.on_octets(rest.first(std::min(piece, rest.size()))));
      return;
    }
    while (!rest.empty() && !over_) {
      const size_t length = std::min<size_t>(rest[0], rest.size() - 1);
      std::vector<uint8_t> frame(2 + length);
      core::store_be16(frame.data(), static_cast<uint16_t>(length));
      std::copy_n(rest.begin() + 1, length, frame.begin() + 2);
      rest = rest.subspan(1 + length);
      name_stags(frame);
      complete(frame);
      core::Bytes left(frame);
      for (; !left.empty() && !over_; left = left.subspan(std::min(piece, left.size())))
        handle(connection_.rx.on_octets(left.first(std::min(piece, left.size()))));
    }
  }

  // Pad, markers and CRC.
  void complete(std::vector<uint8_t>& frame) {
    frame.resize((frame.size() + 3) / 4 * 4);
    if (markers_) {
      std::vector<uint8_t> marked(
          mpa::marked_size(position_, static_cast<uint32_t>(frame.size()) + mpa::kCrcSize));
      mpa::MarkerWriter writer(marked.data(), position_);
      writer.put(frame.data(), static_cast<uint32_t>(frame.size()));
      writer.before_crc();
      CHECK(writer.written().size() + mpa::kCrcSize == marked.size());
      marked.resize(marked.size() - mpa::kCrcSize);
      frame = std::move(marked);
    }
    const uint32_t crc = core::crc32c(frame.data(), frame.size());
    frame.resize(frame.size() + mpa::kCrcSize);
    std::memcpy(&frame[frame.size() - mpa::kCrcSize], &crc, mpa::kCrcSize);
    position_ = (position_ + static_cast<uint32_t>(frame.size())) % mpa::kMarkerInterval;
  }

  void name_stags(std::vector<uint8_t>& frame) {
    // Tagged or to invalidate; identifier of an atomic's answer; target of an atomic; source of a
    // Read.
    for (size_t at : {size_t{4}, size_t{20}, size_t{28}, size_t{36}}) {
      if (frame.size() < at + 4) continue;
      switch (core::load_be32(&frame[at])) {
        case 1:
          core::store_be32(&frame[at], writable_.stag);
          break;
        case 2:
          core::store_be32(&frame[at], readable_.stag);
          break;
        case 3:
          core::store_be32(&frame[at], foreign_.stag);
          break;
        case 4:
          core::store_be32(&frame[at], cookie_);
          break;
        case 5:
          core::store_be32(&frame[at], window_);
          break;
        case 6:
          core::store_be32(&frame[at], other_window_);
          break;
      }
    }
  }

  void handle(qp::RxStatus status) {
    if (connection_.rx.take_news()) transmit();
    if (given_back_.empty() && !memory_.find(window_)) given_back_ = lent_.octets;
    switch (status) {
      case qp::RxStatus::kOk:
        return;
      case qp::RxStatus::kWantReceive:
        waited_ = true;
        return;
      case qp::RxStatus::kWantSender:
        std::abort();  // one thread does all
      case qp::RxStatus::kFault: {
        const qp::RxFault& fault = connection_.rx.fault();
        end({.send = &fault.terminate,
             .failed_slot = fault.failed_slot,
             .failed_status = fault.failed_status});
        return;
      }
      case qp::RxStatus::kTerminated:
        end({.received = &connection_.rx.terminate()});
        return;
    }
  }

  void end(const qp::Tx::Cause& cause) {
    over_ = true;
    connection_.tx.abandon(cause);
    transmit();
    CHECK(terminated_ == (cause.send != nullptr));
  }

  void finish() {
    CHECK(!waited_ || connection_.shared.service == core::Service::kReliable);
    if (!over_ && waited_) handle(connection_.rx.give_up_waiting());
    if (!over_) transmit();
    if (!over_) end({});
    const uint8_t more[] = {0, 14, 0xc1, 0x40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    if (terminated_) CHECK(connection_.rx.on_octets(more) == qp::RxStatus::kOk);
    connection_.rx.fail_receive(IBV_WC_WR_FLUSH_ERR, core::Cause::kModifiedToError);

    // Every work request completed once and in order; receives at most once and in order.
    ibv_wc wc;
    uint64_t next = 0;
    while (send_cq_->poll(1, &wc) == 1) CHECK(wc.wr_id == next++);
    CHECK(next == sends_posted_);
    next = 0;
    bool failed = false;
    while (recv_cq_->poll(1, &wc) == 1) {
      CHECK(wc.wr_id == next++);
      CHECK(!failed);  // an error is the last
      failed = wc.status != IBV_WC_SUCCESS;
      CHECK(failed || wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM || wc.byte_len <= 128);
    }
    CHECK(next <= receives_posted_);
    // Nothing was written but where it may be.
    for (const Area* area : {&writable_, &readable_, &foreign_, &receive_area_, &sink_})
      CHECK(area->guarded());
    CHECK(readable_.untouched());
    CHECK(foreign_.untouched());
    CHECK(std::all_of(receive_area_.inside() + 128, receive_area_.inside() + kRegion,
                      [](uint8_t o) { return o == 0; }));
    const uint8_t* sink = sink_.inside();
    const auto clean = [&](size_t from, size_t to) {
      return std::all_of(sink + from, sink + to, [](uint8_t octet) { return octet == 0; });
    };
    CHECK(clean(0, 10) && clean(110, 200) && clean(230, kRegion));
    CHECK(lent_.guarded());
    for (size_t i = 0; i < kRegion; ++i) CHECK(lent_.inside()[i] == 0 || (i >= 64 && i < 128));
    CHECK(given_back_.empty() || given_back_ == lent_.octets);
    CHECK(memory_.find(other_window_));
    CHECK(memory_.remove(lent_.stag) == EBUSY);
    for (uint32_t window : {window_, other_window_}) CHECK(memory_.remove_window(window) == 0);
    CHECK(memory_.remove(lent_.stag) == 0);
    // No reference is left behind: this would wait for ever.
    for (const Area* area : {&writable_, &readable_, &foreign_, &receive_area_, &sink_})
      CHECK(memory_.remove(area->stag) == 0);
  }

  mem::Table memory_;
  std::unique_ptr<qp::SendQueue> sends_;
  std::unique_ptr<queue::ReceiveQueue> receives_;
  std::unique_ptr<Sources> sources_;
  std::unique_ptr<queue::CompletionQueue> send_cq_, recv_cq_;
  Area writable_, readable_, foreign_, receive_area_, sink_, lent_;
  uint32_t window_, other_window_;
  std::vector<uint8_t> given_back_;  // `lent_` after the window was invalidated
  qp::Connection connection_;
  std::vector<uint8_t> out_;
  uint64_t sends_posted_ = 0;
  uint32_t receives_posted_ = 0, cookie_ = 0, position_ = 0;
  bool crc_ = false, markers_ = false, over_ = false, terminated_ = false, waited_ = false;
};

}  // namespace uiw::test
