// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include <infiniband/verbs.h>

namespace uiw::trace {
namespace {

using testing::ElementsAre;

class Recorded {
 public:
  Record& add(Kind kind, uint32_t qp, int64_t time) {
    Record record{};
    record.sequence = snapshot.records.size() + 1;
    record.kind = kind;
    record.qp = qp;
    record.time = time;
    return snapshot.records.emplace_back(record);
  }
  void send(uint64_t wr_id, int64_t time, bool signaled = true) {
    Record& record = add(Kind::kSend, 7, time);
    record.opcode = IBV_WR_RDMA_WRITE;
    record.flags = signaled ? kSignaled : 0;
    record.work.wr_id = wr_id;
    record.work.bytes = 100;
  }
  Record& complete(uint64_t wr_id, int64_t time, ibv_wc_status status = IBV_WC_SUCCESS) {
    Record& record = add(Kind::kCompletion, 7, time);
    record.status = static_cast<uint8_t>(status);
    record.work.wr_id = wr_id;
    return record;
  }
  void receive(uint64_t wr_id, int64_t time, uint64_t shared = 0) {
    Record& record = add(Kind::kReceive, shared ? 0 : 7, time);
    record.flags = kSignaled;
    record.work.wr_id = wr_id;
    record.work.queue = shared;
  }
  void complete_receive(uint64_t wr_id, int64_t time) {
    complete(wr_id, time).flags = kHasReceived;
  }
  void connect(uint8_t local, uint8_t peer) {
    Record& record = add(Kind::kConnected, 7, 0);
    record.addresses = {};
    record.addresses.local[15] = local;
    record.addresses.peer[15] = peer;
    record.addresses.local_port = local;
    record.addresses.peer_port = peer;
  }
  History history() const { return build({snapshot}); }

