// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Atomic Requests and Responses, and Immediate Data, that are received: what is accepted and what
// is a fault.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "support/scene.h"

namespace uiw::test {
namespace {

constexpr auto kAdd = IBV_WR_ATOMIC_FETCH_AND_ADD;
constexpr auto kFault = qp::RxStatus::kFault;

Octets atomic_fpdu(const Octets& header, uint32_t msn = 1) {
  return fpdu(untagged(0xa, 1, msn, 0, header));
}

void expect_fault(Machine& m, uint16_t code, uint8_t flags, ibv_event_type event) {
  const qp::RxFault& fault = m.rx().fault();
  EXPECT_EQ(static_cast<uint16_t>(fault.terminate.code), code);
  EXPECT_EQ((fault.terminate.has_length ? 0x80 : 0) | (fault.terminate.has_ddp_header ? 0x40 : 0) |
                (fault.terminate.has_read_header ? 0x20 : 0),
            flags);
  EXPECT_EQ(fault.event, event);
}

// --- requests ---

// AT-08, AT-19: as for a Read, but the Terminate has no RDMAP header.
TEST(RxAtomic, RefusesMemoryThatItMayNotUse) {
  struct Wrong {
    const char* what;
    uint16_t code;
  };
  for (const Wrong& wrong : {Wrong{"stag", 0x0100},
                             {"stale", 0x0100},
                             {"end", 0x0101},
                             {"start", 0x0101},
                             {"rights", 0x0102},
                             {"domain", 0x0103},
                             {"wrap", 0x0104}}) {
    SCOPED_TRACE(wrong.what);
    Machine m({.initiator = false});
    Buffer word(m.memory, pattern(16)), foreign(m.memory, pattern(16), kAllAccess, kOtherPd),
        plain(m.memory, pattern(16), mem::kLocalWrite | mem::kRemoteWrite | mem::kRemoteRead);
    const std::string what = wrong.what;
    const Buffer& target = what == "rights" ? plain : what == "domain" ? foreign : word;
    uint32_t stag = target.stag();
    uint64_t to = target.start();
    if (what == "stag") stag ^= 0x100;
    if (what == "stale") stag ^= 1;
    if (what == "end") to += 16;
    if (what == "start") to -= 8;
    if (what == "wrap") to = ~0ull - 7;
    ASSERT_EQ(m.feed(atomic_fpdu(atomic_request(0, 9, stag, to, 1, 0))), kFault);
    expect_fault(m, wrong.code, 0xc0, IBV_EVENT_QP_ACCESS_ERR);
    for (Buffer* buffer : {&word, &foreign, &plain}) EXPECT_TRUE(buffer->content() == pattern(16));
  }
}

// AT-07: V33, but for the STag that is not echoed anyway.
TEST(RxAtomic, RefusesAMisalignedWord) {
  for (uint64_t offset = 1; offset < 8; ++offset) {
    Machine m({.initiator = false});
    Buffer words(m.memory, pattern(24));
    ASSERT_EQ(m.feed(atomic_fpdu(atomic_request(0, 9, words.stag(), words.start() + offset, 1, 0))),
              kFault);
    expect_fault(m, 0x0207, 0xc0, IBV_EVENT_QP_REQ_ERR);
    EXPECT_TRUE(words.content() == pattern(24));
    m.tx().abandon({.send = &m.rx().fault().terminate});
    EXPECT_EQ(to_hex(m.pending()), to_hex(vector("V33-term-atomic-align").octets));
  }
}

// The address in memory is what counts, not the TO.
TEST(RxAtomic, LooksAtTheAddressNotTheOffset) {
  Machine m({.initiator = false});
  Buffer words(m.memory, Octets(32), kAllAccess, kPd, 0x1003);
  ASSERT_EQ(m.feed(atomic_fpdu(atomic_request(0, 9, words.stag(), 0x100b, 3, 0))),
            qp::RxStatus::kOk);
  EXPECT_EQ(words.content()[8], 3);
  ASSERT_EQ(m.feed(atomic_fpdu(atomic_request(0, 9, words.stag(), 0x1008, 3, 0), 2)), kFault);
  expect_fault(m, 0x0207, 0xc0, IBV_EVENT_QP_REQ_ERR);
}

// AT-09.
TEST(RxAtomic, RefusesOperationsThatDoNotExist) {
  for (uint8_t op = 0; op < 16; ++op) {
    Machine m({.initiator = false});
    Buffer word(m.memory, Octets(8));
    const auto status = m.feed(atomic_fpdu(atomic_request(op, 9, word.stag(), word.start(), 1, 0)));
    if (op == 0 || op == 2) {
      EXPECT_EQ(status, qp::RxStatus::kOk);
      continue;
    }
    ASSERT_EQ(status, kFault);
    expect_fault(m, 0x0206, 0xc0, IBV_EVENT_QP_REQ_ERR);
    EXPECT_TRUE(word.content() == Octets(8));
  }
}

TEST(RxAtomic, RefusesEveryOtherLength) {
  for (size_t size = 0; size <= 80; ++size) {
    Machine m({.initiator = false});
    Buffer word(m.memory, Octets(8));
    Octets header = atomic_request(0, 9, word.stag(), word.start(), 1, 0);
    header.resize(size);
    const auto status = m.feed(atomic_fpdu(header));
    EXPECT_EQ(status, size == 52 ? qp::RxStatus::kOk : kFault) << size;
    if (size == 52) continue;
    expect_fault(m, 0x02ff, 0xc0, IBV_EVENT_QP_FATAL);
    EXPECT_TRUE(word.content() == Octets(8));
  }
}

TEST(RxAtomic, RefusesWhatDdpRefuses) {
  struct Wrong {
    uint32_t qn, msn, mo;
    bool last;
    uint16_t code;
  };
  for (const Wrong& w : {Wrong{0, 1, 0, true, 0x1201},
                         {3, 1, 0, true, 0x1201},
                         {1, 2, 0, true, 0x1203},
                         {1, 0, 0, true, 0x1203},
                         {1, 1, 4, true, 0x1204},
                         {1, 1, 0, false, 0x1204}}) {
    SCOPED_TRACE(w.code);
    Machine m({.initiator = false});
    Buffer word(m.memory, Octets(8));
    const Octets header = atomic_request(0, 9, word.stag(), word.start(), 1, 0);
    ASSERT_EQ(m.feed(fpdu(untagged(0xa, w.qn, w.msn, w.mo, header, w.last))), kFault);
    expect_fault(m, w.code, 0xc0, IBV_EVENT_QP_FATAL);
    EXPECT_TRUE(word.content() == Octets(8));
  }
}

// AT-16: Reads and atomics share IRD; what is beyond it is not executed.
TEST(RxAtomic, RefusesMoreThanIrd) {
  Machine m({.initiator = false, .ird = 2});
  Buffer word(m.memory, Octets(8));
  ASSERT_EQ(m.feed(fpdu(untagged(1, 1, 1, 0, read_request(1, 0, 0, 1, 0)))), qp::RxStatus::kOk);
  ASSERT_EQ(m.feed(atomic_fpdu(atomic_request(0, 1, word.stag(), word.start(), 1, 0), 2)),
            qp::RxStatus::kOk);
  ASSERT_EQ(m.feed(atomic_fpdu(atomic_request(0, 2, word.stag(), word.start(), 1, 0), 3)), kFault);
  expect_fault(m, 0x1202, 0xc0, IBV_EVENT_QP_REQ_ERR);
  EXPECT_EQ(word.content()[0], 1);
}

TEST(RxAtomic, ExecutesNothingBeforeTheLastOctet) {
  Machine m({.initiator = false});
  Buffer word(m.memory, Octets(8));
  const Octets octets = atomic_fpdu(atomic_request(0, 9, word.stag(), word.start(), 1, 0));
  for (size_t i = 0; i < octets.size(); ++i) {
    EXPECT_TRUE(word.content() == Octets(8));
    ASSERT_EQ(m.feed({&octets[i], 1}), qp::RxStatus::kOk);
  }
  EXPECT_EQ(word.content()[0], 1);
}

// AT-13: another process that maps the same memory counts along.
TEST(RxAtomic, IsIndivisibleForOtherProcesses) {
  constexpr uint64_t kTheirs = 2000000, kOurs = 20000;
  void* shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* word = static_cast<uint64_t*>(shared);
  Machine m({.initiator = false});
  const uint32_t stag =
      *m.memory.add(kPd, static_cast<uint8_t*>(shared), 0x1000, 4096, kAllAccess, kMaxRegions);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (uint64_t i = 0; i < kTheirs; ++i) std::atomic_ref(*word).fetch_add(1);
    _exit(0);
  }
  // They begin together, and both operations take part.
  while (std::atomic_ref(*word).load() == 0) sched_yield();
  uint64_t swapped = 0;
  for (uint32_t i = 0; i < kOurs; ++i) {
    const uint64_t now = std::atomic_ref(*word).load();
    const Octets request = i % 2 ? atomic_request(0, i, stag, 0x1000, 1, 0)
                                 : atomic_request(2, i, stag, 0x1000, now + 1, ~0ull, now);
    ASSERT_EQ(m.feed(atomic_fpdu(request, i + 1)), qp::RxStatus::kOk);
    const Octets answer = ulpdus_of(m.transmit()).at(0);
    swapped += i % 2 == 0 && read_be64(&answer[22]) == now;
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*word, kTheirs + kOurs / 2 + swapped);
  m.memory.remove(stag);
  munmap(shared, 4096);
}

// --- responses ---

// AT-17.
TEST(RxAtomic, RefusesAWrongResponse) {
  struct Wrong {
    const char* what;
    uint16_t code;
  };
  for (const Wrong& wrong : {Wrong{"msn", 0x1203},
                             {"id", 0x02ff},
                             {"short", 0x02ff},
                             {"long", 0x02ff},
                             {"mo", 0x1204},
                             {"more", 0x1204},
                             {"queue", 0x1201},
                             {"read", 0x0206}}) {
    SCOPED_TRACE(wrong.what);
    const std::string what = wrong.what;
    Machine m;
    Buffer sink(m.memory, 8);
    m.post(SendWr(kAdd, {sink.sge()}, 5).atomic(0x2000, 1, 1));
    const uint32_t id = read_be32(&ulpdus_of(m.transmit()).at(0)[22]);
    Octets response = atomic_response(what == "id" ? id ^ 1 : id, 7);
    if (what == "short") response.pop_back();
    if (what == "long") response.push_back(0);
    const Octets ulpdu = what == "read"
                             ? tagged(2, id, 0, {})
                             : untagged(0xb, what == "queue" ? 1 : 3, what == "msn" ? 2 : 1,
                                        what == "mo" ? 1 : 0, response, what != "more");
    ASSERT_EQ(m.feed(fpdu(ulpdu)), kFault);
    expect_fault(m, wrong.code, 0xc0, IBV_EVENT_QP_FATAL);
    EXPECT_TRUE(sink.content() == Octets(8));
    m.tx().abandon(
        {.failed_slot = m.rx().fault().failed_slot, .failed_status = m.rx().fault().failed_status});
    EXPECT_EQ(m.sent().at(0).status, what == "queue" ? IBV_WC_WR_FLUSH_ERR : IBV_WC_BAD_RESP_ERR);
  }
}

TEST(RxAtomic, RefusesAResponseToNothing) {
  Machine m;
  ASSERT_EQ(m.feed(fpdu(untagged(0xb, 3, 1, 0, atomic_response(1, 7)))), kFault);
  expect_fault(m, 0x1202, 0xc0, IBV_EVENT_QP_FATAL);
}

TEST(RxAtomic, RefusesAResponseThatComesTwice) {
  Machine m;
  Buffer sink(m.memory, 8);
  m.post(SendWr(kAdd, {sink.sge()}, 5).atomic(0x2000, 1, 1));
  const uint32_t id = read_be32(&ulpdus_of(m.transmit()).at(0)[22]);
  ASSERT_EQ(m.feed(fpdu(untagged(0xb, 3, 1, 0, atomic_response(id, 7)))), qp::RxStatus::kOk);
  ASSERT_EQ(m.feed(fpdu(untagged(0xb, 3, 2, 0, atomic_response(id, 8)))), kFault);
  expect_fault(m, 0x1202, 0xc0, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(sink.content()[0], 7);
}

// A Read that was posted first is answered first, and whole.
TEST(RxAtomic, RefusesAResponseBeforeThatOfAnEarlierRead) {
  Machine m;
  Buffer sink(m.memory, 32);
  m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge(0, 8)}, 4).to(1, 1));
  m.post(SendWr(kAdd, {sink.sge(8, 8)}, 5).atomic(0x2000, 1, 1));
  const std::vector<Octets> sent = ulpdus_of(m.transmit());
  ASSERT_EQ(m.feed(fpdu(tagged(2, read_be32(&sent[0][18]), 0, pattern(4), false))),
            qp::RxStatus::kOk);
  ASSERT_EQ(m.feed(fpdu(untagged(0xb, 3, 1, 0, atomic_response(read_be32(&sent[1][22]), 7)))),
            kFault);
  expect_fault(m, 0x0206, 0xc0, IBV_EVENT_QP_FATAL);
  EXPECT_TRUE(std::equal(sink.data() + 8, sink.data() + 32, Octets(24).data()));
}

