// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The largest messages there are, every segment's header looked at: 2^31 octets are what a work
// request may have, 2^32 - 1 what a peer may read (RFC 5040 4.4, RFC 5041 5.2). No CRC, so that the
// payload is named where it lies and never touched: the memory behind it is never filled.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>

#include "core/be.h"
#include "support/scene.h"

namespace uiw::test {
namespace {

using qp::RxStatus;

constexpr uint32_t kEmss = 65483, kMulpdu = 64768;
constexpr uint64_t kMostPosted = uint64_t{1} << 31, kMostRead = 0xffffffff;

// Address space, registered.
class Expanse {
 public:
  Expanse(mem::Table& table, uint64_t size, uint64_t start)
      : table_(table),
        size_(size),
        start_(start),
        memory_(
            mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (memory_ != MAP_FAILED) stag = *table.add(kPd, data(), start, size, kAllAccess, kMaxRegions);
  }
  ~Expanse() {
    if (memory_ == MAP_FAILED) return;
    table_.remove(stag);
    munmap(memory_, size_);
  }
  bool there() const { return memory_ != MAP_FAILED; }
  uint8_t* data() const { return static_cast<uint8_t*>(memory_); }
  ibv_sge sge(uint64_t offset, uint64_t length) const {
    return {start_ + offset, static_cast<uint32_t>(length), stag};
  }

  uint32_t stag = 0;

 private:
  mem::Table& table_;
  const uint64_t size_, start_;
  void* const memory_;
};

// Reads a stream of FPDUs from iovecs: headers by their octets, payload by its address. Without
// CRC.
class HeaderReader {
 public:
  // `header(octets)` for the 14 or 18 octets of each DDP header; it returns where the payload has
  // to lie.
  template <class Header>
  void read(std::span<const iovec> pieces, Header&& header) {
    for (const iovec& piece : pieces) {
      const auto* at = static_cast<const uint8_t*>(piece.iov_base);
      size_t left = piece.iov_len;
      while (left > 0) {
        if (payload_left_ > 0) {
          ASSERT_EQ(at, expected_) << "payload from somewhere else";
          const size_t size = std::min<size_t>(left, payload_left_);
          payload_left_ -= size;
          expected_ += size;
          at += size;
          left -= size;
          if (payload_left_ == 0) skip_ = trailer_;
        } else if (skip_ > 0) {
          const size_t size = std::min(left, skip_);
          skip_ -= size;
          at += size;
          left -= size;
        } else {
          head_.push_back(*at++);
          --left;
          const size_t size = head_.size() < 3 ? 3 : head_[2] & 0x80 ? 16 : 20;
          if (head_.size() < size) continue;
          const size_t ulpdu = core::load_be16(head_.data());
          payload_left_ = ulpdu - (size - 2);
          trailer_ = (2 + ulpdu + 3) / 4 * 4 - 2 - ulpdu + 4;
          expected_ = header(core::Bytes(head_).subspan(2), payload_left_);
          if (payload_left_ == 0) skip_ = trailer_;
          head_.clear();
        }
      }
    }
  }
  bool between_fpdus() const { return head_.empty() && payload_left_ == 0 && skip_ == 0; }

 private:
  Octets head_;
  size_t payload_left_ = 0, skip_ = 0, trailer_ = 0;
  const uint8_t* expected_ = nullptr;
};

// Takes all that `m` has to send; each segment must continue the message, whose payload begins at
// `data`.
void expect_one_message(Machine& m, uint64_t length, uint8_t opcode, uint64_t first_offset,
                        const uint8_t* data) {
  HeaderReader reader;
  uint64_t at = 0, segments = 0;
  bool ended = false;
  while (m.tx().fill()) {
    size_t octets = 0;
    for (const iovec& piece : m.tx().pieces()) octets += piece.iov_len;
    reader.read(m.tx().pieces(), [&](core::Bytes header, size_t payload) -> const uint8_t* {
      const bool tagged = header[0] & 0x80;
      EXPECT_EQ(header[1], 0x40 | opcode);
      EXPECT_EQ(tagged ? core::load_be64(&header[6]) : core::load_be32(&header[14]),
                first_offset + at);
      EXPECT_EQ(payload, std::min<uint64_t>(kMulpdu - header.size(), length - at));
      EXPECT_FALSE(ended);
      const uint8_t* expected = data + at;
      at += payload;
      ended = header[0] & 0x40;
      EXPECT_EQ(ended, at == length);
      ++segments;
      return expected;
    });
    m.take(octets);
    if (testing::Test::HasFailure()) return;  // one is enough
  }
  EXPECT_TRUE(ended && reader.between_fpdus());
  EXPECT_EQ(at, length);
  const uint64_t room = kMulpdu - (opcode == 3 ? 18 : 14);
  EXPECT_EQ(segments, (length + room - 1) / room);
}

TEST(LargeMessages, AWriteFromOnePieceAcrossAllOffsetsOf32Bits) {
  Machine m({.crc = false, .emss = kEmss});
  Expanse from(m.memory, kMostPosted, 0x7000000000);
  if (!from.there()) GTEST_SKIP() << "no address space";
  constexpr uint64_t kTo = 0xfffffffffff00000 - kMostPosted;
  m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge(0, kMostPosted)}, 1).to(kTo, 0x55));
  expect_one_message(m, kMostPosted, 0, kTo, from.data());
  EXPECT_EQ(m.sent().at(0).status, IBV_WC_SUCCESS);
}