  Snapshot snapshot;
};

std::vector<std::string> statuses(const History& history) {
  std::vector<std::string> all;
  for (const Request& request : history.requests) all.push_back(status_of(request));
  return all;
}

TEST(TraceHistory, ACompletionIsThatOfTheOldestSignaledRequestWithItsId) {
  Recorded recorded;
  recorded.send(0, 10, false);
  recorded.send(0, 20);
  recorded.send(0, 30);
  recorded.complete(0, 50);
  const History history = recorded.history();
  EXPECT_THAT(statuses(history), ElementsAre("unsignaled", "SUCCESS", "open"));
  EXPECT_EQ(history.requests[1].latency(), 30);
}

TEST(TraceHistory, AFailureMayBeThatOfAnUnsignaledRequest) {
  Recorded recorded;
  recorded.send(1, 10, false);
  recorded.send(2, 20);
  recorded.complete(1, 30, IBV_WC_REM_ACCESS_ERR);
  recorded.complete(2, 30, IBV_WC_WR_FLUSH_ERR);
  EXPECT_THAT(statuses(recorded.history()), ElementsAre("REM_ACCESS_ERR", "WR_FLUSH_ERR"));
}

TEST(TraceHistory, OfEqualIdsTheOneFailsWhosePlaceTheCompletionTells) {
  Recorded recorded;
  recorded.add(Kind::kCreated, 7, 0);
  for (const bool signaled : {false, true, false, false, false, true})
    recorded.send(0, 1, signaled);
  recorded.complete(0, 5).work.place = 2;
  recorded.complete(0, 6, IBV_WC_RETRY_EXC_ERR).work.place = 5;
  EXPECT_THAT(statuses(recorded.history()), ElementsAre("unsignaled", "SUCCESS", "unsignaled",
                                                        "unsignaled", "RETRY_EXC_ERR", "open"));
}

TEST(TraceHistory, OfTwoThreadsTheOneThatBeganFirstMayHavePostedSecond) {
  Recorded recorded;
  recorded.add(Kind::kCreated, 7, 0);
  recorded.send(2, 1);  // waits for the section in which the others are
  recorded.send(0, 2, false);
  recorded.send(1, 2);
  recorded.complete(1, 5).work.place = 2;
  recorded.complete(2, 6).work.place = 3;
  EXPECT_THAT(statuses(recorded.history()), ElementsAre("SUCCESS", "unsignaled", "SUCCESS"));
}

TEST(TraceHistory, PlacesCountFromWhenTheQueuePairWasMadeOrReset) {
  Recorded recorded;
  recorded.add(Kind::kCreated, 7, 0);
  for (int i = 0; i < 3; ++i) recorded.send(0, 1, false);
  recorded.complete(0, 2, IBV_WC_RETRY_EXC_ERR).work.place = 2;
  recorded.add(Kind::kState, 7, 3).opcode = IBV_QPS_RESET;
  for (int i = 0; i < 3; ++i) recorded.send(0, 4, false);
  recorded.complete(0, 5, IBV_WC_RETRY_EXC_ERR).work.place = 3;
  EXPECT_THAT(statuses(recorded.history()),
              ElementsAre("unsignaled", "RETRY_EXC_ERR", "open", "unsignaled", "unsignaled",
                          "RETRY_EXC_ERR"));
}

TEST(TraceHistory, ReceivesAreGoneWithTheResetOfTheirQueuePair) {
  Recorded recorded;
  recorded.add(Kind::kCreated, 7, 0);
  recorded.receive(1, 1);
  recorded.add(Kind::kState, 7, 2).opcode = IBV_QPS_RESET;
  recorded.receive(1, 3);
  recorded.complete_receive(1, 5);
  EXPECT_THAT(statuses(recorded.history()), ElementsAre("open", "SUCCESS"));
}

TEST(TraceHistory, ReceivesAreGoneWithTheirSharedQueue) {
  Recorded recorded;
  recorded.add(Kind::kCreated, 7, 0).work.queue = 0x1000;
  recorded.receive(1, 1, 0x1000);
  recorded.add(Kind::kDestroyed, 7, 2);
  recorded.add(Kind::kSharedGone, 0, 2).work.queue = 0x1000;
  recorded.add(Kind::kCreated, 7, 2).work.queue = 0x1000;
  recorded.receive(1, 3, 0x1000);
  recorded.complete_receive(1, 5);
  EXPECT_THAT(statuses(recorded.history()), ElementsAre("open", "SUCCESS"));
}

TEST(TraceHistory, AReceiveThatEndedWithItsQueuePairIsNotTheNextOneOfItsId) {
  Recorded recorded;
  recorded.add(Kind::kCreated, 7, 0).work.queue = 0x1000;
  recorded.receive(1, 1, 0x1000);
  recorded.add(Kind::kDropped, 7, 2).work.wr_id = 1;
  recorded.add(Kind::kDestroyed, 7, 2);
  recorded.add(Kind::kCreated, 7, 3).work.queue = 0x1000;
  recorded.receive(1, 4, 0x1000);
  recorded.complete_receive(1, 6);
  const History history = recorded.history();
  EXPECT_THAT(statuses(history), ElementsAre("open", "SUCCESS"));
  EXPECT_EQ(history.requests[0].queue_pair, 0u);
  EXPECT_EQ(history.requests[1].latency(), 2);
}

TEST(TraceHistory, WithoutThePostsBeforeItAPlaceSaysNothing) {
  Recorded recorded;
  recorded.complete(9, 1).work.place = 1;  // its post is lost, as others may be
  for (int i = 0; i < 2; ++i) recorded.send(0, 2, false);
  recorded.complete(0, 5, IBV_WC_RETRY_EXC_ERR).work.place = 3;
  EXPECT_THAT(statuses(recorded.history()), ElementsAre("RETRY_EXC_ERR", "open"));
}

TEST(TraceHistory, SaysHowManyCompletionsHaveNoPost) {
  Recorded recorded;
  recorded.complete(1, 30);
  EXPECT_EQ(recorded.history().unmatched, 1u);
}

TEST(TraceHistory, ReceivesOfASharedQueueAreThoseOfTheQueuePairThatTookThem) {
  Recorded recorded;
  recorded.add(Kind::kCreated, 7, 0).work.queue = 99;
  for (const uint64_t wr_id : {1, 2}) {
    Record& record = recorded.add(Kind::kReceive, 0, 1);
    record.flags = kSignaled;
    record.work.wr_id = wr_id;
    record.work.queue = 99;
  }
  Record& completion = recorded.complete(2, 5);
  completion.flags = kHasReceived;
  completion.work.bytes = 4;
  const History history = recorded.history();
  EXPECT_THAT(statuses(history), ElementsAre("open", "SUCCESS"));
  EXPECT_EQ(history.requests[0].queue_pair, kNobody);
  EXPECT_EQ(history.requests[1].queue_pair, 0u);
  EXPECT_EQ(history.requests[1].bytes, 4u);
}

TEST(TraceHistory, FindsBothEndsOfAConnection) {
  Recorded one, other, stranger;
  one.connect(1, 2);
  other.connect(2, 1);
  stranger.connect(3, 1);
  const History history = build({one.snapshot, stranger.snapshot, other.snapshot});
  EXPECT_EQ(history.queue_pairs[0].peer, 2u);
  EXPECT_EQ(history.queue_pairs[2].peer, 0u);
  EXPECT_EQ(history.queue_pairs[1].peer, kNobody);
}

TEST(TraceHistory, ANumberThatIsUsedAgainIsAnotherQueuePair) {
  Recorded recorded;
  recorded.add(Kind::kCreated, 7, 0);
  recorded.send(1, 1);
  recorded.add(Kind::kCreated, 7, 2);
  recorded.complete(1, 3);
  const History history = recorded.history();
  EXPECT_EQ(history.queue_pairs.size(), 2u);
  EXPECT_THAT(statuses(history), ElementsAre("open"));
}

TEST(TraceHistory, PercentilesAreValuesThatSoManyAreNotAbove) {
  Recorded recorded;
  for (int i = 1; i <= 1000; ++i) {
    recorded.send(static_cast<uint64_t>(i), 0);
    recorded.complete(static_cast<uint64_t>(i), i);
  }
  const std::vector<Percentiles> rows = percentiles(recorded.history());
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].count, 1000u);
  EXPECT_EQ(rows[0].bytes, 100'000u);
  EXPECT_EQ(rows[0].p50, 500);
  EXPECT_EQ(rows[0].p90, 900);
  EXPECT_EQ(rows[0].p99, 990);
  EXPECT_EQ(rows[0].p999, 999);
  EXPECT_EQ(rows[0].most, 1000);
}

TEST(TraceHistory, AConnectionThatIsToldAgainIsKnown) {
  Recorded client, server;
  client.connect(1, 2);
  server.connect(2, 1);
  for (Recorded* const each : {&client, &server}) {
    each->snapshot.records.back().kind = Kind::kStands;
    each->send(1, 10);
  }
  const History history = build({client.snapshot, server.snapshot});
  ASSERT_EQ(history.queue_pairs.size(), 2u);
  EXPECT_EQ(history.queue_pairs[0].peer, 1u);
  EXPECT_EQ(local_of(history.queue_pairs[0]), peer_of(history.queue_pairs[1]));
  EXPECT_TRUE(history.events.empty()) << "it has not become so then";
}

// A file that looks like a trace: of `records` of the ring, and `kept` behind it.
std::vector<uint8_t> file_of(uint64_t records, uint64_t kept = 0) {
  Header header{};
  header.magic = Header::kMagic;
  header.records = records;
  header.kept = kept;
  std::memset(header.program, 'x', sizeof header.program);  // it has no end
  header.program[0] = '\033';
  std::vector<uint8_t> bytes(kHeaderSize + (records + kept) * kRecordSize);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

bool parse(std::span<const uint8_t> bytes, Snapshot& out) {
  Room room;
  if (!parse_header(bytes, out, room)) return false;
  const auto rest = bytes.subspan(kHeaderSize);
  const auto ring = rest.first(std::min<size_t>(rest.size(), room.ring * kRecordSize));
  take_records(ring, ring, 0, room.ring, out);
  take_kept(rest.subspan(ring.size()), rest.subspan(ring.size()), out);
  finish(room.ring, out);
  return true;
}

void expect_harmless(const History& history) {
  const auto printable = [](const std::string& text) {
    for (const char c : text)
      if (c < ' ' || c > '~') return false;
    return true;
  };
  for (const Snapshot& process : history.processes) EXPECT_TRUE(printable(process.program));
  for (const Request& request : history.requests) {
    EXPECT_TRUE(printable(opcode_of(request) + status_of(request)));
    EXPECT_TRUE(request.queue_pair == kNobody || request.queue_pair < history.queue_pairs.size());
  }
  for (const Event& event : history.events) EXPECT_TRUE(printable(text_of(event)));
  for (const QueuePair& qp : history.queue_pairs)
    EXPECT_TRUE(printable(local_of(qp) + peer_of(qp)));
  percentiles(history);
}

TEST(TraceSnapshot, OlderRecordsAreLostAndCounted) {
  std::vector<uint8_t> bytes = file_of(4);
  // The ring has gone round once; one record is being written, one is of the round before.
  const uint64_t sequences[] = {5, 0, 3, 4};
  for (int i = 0; i < 4; ++i) {
    Record record{};
    record.sequence = sequences[i];
    record.kind = Kind::kDestroyed;
    std::memcpy(bytes.data() + kHeaderSize + static_cast<size_t>(i) * kRecordSize, &record,
                sizeof record);
  }
  Snapshot snapshot;
  ASSERT_TRUE(parse(bytes, snapshot));
  EXPECT_EQ(snapshot.lost, 1u);
  ASSERT_EQ(snapshot.records.size(), 3u);
  EXPECT_EQ(snapshot.records.front().sequence, 3u);
}

TEST(TraceSnapshot, ARecordThatChangesWhileItIsReadIsLeftOut) {
  std::vector<uint8_t> bytes(2 * kRecordSize);
  for (uint64_t i = 0; i < 2; ++i) {
    Record record{};
    record.sequence = i + 1;
    record.kind = Kind::kDestroyed;
    std::memcpy(bytes.data() + i * kRecordSize, &record, sizeof record);
  }
  std::vector<uint8_t> again = bytes;
  again[offsetof(Record, qp)] = 1;
  Snapshot snapshot;
  take_records(bytes, again, 0, 2, snapshot);
  ASSERT_EQ(snapshot.records.size(), 1u);
  EXPECT_EQ(snapshot.records.front().sequence, 2u);
}

TEST(TraceSnapshot, IsReadAsFarAsItGoesWhereverItIsCutOff) {
  const std::vector<uint8_t> bytes = file_of(4);
  for (size_t size = 0; size <= bytes.size(); ++size) {
    Snapshot snapshot;
    EXPECT_EQ(parse(std::span(bytes).first(size), snapshot), size >= kHeaderSize);
  }
}

TEST(TraceSnapshot, RefusesARingThatIsTooLargeOrNone) {
  for (const uint64_t records : {uint64_t{0}, kMostRecords + 1, UINT64_MAX}) {
    std::vector<uint8_t> bytes = file_of(1);
    std::memcpy(bytes.data() + offsetof(Header, records), &records, sizeof records);
    Snapshot snapshot;
    EXPECT_FALSE(parse(bytes, snapshot));
  }
  Snapshot snapshot;
  EXPECT_FALSE(parse(file_of(1, kMostKept + 1), snapshot));
}

TEST(TraceSnapshot, RandomRecordsDoNoHarm) {
  constexpr uint64_t kRecords = 64, kKept = 8;
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint8_t> bytes = file_of(kRecords, kKept);
    for (size_t at = kHeaderSize; at < bytes.size(); ++at)
      bytes[at] = static_cast<uint8_t>(random());
    for (uint64_t i = 0; i < kRecords + kKept; ++i) {
      // As far as a record would not be left out at once, and numbers meet each other.
      Record record;
      uint8_t* const place = bytes.data() + kHeaderSize + i * kRecordSize;
      std::memcpy(&record, place, sizeof record);
      record.sequence = i + 1;
      record.qp %= 3;
      record.kind = static_cast<Kind>(random() % (kLastKind + 1u));
      if (i >= kRecords) record.sequence = 1 + random() % 4, record.kind = Kind::kConnected;
      if (i == kRecords - 1) record.sequence += kRecords;  // the oldest are lost
      record.work.wr_id %= 3;
      record.work.queue %= 2;
      std::memcpy(place, &record, sizeof record);
    }
    Snapshot snapshot;
    ASSERT_TRUE(parse(bytes, snapshot));
    expect_harmless(build({snapshot, snapshot}));
  }
}

}  // namespace
}  // namespace uiw::trace