TEST(RxAtomic, TellsOfASinkThatWentAway) {
  Machine m;
  Buffer sink(m.memory, 8);
  m.post(SendWr(kAdd, {sink.sge()}, 5).atomic(0x2000, 1, 1));
  const uint32_t id = read_be32(&ulpdus_of(m.transmit()).at(0)[22]);
  sink.deregister();
  ASSERT_EQ(m.feed(fpdu(untagged(0xb, 3, 1, 0, atomic_response(id, 7)))), kFault);
  expect_fault(m, 0x0000, 0, IBV_EVENT_QP_ACCESS_ERR);
  m.tx().abandon(
      {.failed_slot = m.rx().fault().failed_slot, .failed_status = m.rx().fault().failed_status});
  EXPECT_EQ(m.sent().at(0).status, IBV_WC_LOC_PROT_ERR);
  EXPECT_TRUE(sink.content() == Octets(8));
}

// --- Immediate Data ---

class RxImmediate : public testing::Test {
 protected:
  RxImmediate() : to(m.memory, 64), target(m.memory, 4096) {
    for (uint64_t id = 1; id <= 4; ++id) m.receive(RecvWr({to.sge()}, id));
  }
  Octets write(size_t size, bool last = true) {
    return fpdu(tagged(0, target.stag(), target.start(), pattern(size), last));
  }
  static Octets immediate(uint32_t msn, uint8_t opcode = 8,
                          std::string_view octets = "deadbeef00000000") {
    return fpdu(untagged(opcode, 0, msn, 0, from_hex(octets)));
  }
  ibv_wc one() {
    const std::vector<ibv_wc> all = m.received();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? ibv_wc{} : all[0];
  }
  Machine m;
  Buffer to, target;
};