TEST(LargeMessages, ASendFromManyPieces) {
  Machine m({.crc = false, .emss = kEmss});
  Expanse from(m.memory, kMostPosted, 0x7000000000);
  if (!from.there()) GTEST_SKIP() << "no address space";
  // Neighbours in memory, so that the payload is one run all the same.
  std::vector<ibv_sge> list;
  uint64_t at = 0;
  for (uint64_t size : {uint64_t{1}, uint64_t{0x7ffffff}, uint64_t{0x40000001}, uint64_t{0}}) {
    list.push_back(from.sge(at, size));
    at += size;
  }
  list.push_back(from.sge(at, kMostPosted - at));
  m.post(SendWr(IBV_WR_SEND, list, 1));
  expect_one_message(m, kMostPosted, 3, 0, from.data());
  EXPECT_EQ(m.sent().at(0).status, IBV_WC_SUCCESS);
}

TEST(LargeMessages, TheLargestReadThatCanBeAskedFor) {
  Machine m({.initiator = false, .crc = false, .emss = kEmss});
  Expanse source(m.memory, kMostRead, 0x123456789);
  if (!source.there()) GTEST_SKIP() << "no address space";
  constexpr uint64_t kSinkTo = 0xffffff00;
  const Octets asked = read_request(7, kSinkTo, kMostRead, source.stag, 0x123456789);
  ASSERT_EQ(m.feed(fpdu(untagged(1, 1, 1, 0, asked), false)), RxStatus::kOk);
  expect_one_message(m, kMostRead, 2, kSinkTo, source.data());
}

// Memory that is named sixteen times over, so that a long message fits everywhere; a small file
// lies behind all of its addresses. What is placed last is what stays.
class Repeated {
 public:
  static constexpr size_t kTimes = 16, kShared = 1 << 20;
#ifdef __SANITIZE_THREAD__
  // Shadow memory would be there for every address that is written; and there is one thread only.
  static constexpr bool kAffordable = false;
#else
  static constexpr bool kAffordable = true;
#endif

  Repeated(mem::Table& table, size_t size) : size_(size), window_(table, size, 0x7000000000) {
    if (!there()) return;
    const int file = memfd_create("uiwarp-test", 0);
    EXPECT_EQ(ftruncate(file, kShared), 0);
    for (size_t at = 0; at < size; at += kShared) {
      EXPECT_NE(mmap(window_.data() + at, kShared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                     file, 0),
                MAP_FAILED);
    }
    close(file);
  }
  bool there() const {
    return kAffordable && window_.there();
  }
  std::vector<ibv_sge> list() const {
    return std::vector<ibv_sge>(kTimes, window_.sge(0, size_));
  }
  // The octets that end at the position `end` of the list.
  const uint8_t* before(uint64_t end, size_t size) const {
    return window_.data() + (end - 1) % size_ + 1 - size;
  }

 private:
  const size_t size_;
  Expanse window_;
};

// An answer of 2^31 octets to our own Read, over as many SGEs as there can be.
TEST(LargeMessages, TheLargestReadThatCanBePosted) {
  Machine m({.crc = false, .emss = kEmss});
  Repeated sink(m.memory, kMostPosted / Repeated::kTimes);
  if (!sink.there()) GTEST_SKIP() << "no address space";
  m.post(SendWr(IBV_WR_RDMA_READ, sink.list(), 1).to(0x1000, 0x55));
  const Octets request = ulpdus_of(m.transmit(), false).at(0);
  EXPECT_EQ(read_be32(&request[30]), kMostPosted);
  const uint32_t cookie = read_be32(&request[18]);

  constexpr size_t kPart = 65535 - 14;
  Octets segment = fpdu(tagged(2, cookie, 0, Octets(kPart, 0x11), false), false);
  uint64_t at = 0;
  for (; kMostPosted - at > kPart; at += kPart) {
    core::store_be64(&segment[8], at);
    ASSERT_EQ(m.feed(segment), RxStatus::kOk) << at;
  }
  m.tx().retire();
  EXPECT_TRUE(m.sent().empty());
  const Octets last = pattern(kMostPosted - at);
  ASSERT_EQ(m.feed(fpdu(tagged(2, cookie, at, last), false)), RxStatus::kOk);
  m.tx().retire();
  const std::vector<ibv_wc> done = m.sent();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[0].byte_len, kMostPosted);
  EXPECT_TRUE(std::equal(last.begin(), last.end(), sink.before(kMostPosted, last.size())));
}

// RFC 5041 5.2: no message has 2^32 octets, also where the receive has room for it and MO begins
// anew.
TEST(LargeMessages, ASendEndsBefore32BitsDo) {
  Machine m({.crc = false});
  Repeated to(m.memory, 256 << 20);  // 2^32 in all
  if (!to.there()) GTEST_SKIP() << "no address space";
  m.receive(RecvWr(to.list(), 1));
  constexpr size_t kPart = 65535 - 18;
  Octets segment = fpdu(untagged(3, 0, 1, 0, Octets(kPart, 0x11), false), false);
  uint64_t at = 0;
  for (; kMostRead - at > kPart; at += kPart) {
    core::store_be32(&segment[16], static_cast<uint32_t>(at));
    ASSERT_EQ(m.feed(segment), RxStatus::kOk) << at;
  }
  const Octets rest = pattern(kMostRead - at);
  const Octets ulpdu = untagged(3, 0, 1, static_cast<uint32_t>(at), rest, false);
  ASSERT_EQ(m.feed(fpdu(ulpdu, false)), RxStatus::kOk);
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), to.before(kMostRead, rest.size())));
  EXPECT_TRUE(m.received().empty());
  EXPECT_EQ(m.feed(fpdu(untagged(3, 0, 1, 0xffffffff, pattern(1)), false)), RxStatus::kFault);
  EXPECT_EQ(m.rx().fault().terminate.code, core::TermCode::kUntaggedTooLong);
  const std::vector<ibv_wc> got = m.received();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].status, IBV_WC_LOC_LEN_ERR);
}

}  // namespace
}  // namespace uiw::test
