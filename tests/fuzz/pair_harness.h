// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Two ends of one connection that do what the input says: post, receive, carry octets, damage one,
// cut, close. And what must hold whatever it says: every work request completes once and in order,
// no octet is ever wrong, nothing is written but where it may be, and what nobody disturbed
// succeeds.
//
// Input: octet 0 bit 0 CRC, 1 waits for receives, 2-3 RTR, 4-5 depth of Reads,
// 6 Sends with immediate; then steps. A step is an octet: bit 7 which end, bits 0-3 what to do (see
// step()), bits 4-6 its size class.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "fuzz/check.h"
#include "qp/connection.h"
#include "support/post.h"
#include "support/wiring.h"

namespace uiw::test {

class PairHarness {
 public:
  static void run(const uint8_t* data, size_t size) {
    if (size < 2) return;
    PairHarness pair(data[0]);
    for (size_t i = 1; i < size && i < kMaxSteps; ++i) pair.step(data[i]);
    pair.finish();
  }

 private:
  static constexpr uint32_t kPd = 7;
  static constexpr size_t kMaxSteps = 600, kArena = 8192, kReceive = 900;
  static constexpr uint64_t kStart = 0x100000;

  // Registered memory that is given out piece by piece. What may be written is 0 until it is, and
  // then what `expected` says.
  struct Arena {
    Arena(mem::Table& table, uint32_t access, bool filled) : octets(kArena), expected(kArena) {
      if (filled)
        for (size_t i = 0; i < kArena; ++i)
          octets[i] = expected[i] = static_cast<uint8_t>(1 + i % 251 + i / 1024);
      stag = *table.add(kPd, octets.data(), kStart, kArena, access, 100);
    }
    // Where `size` octets nobody has used lie; kArena when there are none.
    size_t take(size_t size) {
      if (used + size > kArena) return kArena;
      return std::exchange(used, used + size);
    }
    bool sound() const {
      for (size_t i = 0; i < kArena; ++i)
        if (octets[i] != 0 && octets[i] != expected[i]) return false;
      return true;
    }
    bool holds(size_t at, size_t size) const {
      return std::equal(octets.begin() + at, octets.begin() + at + size, expected.begin() + at);
    }
    std::vector<uint8_t> octets, expected;
    size_t used = 0;
    uint32_t stag = 0;
  };

  struct Posted {
    ibv_wr_opcode opcode;
    size_t size;
    Arena* arena;  // where its octets are to be
    size_t at;
  };

  struct Message {      // a Send
    size_t size, from;  // in the sender's source
    bool with_immediate;
    uint32_t immediate;
  };

  struct End {
    End()
        : sends(qp::SendQueue::create(16, 4, 64)),
          receives(queue::ReceiveQueue::create(16, 4)),
          send_cq(queue::CompletionQueue::create(kMaxSteps, nullptr)),
          recv_cq(queue::CompletionQueue::create(kMaxSteps, nullptr)),
          source(memory, mem::kRemoteRead, true),
          target(memory, mem::kLocalWrite | mem::kRemoteWrite, false),
          sink(memory, mem::kLocalWrite, false),
          inbox(memory, mem::kLocalWrite, false) {
      qp::Shared& shared = connection.shared;
      sources = wire(shared, 1, kPd, memory, *sends, *receives, *send_cq, *recv_cq);
      shared.long_fpdus = shared.stagger = true;
    }
    mem::Table memory;
    std::unique_ptr<qp::SendQueue> sends;
    std::unique_ptr<queue::ReceiveQueue> receives;
    std::unique_ptr<Sources> sources;
    std::unique_ptr<queue::CompletionQueue> send_cq, recv_cq;
    Arena source, target, sink, inbox;
    qp::Connection connection;
    std::deque<uint8_t> in;  // octets on their way here
    std::vector<Posted> posted;
    std::vector<ibv_wc> sent, received;  // completions that were polled
    std::vector<size_t> inbox_at;        // of each receive posted
    std::vector<Message> messages;       // in order
    bool paused = false;                 // a Send waits for a receive
    bool over = false;                   // error end begun
    bool closing = false;
    bool damaged = false;  // an octet on its way here was changed
  };