// IM-03, IM-09, IM-10.
TEST_F(RxImmediate, CompletesAReceiveAndWritesNothing) {
  ASSERT_EQ(m.feed(concat(write(100, false), concat(write(50), immediate(1)))), qp::RxStatus::kOk);
  const ibv_wc wc = one();
  EXPECT_EQ(wc.wr_id, 1u);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(wc.wc_flags, unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(wc.imm_data, __builtin_bswap32(0xdeadbeef));
  EXPECT_EQ(wc.byte_len, 150u);
  EXPECT_EQ(wc.qp_num, 42u);
  EXPECT_TRUE(to.content() == Octets(64));
  EXPECT_TRUE(m.rx().at_boundary());
}

TEST_F(RxImmediate, IsNumberedWithTheSends) {
  ASSERT_EQ(m.feed(concat(vector("V03-send5-crc").octets, immediate(2, 9, "0000000001020304"))),
            qp::RxStatus::kOk);
  ASSERT_EQ(m.feed(concat(fpdu(untagged(3, 0, 3, 0, {})), immediate(4))), qp::RxStatus::kOk);
  const std::vector<ibv_wc> all = m.received();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(all[0].wc_flags, 0u);
  EXPECT_EQ(all[1].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(all[1].imm_data, __builtin_bswap32(0x01020304));
  EXPECT_EQ(all[1].byte_len, 0u);
  EXPECT_EQ(all[2].opcode, IBV_WC_RECV);
  EXPECT_EQ(all[3].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(all[i].wr_id, i + 1);
}

// Whose length it is: the Write's that ended just before, whatever we said meanwhile.
TEST_F(RxImmediate, CountsTheWriteBeforeIt) {
  ASSERT_EQ(m.feed(concat(write(100), concat(write(7), immediate(1)))), qp::RxStatus::kOk);
  EXPECT_EQ(one().byte_len, 7u);
  ASSERT_EQ(m.feed(concat(write(30, false), concat(write(3), immediate(2)))), qp::RxStatus::kOk);
  EXPECT_EQ(one().byte_len, 33u);
  ASSERT_EQ(m.feed(immediate(3)), qp::RxStatus::kOk);
  EXPECT_EQ(one().byte_len, 0u);
  // A Send between them: the Immediate Data is not the Write's.
  for (uint64_t id = 5; id <= 8; ++id) m.receive(RecvWr({}, id));
  ASSERT_EQ(m.feed(concat(write(100), concat(fpdu(untagged(3, 0, 4, 0, {})), immediate(5)))),
            qp::RxStatus::kOk);
  EXPECT_EQ(m.received().back().byte_len, 0u);
  // A Send inside the Write (conformance DS-20) does not shorten it.
  ASSERT_EQ(m.feed(concat(concat(write(100, false), fpdu(untagged(3, 0, 6, 0, {}))),
                          concat(write(9), immediate(7)))),
            qp::RxStatus::kOk);
  EXPECT_EQ(m.received().back().byte_len, 109u);
}

// IM-02.
TEST_F(RxImmediate, RefusesEveryOtherLength) {
  for (size_t size = 0; size <= 20; ++size) {
    Machine other;
    other.receive(RecvWr({}, 1));
    const auto status = other.feed(fpdu(untagged(8, 0, 1, 0, Octets(size))));
    EXPECT_EQ(status, size == 8 ? qp::RxStatus::kOk : kFault) << size;
    if (size == 8) continue;
    expect_fault(other, 0x02ff, 0xc0, IBV_EVENT_QP_FATAL);
    EXPECT_EQ(other.received().at(0).status, IBV_WC_GENERAL_ERR);
  }
}

TEST_F(RxImmediate, RefusesWhatDdpRefuses) {
  struct Wrong {
    uint32_t qn, msn, mo;
    bool last;
    uint16_t code;
  };
  for (const Wrong& w : {Wrong{1, 1, 0, true, 0x1201},
                         {0, 2, 0, true, 0x1203},
                         {0, 1, 8, true, 0x1204},
                         {0, 1, 0, false, 0x1204}}) {
    for (uint8_t opcode : {8, 9}) {
      Machine other;
      other.receive(RecvWr({}, 1));
      ASSERT_EQ(other.feed(fpdu(untagged(opcode, w.qn, w.msn, w.mo, Octets(8), w.last))), kFault);
      expect_fault(other, w.code, 0xc0, IBV_EVENT_QP_FATAL);
    }
  }
}

TEST_F(RxImmediate, MayNotInterruptASend) {
  ASSERT_EQ(m.feed(fpdu(untagged(3, 0, 1, 0, of_text("half"), false))), qp::RxStatus::kOk);
  ASSERT_EQ(m.feed(immediate(1)), kFault);
  expect_fault(m, 0x0206, 0xc0, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(one().status, IBV_WC_GENERAL_ERR);
}

// IM-06: opcode 9 wakes who waits for solicited completions only, opcode 8 does not.
TEST_F(RxImmediate, WakesWhenSolicited) {
  struct Events final : queue::CompletionEvents {
    void on_completion_event() override { ++count; }
    void on_overflow() override {}
    int count = 0;
  } events;
  const auto cq = queue::CompletionQueue::create(16, &events);
  m.connection->shared.recv_cq = cq.get();
  cq->arm(true);
  ASSERT_EQ(m.feed(immediate(1, 8)), qp::RxStatus::kOk);
  EXPECT_EQ(events.count, 0);
  ASSERT_EQ(m.feed(immediate(2, 9)), qp::RxStatus::kOk);
  EXPECT_EQ(events.count, 1);
  ASSERT_EQ(drain(*cq).size(), 2u);
}

// IM-03: without a receive, strict and patient.
TEST_F(RxImmediate, NeedsAReceive) {
  Machine strict;
  ASSERT_EQ(strict.feed(immediate(1)), kFault);
  expect_fault(strict, 0x1202, 0xc0, IBV_EVENT_QP_FATAL);

  Machine patient({.wait_for_receive = true});
  Buffer area(patient.memory, 100);
  const Octets octets =
      concat(fpdu(tagged(0, area.stag(), area.start(), pattern(100))), immediate(1));
  ASSERT_EQ(patient.feed(octets), qp::RxStatus::kWantReceive);
  EXPECT_TRUE(area.content() == pattern(100));
  ASSERT_EQ(patient.rx().resume(), qp::RxStatus::kWantReceive);
  patient.receive(RecvWr({}, 3));
  ASSERT_EQ(patient.rx().resume(), qp::RxStatus::kOk);
  const std::vector<ibv_wc> got = patient.received();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].byte_len, 100u);
  EXPECT_EQ(got[0].wr_id, 3u);
}

}  // namespace
}  // namespace uiw::test
