// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// One end of a connection with everything a protocol machine needs around it: memory, queues,
// completions. No socket, no thread: the test carries the octets.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstring>
#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

#include "core/be.h"
#include "core/crc32c.h"
#include "mem/table.h"
#include "qp/connection.h"
#include "queue/completion_queue.h"
#include "queue/receive_queue.h"
#include "support/post.h"
#include "support/vectors.h"
#include "support/wiring.h"

namespace uiw::test {

inline constexpr uint32_t kPd = 7, kOtherPd = 8;
inline constexpr uint32_t kAllAccess =
    mem::kLocalWrite | mem::kRemoteWrite | mem::kRemoteRead | mem::kRemoteAtomic;
inline constexpr size_t kMaxRegions = 100000;

// Octets that differ from place to place and from seed to seed.
inline Octets pattern(size_t size, uint32_t seed = 0) {
  Octets out(size);
  for (size_t i = 0; i < size; ++i)
    out[i] = static_cast<uint8_t>(i * 7 + (i >> 8) * 13 + seed * 31 + 1);
  return out;
}

// Memory of a test, registered for as long as the object lives. `start` is where the peer and SGEs
// see it; 0: at its real address.
class Buffer {
 public:
  Buffer(mem::Table& table, size_t size, uint32_t access = kAllAccess, uint32_t pd = kPd,
         uint64_t start = 0)
      : Buffer(table, Octets(size), access, pd, start) {}
  // Filled before it is registered: from then on an engine may read it.
  Buffer(mem::Table& table, const Octets& content, uint32_t access = kAllAccess, uint32_t pd = kPd,
         uint64_t start = 0)
      : table_(&table), octets_(content.empty() ? Octets(1) : content), size_(content.size()) {
    start_ = start ? start : reinterpret_cast<uint64_t>(octets_.data());
    stag_ = *table.add(pd, octets_.data(), start_, size_, access, kMaxRegions);
  }
  ~Buffer() { deregister(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void deregister() {
    if (stag_) table_->remove(stag_);
    stag_ = 0;
  }
  uint32_t stag() const { return stag_; }
  uint64_t start() const { return start_; }
  size_t size() const { return size_; }
  uint8_t* data() { return octets_.data(); }
  Octets content() const {
    return Octets(octets_.begin(), octets_.begin() + static_cast<std::ptrdiff_t>(size_));
  }
  ibv_sge sge(size_t offset, size_t length) const {
    return {start_ + offset, static_cast<uint32_t>(length), stag_};
  }
  ibv_sge sge() const { return sge(0, size_); }

 private:
  mem::Table* table_;
  Octets octets_;
  size_t size_;
  uint64_t start_ = 0;
  uint32_t stag_ = 0;
};

// A work request with its SGEs.
struct SendWr {
  explicit SendWr(ibv_wr_opcode opcode, std::vector<ibv_sge> list = {}, uint64_t id = 0)
      : sges(std::move(list)) {
    wr.wr_id = id;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
  }
  SendWr& to(uint64_t address, uint32_t rkey) {
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = rkey;
    return *this;
  }
  // FetchAdd: `compare_add` is added. CmpSwap: it is compared with.
  SendWr& atomic(uint64_t address, uint32_t rkey, uint64_t compare_add, uint64_t swap = 0) {
    wr.wr.atomic.remote_addr = address;
    wr.wr.atomic.rkey = rkey;
    wr.wr.atomic.compare_add = compare_add;
    wr.wr.atomic.swap = swap;
    return *this;
  }
  SendWr& immediate(uint32_t value) {
    wr.imm_data = __builtin_bswap32(value);
    return *this;
  }
  SendWr& flags(unsigned flags) {
    wr.send_flags = flags;
    return *this;
  }
  SendWr& id(uint64_t value) {
    wr.wr_id = value;
    return *this;
  }
  ibv_send_wr& get() {
    wr.sg_list = sges.data();
    wr.num_sge = static_cast<int>(sges.size());
    return wr;
  }
  std::vector<ibv_sge> sges;
  ibv_send_wr wr{};
};
struct RecvWr {
  explicit RecvWr(std::vector<ibv_sge> list = {}, uint64_t id = 0) : sges(std::move(list)) {
    wr.wr_id = id;
  }
  ibv_recv_wr& get() {
    wr.sg_list = sges.data();
    wr.num_sge = static_cast<int>(sges.size());
    return wr;
  }
  std::vector<ibv_sge> sges;
  ibv_recv_wr wr{};
};

inline std::vector<ibv_wc> drain(queue::CompletionQueue& cq) {
  std::vector<ibv_wc> out;
  ibv_wc wc[16];
  for (int count; (count = cq.poll(16, wc)) > 0;) out.insert(out.end(), wc, wc + count);
  return out;
}

// Cuts a stream into ULPDUs; says what is wrong with its framing. What is left of the stream's end
// stays in `rest`.
inline std::vector<Octets> ulpdus_of(std::span<const uint8_t> stream, bool crc = true,
                                     Octets* rest = nullptr) {
  std::vector<Octets> out;
  while (stream.size() >= 2) {
    const size_t length = static_cast<size_t>(stream[0]) << 8 | stream[1];
    const size_t padded = (2 + length + 3) / 4 * 4;
    if (stream.size() < padded + 4) break;
    out.emplace_back(stream.begin() + 2, stream.begin() + 2 + static_cast<std::ptrdiff_t>(length));
    EXPECT_EQ(to_hex(stream.first(padded + 4)), to_hex(fpdu(out.back(), crc)));
    stream = stream.subspan(padded + 4);
  }
  if (rest) {
    *rest = Octets(stream.begin(), stream.end());
  } else {
    EXPECT_EQ(stream.size(), 0u) << "octets of an incomplete FPDU at the end";
  }
  return out;
}

// The FPDU that answers a Read Request, whose ULPDU this is, whole.
inline Octets response_to(const Octets& request, const Octets& content) {
  return fpdu(tagged(2, core::load_be32(&request[18]), 0, content));
}

struct MachineOptions {
  bool initiator = true;
  bool crc = true;
  bool tx_markers = false, rx_markers = false;
  bool wait_for_receive = false;
  mpa::Rtr rtr = mpa::Rtr::kNone;
  uint16_t ird = 4, ord = 4;
  uint32_t emss = 1460;
  uint32_t depth = 64, max_sge = queue::kMaxSge, max_inline = 512;
  uint32_t receives = 64;
  uint32_t first_msn = 1;
  bool long_fpdus = false, stagger = false;
  bool acknowledged = false;
  bool immediates = false;
  core::Service service = core::Service::kReliable;
  queue::ReceiveQueue::Takers takers = queue::ReceiveQueue::Takers::kOne;
};

class Machine {
 public:
  explicit Machine(const MachineOptions& options = {})
      : sends(qp::SendQueue::create(options.depth, options.max_sge, options.max_inline)),
        receives(queue::ReceiveQueue::create(options.receives, queue::kMaxSge, options.takers)),
        send_cq(queue::CompletionQueue::create(4096, nullptr)),
        recv_cq(queue::CompletionQueue::create(4096, nullptr)),
        connection(std::make_unique<qp::Connection>()) {
    qp::Shared& shared = connection->shared;
    sources = wire(shared, 42, kPd, memory, *sends, *receives, *send_cq, *recv_cq);
    shared.first_msn = options.first_msn;
    shared.long_fpdus = options.long_fpdus;
    shared.stagger = options.stagger;
    shared.acknowledged = options.acknowledged;
    shared.immediates = options.immediates;
    shared.service = options.service;
    sends->allow(qp::opcodes_of(options.service, options.immediates));
    mpa::Agreement agreement;
    agreement.initiator = options.initiator;
    agreement.crc = options.crc;
    agreement.tx_markers = options.tx_markers;
    agreement.rx_markers = options.rx_markers;
    agreement.rtr = options.rtr;
    agreement.ird = options.ird;
    agreement.ord = options.ord;
    EXPECT_TRUE(
        connection->start(agreement, options.emss, {0x12345678, 0}, options.wait_for_receive));
  }

  qp::Tx& tx() { return connection->tx; }
  qp::Rx& rx() { return connection->rx; }

  int post(SendWr wr, bool signal_all = false) { return test::post(*sends, wr.get(), signal_all); }
  int receive(RecvWr wr) { return test::post(*receives, wr.get()); }

  // Everything that may be sent now.
  Octets transmit() {
    Octets out;
    while (tx().fill()) {
      append_pending(out);
      tx().consume(out.size() - consumed_);
      consumed_ = out.size();
    }
    consumed_ = 0;
    tx().retire();
    return out;
  }
  // What fill() built, without taking it.
  Octets pending() {
    Octets out;
    append_pending(out);
    return out;
  }
  // The socket takes `octets` more.
  void take(size_t octets) {
    tx().consume(octets);
    tx().retire();
  }

  qp::RxStatus feed(std::span<const uint8_t> octets) { return rx().on_octets(octets); }

  std::vector<ibv_wc> sent() { return drain(*send_cq); }
  std::vector<ibv_wc> received() { return drain(*recv_cq); }

  mem::Table memory;
  std::unique_ptr<qp::SendQueue> sends;
  std::unique_ptr<queue::ReceiveQueue> receives;
  std::unique_ptr<queue::CompletionQueue> send_cq, recv_cq;
  std::unique_ptr<Sources> sources;
  std::unique_ptr<qp::Connection> connection;

 private:
  void append_pending(Octets& out) {
    for (const iovec& piece : tx().pieces()) {
      const auto* from = static_cast<const uint8_t*>(piece.iov_base);
      out.insert(out.end(), from, from + piece.iov_len);
    }
  }
  size_t consumed_ = 0;
};

}  // namespace uiw::test