  explicit PairHarness(uint8_t kind) : crc_(kind & 1), immediates_(kind & 0x40) {
    const auto depth = static_cast<uint16_t>(1 + (kind >> 4 & 3));
    for (int i = 0; i < 2; ++i) {
      mpa::Agreement agreement;
      agreement.initiator = i == 0;
      agreement.crc = crc_;
      agreement.rtr = (kind >> 2 & 3) == 1   ? mpa::Rtr::kRead
                      : (kind >> 2 & 3) == 2 ? mpa::Rtr::kWrite
                                             : mpa::Rtr::kNone;
      ends_[i].connection.shared.immediates = immediates_;
      ends_[i].sends->allow(qp::opcodes_of(core::Service::kReliable, immediates_));
      agreement.ird = agreement.ord = depth;
      CHECK(ends_[i].connection.start(agreement, i ? 400 : 100, {77 + static_cast<uint64_t>(i), 0},
                                      kind & 2));
    }
  }

  End& other(const End& end) { return &end == &ends_[0] ? ends_[1] : ends_[0]; }

  void step(uint8_t octet) {
    End& end = ends_[octet >> 7];
    static constexpr size_t kSizes[] = {0, 1, 4, 63, 150, 300, 500, kReceive};
    const unsigned size_class = octet >> 4 & 7;
    const size_t size = kSizes[size_class];
    switch (octet & 0xf) {
      case 0:
        post(end, IBV_WR_SEND, size);
        break;
      case 1:
        post(end, immediates_ ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, size);
        break;
      case 2:
      case 3:
        post(end, IBV_WR_RDMA_WRITE, size);
        break;
      case 4:
      case 5:
        post(end, IBV_WR_RDMA_READ, size);
        break;
      case 6:
      case 7:
        receive(end);
        break;
      case 8:
      case 9:
        transmit(end, size_class == 7 ? ~size_t{0} : size + 1);
        break;
      case 10:
      case 11:
        deliver(end, size_class == 7 ? ~size_t{0} : size + 1);
        break;
      case 12:
        settle();
        break;
      case 13:
        // One changed bit is what a CRC32C is sure to find.
        if (crc_ && !end.damaged && !end.in.empty()) {
          end.in[size % end.in.size()] ^= static_cast<uint8_t>(1u << size_class);
          end.damaged = disturbed_ = true;
        }
        break;
      case 14:
        if (size_class == 7)
          cut();
        else if (!end.over) {
          end.connection.tx.stop_starting();
          end.closing = disturbed_ = true;
        }
        break;
      default:
        end.connection.tx.set_emss(static_cast<uint32_t>(100 + size));
        break;
    }
  }

  void post(End& end, ibv_wr_opcode opcode, size_t size) {
    End& peer = other(end);
    Arena* arena = opcode == IBV_WR_RDMA_READ    ? &end.sink
                   : opcode == IBV_WR_RDMA_WRITE ? &peer.target
                                                 : nullptr;
    const size_t at = arena ? arena->take(size) : 0;
    if (at == kArena) return;
    // The same place of the source, so that the content differs from message to message.
    const size_t from = (at * 3 + end.posted.size() * 131) % (kArena - kReceive);
    Arena& local = opcode == IBV_WR_RDMA_READ ? end.sink : end.source;
    const uint64_t start = kStart + (opcode == IBV_WR_RDMA_READ ? at : from);
    ibv_sge list[] = {{start, static_cast<uint32_t>(size / 3), local.stag},
                      {start + size / 3, static_cast<uint32_t>(size - size / 3), local.stag}};
    ibv_send_wr wr{};
    wr.wr_id = end.posted.size();
    wr.opcode = opcode;
    wr.sg_list = list;
    wr.num_sge = 2;
    wr.imm_data = static_cast<uint32_t>(end.posted.size() * 0x01020305);
    wr.send_flags = IBV_SEND_SIGNALED | (end.posted.size() % 5 == 4 ? IBV_SEND_FENCE : 0);
    wr.wr.rdma.remote_addr = kStart + (opcode == IBV_WR_RDMA_READ ? from : at);
    wr.wr.rdma.rkey = opcode == IBV_WR_RDMA_READ ? peer.source.stag : peer.target.stag;
    const int error = test::post(*end.sends, wr);
    CHECK(error == 0 || error == ENOMEM);
    if (error) {
      collect(end);  // makes room for the next
      if (arena) arena->used -= size;
      return;
    }
    if (arena) std::copy_n(&end.source.octets[from], size, &arena->expected[at]);
    if (opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM)
      end.messages.push_back({size, from, opcode == IBV_WR_SEND_WITH_IMM, wr.imm_data});
    end.posted.push_back({opcode, size, arena, at});
    if (end.over) end.connection.tx.flush(end.connection.shared);
  }

