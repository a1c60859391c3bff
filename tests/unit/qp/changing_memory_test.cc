// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Memory that is written to while it is sent: what goes out may be torn, its CRC is right (RFC 5044
// 4.4). "The kernel" here reads a batch's pieces after everything that was posted was changed, each
// time it takes some.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <utility>

#include "support/hinted_machine.h"
#include "support/marked_stream.h"
#include "support/scene.h"

namespace uiw::test {
namespace {

constexpr uint32_t kJumbo = 8948;  // more than one payload of that goes into an FPDU

void invert(Buffer& buffer) {
  for (size_t i = 0; i < buffer.size(); ++i) buffer.data()[i] ^= 0xff;
}

struct Kind {
  const char* name;
  // Makes the machine send some of the buffer.
  void (*post)(Machine& m, const Buffer& source);
};

std::vector<ibv_sge> in_three(const Buffer& source) {
  const size_t third = source.size() / 3;
  return {source.sge(0, third), source.sge(third, third),
          source.sge(2 * third, source.size() - 2 * third)};
}
void ask_to_read(Machine& m, const Buffer& source) {
  const Octets request =
      read_request(5, 0, static_cast<uint32_t>(source.size()), source.stag(), source.start());
  Octets stream = fpdu(untagged(1, 1, 1, 0, request), m.connection->shared.agreement.crc);
  ASSERT_EQ(m.feed(stream), qp::RxStatus::kOk);
}

constexpr Kind kKinds[] = {
    {"Send", [](Machine& m, const Buffer& source) { m.post(SendWr(IBV_WR_SEND, {source.sge()})); }},
    {"Send of three SGEs, invalidating",
     [](Machine& m, const Buffer& source) {
       SendWr wr(IBV_WR_SEND_WITH_INV, in_three(source));
       wr.wr.invalidate_rkey = 9;
       m.post(std::move(wr));
     }},
    {"Write",
     [](Machine& m, const Buffer& source) {
       m.post(SendWr(IBV_WR_RDMA_WRITE, {source.sge()}).to(0x1000, 9));
     }},
    {"Write of three SGEs with immediate data",
     [](Machine& m, const Buffer& source) {
       m.post(SendWr(IBV_WR_RDMA_WRITE_WITH_IMM, in_three(source)).to(0x1000, 9).immediate(1));
     }},
    {"Read Response", ask_to_read},
    {"small ones, inline ones and answers in turns",
     [](Machine& m, const Buffer& source) {
       std::vector<ibv_sge> inline_sge = {
           {source.start(), static_cast<uint32_t>(std::min<size_t>(source.size(), 500)), 0}};
       m.post(SendWr(IBV_WR_SEND, inline_sge).flags(IBV_SEND_INLINE | IBV_SEND_SIGNALED));
       m.post(SendWr(IBV_WR_SEND, {source.sge(3, source.size() / 5)}));
       ask_to_read(m, source);
       m.post(SendWr(IBV_WR_RDMA_WRITE, {source.sge(0, source.size() / 2)}).to(0x1000, 9));
       m.post(SendWr(IBV_WR_SEND, {source.sge(0, 1)}));
     }},
};

// What "the kernel" reads when it takes as much each time as `next` says, the memory having changed
// before each time.
Octets carry(Machine& m, const std::function<void()>& change, const std::function<size_t()>& next) {
  Octets stream;
  while (m.tx().fill()) {
    change();
    const Octets pending = m.pending();
    const size_t taken = std::min(pending.size(), next());
    stream.insert(stream.end(), pending.begin(),
                  pending.begin() + static_cast<std::ptrdiff_t>(taken));
    m.take(taken);
  }
  return stream;
}

// Says what is wrong with the stream's framing and CRCs.
size_t count_fpdus(const Octets& stream, bool markers) {
  return markers ? marked_ulpdus_of(stream).size() : ulpdus_of(stream).size();
}

// The first call takes `first` octets for each `first` that there can be, the second the rest.
TEST(ChangingMemory, IsSentUnderItsOwnCrcWhereverACallStops) {
  for (const Kind& kind : kKinds)
    for (bool markers : {false, true}) {
      SCOPED_TRACE(testing::Message() << kind.name << (markers ? ", markers" : ""));
      size_t whole = 1;
      for (size_t first = 1; first <= whole; first += markers ? 13 : 1) {
        Machine m({.tx_markers = markers, .emss = kJumbo});
        Buffer source(m.memory, pattern(2200));
        kind.post(m, source);
        bool begun = false;
        const Octets stream = carry(
            m, [&] { invert(source); },
            [&] { return std::exchange(begun, true) ? SIZE_MAX : first; });
        whole = stream.size();
        ASSERT_GE(count_fpdus(stream, markers), 1u);
        ASSERT_FALSE(testing::Test::HasFailure()) << first;
      }
    }
}

TEST(ChangingMemory, IsSentUnderItsOwnCrcInManyFpdusOfAnySize) {
  std::mt19937 random(1);
  for (const Kind& kind : kKinds)
    for (bool markers : {false, true})
      for (uint32_t emss : {100u, 1448u, kJumbo, 65483u}) {
        SCOPED_TRACE(testing::Message()
                     << kind.name << " " << emss << (markers ? ", markers" : ""));
        HintedMachine m({.tx_markers = markers, .stagger = true});
        // Markers go on where the hints ended.
        const uint64_t before = markers ? MarkedStream().next(tagged(0, 1, 0, {})).size() : 0;
        m.tx().set_emss(emss);
        Buffer source(m.memory, pattern(emss == 100 ? 20000 : 400000));
        kind.post(m, source);
        const Octets stream = carry(
            m, [&] { invert(source); },
            [&] { return random() % 4 == 0 ? random() % 3000 : random() % 200000; });
        if (markers)
          EXPECT_GT(marked_ulpdus_of(stream, true, before).size(), 1u);
        else
          EXPECT_GT(ulpdus_of(stream).size(), 1u);
      }
}

// All that may write to it while it goes out: the answer to an atomic of ours, an atomic and a
// Write of the peer's.
TEST(ChangingMemory, MayBeWhatAtomicsAndWritesOfThePeerPlace) {
  constexpr size_t kSize = 4000;
  Machine m({.emss = kJumbo});
  Buffer source(m.memory, Octets(kSize, 0x55));
  m.post(SendWr(IBV_WR_ATOMIC_FETCH_AND_ADD, {source.sge(64, 8)}).atomic(0x1000, 9, 1));
  const uint32_t id = read_be32(&ulpdus_of(m.transmit()).at(0)[22]);
  m.post(SendWr(IBV_WR_SEND, {source.sge()}));
  m.post(SendWr(IBV_WR_RDMA_WRITE, {source.sge()}).to(0x1000, 9));
  ask_to_read(m, source);
  ASSERT_TRUE(m.tx().fill());
  const size_t whole = m.pending().size();
  ASSERT_GT(whole, 3 * kSize);
  Octets stream;
  const auto take = [&](size_t octets) {
    const Octets pending = m.pending();
    stream.insert(stream.end(), pending.begin(),
                  pending.begin() + static_cast<std::ptrdiff_t>(octets));
    m.take(octets);
  };
  ASSERT_EQ(m.feed(fpdu(untagged(0xb, 3, 1, 0, atomic_response(id, 0x1122334455667788)))),
            qp::RxStatus::kOk);
  take(10);
  const Octets addition = atomic_request(0, 7, source.stag(), source.start() + 1600, 5, 0);
  ASSERT_EQ(m.feed(fpdu(untagged(0xa, 1, 2, 0, addition))), qp::RxStatus::kOk);
  take(kSize);
  ASSERT_EQ(m.feed(fpdu(tagged(0, source.stag(), source.start(), pattern(kSize)))),
            qp::RxStatus::kOk);
  take(whole - 10 - kSize);
  EXPECT_TRUE(source.content() == pattern(kSize));  // they did write
  const Octets answer = m.transmit();
  stream.insert(stream.end(), answer.begin(), answer.end());
  EXPECT_EQ(ulpdus_of(stream).size(), 4u);
}

// The end of a connection finishes the FPDU that has begun, wherever that was, before it tells the
// peer (RFC 5040 7.1).
TEST(ChangingMemory, IsUnderItsOwnCrcAlsoBeforeATerminate) {
  for (const Kind& kind : kKinds)
    for (bool markers : {false, true}) {
      SCOPED_TRACE(testing::Message() << kind.name << (markers ? ", markers" : ""));
      for (size_t first = 0; first < 2200; first += 7) {
        Machine m({.tx_markers = markers, .emss = kJumbo});
        Buffer source(m.memory, pattern(2200));
        kind.post(m, source);
        ASSERT_TRUE(m.tx().fill());
        Octets stream = m.pending();
        stream.erase(stream.begin() + static_cast<std::ptrdiff_t>(first), stream.end());
        m.take(first);
        invert(source);
        const rdmap::Terminate terminate{.code = core::TermCode::kLocalCatastrophic};
        m.tx().abandon({.send = &terminate});
        const Octets rest = m.pending();
        stream.insert(stream.end(), rest.begin(), rest.end());
        const std::vector<Octets> ulpdus = markers ? marked_ulpdus_of(stream) : ulpdus_of(stream);
        ASSERT_GE(ulpdus.size(), first > 0 ? 2u : 1u);
        ASSERT_EQ(ulpdus.back()[1] & 0xf, 7);  // a Terminate
        ASSERT_FALSE(testing::Test::HasFailure()) << first;
      }
    }
}

// Nothing of what goes out under a CRC or with markers lies where others write: all of it is in
// pieces of the batch's own, one for each fill().
TEST(ChangingMemory, IsCopiedToOnePiece) {
  for (const Kind& kind : kKinds)
    for (bool markers : {false, true}) {
      SCOPED_TRACE(testing::Message() << kind.name << (markers ? ", markers" : ""));
      Machine m({.crc = !markers, .tx_markers = markers, .emss = kJumbo});
      Buffer source(m.memory, pattern(100000));
      kind.post(m, source);
      ASSERT_TRUE(m.tx().fill());
      EXPECT_EQ(m.tx().pieces().size(), 1u);
      EXPECT_FALSE(m.tx().holds_regions());
    }
}

}  // namespace
}  // namespace uiw::test