  void receive(End& end) {
    const size_t at = end.inbox.take(kReceive);
    if (at == kArena) return;
    ibv_sge list[] = {{kStart + at, 100, end.inbox.stag},
                      {kStart + at + 100, kReceive - 100, end.inbox.stag}};
    ibv_recv_wr wr{};
    wr.wr_id = end.inbox_at.size();
    wr.sg_list = list;
    wr.num_sge = 2;
    if (test::post(*end.receives, wr) != 0) {
      end.inbox.used -= kReceive;
      collect(end);
      return;
    }
    // The content is that of the peer's Send of the same number; checked when it completes.
    end.inbox_at.push_back(at);
    if (end.over) {
      flush_receives(end);
    } else if (end.paused) {
      handle(end, end.connection.rx.resume());
    }
  }

  void flush_receives(End& end) {
    queue::Receive receive;
    for (bool below; end.receives->take(receive, below);) {
      ibv_wc wc{};
      wc.wr_id = receive.wr_id;
      wc.status = IBV_WC_WR_FLUSH_ERR;
      end.recv_cq->push({wc, &end.sources->recv, receive.frees}, true);
    }
  }

  // Up to `limit` octets leave `end`. True when any did.
  bool transmit(End& end, size_t limit) {
    qp::Tx& tx = end.connection.tx;
    End& peer = other(end);
    bool any = false;
    while (limit > 0 && tx.fill()) {
      size_t taken = 0;
      for (const iovec& piece : tx.pieces()) {
        const size_t size = std::min(limit - taken, piece.iov_len);
        const auto* from = static_cast<const uint8_t*>(piece.iov_base);
        if (!cut_) peer.in.insert(peer.in.end(), from, from + size);
        taken += size;
      }
      limit -= taken;
      any = any || taken > 0;
      tx.consume(taken);
      if (!end.over) tx.retire();
    }
    CHECK(!tx.fault().raised || end.over);
    return any;
  }

  bool deliver(End& end, size_t limit) {
    if (end.paused || end.in.empty()) return false;
    const std::vector<uint8_t> octets(end.in.begin(),
                                      end.in.begin() + std::min(limit, end.in.size()));
    end.in.erase(end.in.begin(), end.in.begin() + octets.size());
    if (!end.over) handle(end, end.connection.rx.on_octets(octets));
    return true;
  }

  void settle() {
    for (bool more = true; more;) {
      more = false;
      for (End& end : ends_) {
        more = transmit(end, ~size_t{0}) || more;
        more = deliver(end, ~size_t{0}) || more;
      }
    }
  }

  void handle(End& end, qp::RxStatus status) {
    qp::Rx& rx = end.connection.rx;
    if (rx.take_news() && !end.over) end.connection.tx.retire();
    end.paused = status == qp::RxStatus::kWantReceive;
    if (status == qp::RxStatus::kFault) {
      // Nobody here says anything wrong: it was damaged, or came without a receive.
      const qp::RxFault& fault = rx.fault();
      CHECK(end.damaged || fault.terminate.code == core::TermCode::kUntaggedNoBuffer);
      disturbed_ = true;
      end_with(end, {.send = &fault.terminate,
                     .failed_slot = fault.failed_slot,
                     .failed_status = fault.failed_status});
    } else if (status == qp::RxStatus::kTerminated) {
      CHECK(other(end).over);
      end_with(end, {.received = &rx.terminate()});
    }
  }

  void end_with(End& end, const qp::Tx::Cause& cause) {
    if (std::exchange(end.over, true)) return;
    end.paused = false;
    end.connection.rx.fail_receive(IBV_WC_WR_FLUSH_ERR, core::Cause::kModifiedToError);
    flush_receives(end);
    end.connection.tx.abandon(cause);
  }

  void cut() {
    cut_ = disturbed_ = true;
    for (End& end : ends_) end_with(end, {});
  }

  void finish() {
    settle();
    for (End& end : ends_) {
      if (!end.paused || end.over) continue;
      handle(end, end.connection.rx.give_up_waiting());
      CHECK(end.over);
    }
    settle();
    if (!disturbed_) check_done(ends_[0]), check_done(ends_[1]);
    for (End& end : ends_) end_with(end, {});
    settle();
    for (End& end : ends_) {
      check_sends(end);
      check_receives(end);
      CHECK(end.target.sound() && end.sink.sound());
      CHECK(end.source.octets == end.source.expected);
      // No reference is left behind: this would wait for ever.
      for (Arena* arena : {&end.source, &end.target, &end.sink, &end.inbox})
        CHECK(end.memory.remove(arena->stag) == 0);
    }
  }

  // What may be sent has been, and everything it asked for has happened.
  void check_done(End& end) {
    const qp::Shared& shared = end.connection.shared;
    if (!shared.agreement.initiator && !shared.first_fpdu.load()) return;
    CHECK(!end.sends->has_unstarted() && !end.sends->has_unretired());
    for (const Posted& posted : end.posted)
      CHECK(!posted.arena || posted.arena->holds(posted.at, posted.size));
  }

  static void collect(End& end) {
    for (ibv_wc wc; end.send_cq->poll(1, &wc) == 1;) end.sent.push_back(wc);
    for (ibv_wc wc; end.recv_cq->poll(1, &wc) == 1;) end.received.push_back(wc);
  }

  void check_sends(End& end) {
    uint64_t next = 0;
    bool failed = false;
    collect(end);
    for (const ibv_wc& wc : end.sent) {
      CHECK(wc.wr_id == next);
      const Posted& posted = end.posted[next++];
      if (wc.status != IBV_WC_SUCCESS) {
        failed = true;
        continue;
      }
      CHECK(!failed);  // behind an error everything fails
      if (posted.opcode == IBV_WR_RDMA_READ) CHECK(posted.arena->holds(posted.at, posted.size));
    }
    CHECK(next == end.posted.size());
  }

  void check_receives(End& end) {
    const End& peer = other(end);
    uint64_t next = 0;
    bool failed = false;
    collect(end);
    for (const ibv_wc& wc : end.received) {
      CHECK(wc.wr_id == next);
      const size_t at = end.inbox_at[next];
      failed = failed || wc.status != IBV_WC_SUCCESS;
      if (wc.status == IBV_WC_SUCCESS) {
        CHECK(!failed && next < peer.messages.size());
        const Message& message = peer.messages[next];
        CHECK(wc.byte_len == message.size);
        CHECK(wc.wc_flags == (message.with_immediate ? unsigned{IBV_WC_WITH_IMM} : 0u));
        CHECK(!message.with_immediate || wc.imm_data == message.immediate);
        CHECK(std::equal(&end.inbox.octets[at], &end.inbox.octets[at] + wc.byte_len,
                         &peer.source.octets[message.from]));
      }
      ++next;
    }
    CHECK(next == end.inbox_at.size());
  }

  const bool crc_, immediates_;
  End ends_[2];
  bool cut_ = false;        // nothing is carried any more
  bool disturbed_ = false;  // not everything has to succeed
};

}  // namespace uiw::test
