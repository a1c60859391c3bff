// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The table of --trace in front of a stack that does nothing, and what is in the file then.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/injected.h"
#include "trace/history.h"
#include "trace/instrument.h"
#include "trace/place.h"
#include "trace/ring.h"
#include "trace/wire.h"

namespace uiw::trace {
namespace {

using testing::ElementsAre;

int post_error = 0;
std::vector<ibv_wc> waiting;

uiwarp_verbs behind() {
  uiwarp_verbs verbs{};
  verbs.context_open = [](const uiwarp_device*, uint64_t, uiwarp_context**, int*) { return 0; };
  verbs.qp_create = [](uiwarp_pd*, uiwarp_qp_init*, uiwarp_qp**, uint32_t* number) {
    *number = 7;
    return 0;
  };
  verbs.qp_destroy = [](uiwarp_qp*, uint32_t*) { return 0; };
  verbs.srq_destroy = [](uiwarp_srq*, uint32_t*) { return 0; };
  verbs.qp_modify = [](uiwarp_qp*, const ibv_qp_attr*, int) { return 0; };
  verbs.qp_post_send = [](uiwarp_qp*, ibv_send_wr* wr, ibv_send_wr** bad) {
    *bad = wr->next;
    return post_error;
  };
  verbs.qp_post_recv = [](uiwarp_qp*, ibv_recv_wr*, ibv_recv_wr**) { return 0; };
  verbs.qp_batch_begin = [](uiwarp_qp*) {};
  verbs.qp_batch_add = [](uiwarp_qp*, const ibv_send_wr*) { return 0; };
  verbs.qp_batch_end = [](uiwarp_qp*, int) { return 0; };
  verbs.connected = [](uint32_t, const sockaddr_storage*, const sockaddr_storage*) {};
  verbs.agreed = [](uint32_t, const uiwarp_agreement*) {};
  verbs.fpdu_passed = [](uint32_t, const uiwarp_fpdu*) {};
  verbs.async_event_taken = [](uint32_t, uint32_t) {};
  verbs.receive_awaited = [](uint32_t, uint64_t, int) {};
  verbs.receives_dropped = [](uint32_t, const uint64_t*, uint32_t) {};
  verbs.cq_poll = [](uiwarp_cq*, int count, ibv_wc* wc) {
    int taken = 0;
    for (; taken < count && !waiting.empty(); waiting.pop_back()) wc[taken++] = waiting.back();
    return taken;
  };
  return verbs;
}

// What is recorded is kept for the life of the process: each test is a child with a file of its
// own.
class TracedVerbs : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "uiwarp-trace-" + std::to_string(getpid());
    post_error = 0;
    waiting.clear();
  }
  void TearDown() override { std::remove(path_.c_str()); }

  // Lets a child trace what `act` does; then it kills itself.
  template <class Act>
  History traced(Act act, const char* options = "") {
    return build({snapshot_of(act, options)});
  }
  template <class Act>
  Snapshot snapshot_of(Act act, const char* options = "") {
    const pid_t child = fork();
    if (child == 0) {
      const uiwarp_verbs next = behind();
      const uiwarp_verbs* verbs = nullptr;
      uiwarp_context* context = nullptr;
      int fd = -1;
      if (make_table((path_ + options).c_str(), &next, &verbs) != 0 ||
          verbs->context_open(nullptr, 0, &context, &fd) != 0)
        _exit(1);
      uiwarp_qp_init init{};
      init.qp_type = IBV_QPT_RC;
      uiwarp_qp* qp = nullptr;
      uint32_t number = 0;
      verbs->qp_create(nullptr, &init, &qp, &number);
      act(*verbs, qp);
      raise(SIGKILL);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    Snapshot snapshot;
    EXPECT_EQ(read(path_, snapshot), "");
    EXPECT_EQ(snapshot.pid, static_cast<uint32_t>(child));
    return snapshot;
  }

  static ibv_send_wr request(uint64_t wr_id, ibv_sge* sge) {
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = sge;
    wr.num_sge = 1;
    return wr;
  }
  static void complete(const uiwarp_verbs& verbs, uint64_t wr_id, ibv_wc_status status,
                       uint32_t place = 1) {
    ibv_wc wc{};
    wc.wr_id = wr_id;
    wc.qp_num = 7;
    wc.src_qp = place;
    wc.status = status;
    wc.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x10102;
    waiting = {wc};
    verbs.cq_poll(nullptr, 1, &wc);
  }

  static void connect(const uiwarp_verbs& verbs, uint32_t number, uint16_t port) {
    sockaddr_storage local{}, peer{};
    auto& from = reinterpret_cast<sockaddr_in&>(local);
    auto& to = reinterpret_cast<sockaddr_in&>(peer);
    from.sin_family = to.sin_family = AF_INET;
    from.sin_port = htons(port);
    to.sin_port = htons(7174);
    from.sin_addr.s_addr = htonl(0x0a000001);
    to.sin_addr.s_addr = htonl(0x0a000002);
    verbs.connected(number, &local, &peer);
  }

  std::string path_;
};

TEST_F(TracedVerbs, WhatAKilledProcessPostedAndPolledIsThere) {
  const History history = traced([](const uiwarp_verbs& verbs, uiwarp_qp* qp) {
    ibv_sge sge{0, 100, 0};
    ibv_send_wr wr = request(5, &sge), *bad = nullptr;
    verbs.qp_post_send(qp, &wr, &bad);
    ibv_recv_wr receive{}, *bad_receive = nullptr;
    verbs.qp_post_recv(qp, &receive, &bad_receive);
    complete(verbs, 5, IBV_WC_RETRY_EXC_ERR);
  });
  ASSERT_EQ(history.requests.size(), 2u);
  const Request& sent = history.requests[0];
  EXPECT_EQ(opcode_of(sent), "SEND");
  EXPECT_EQ(sent.wr_id, 5u);
  EXPECT_EQ(sent.bytes, 100u);
  EXPECT_EQ(status_of(sent), "RETRY_EXC_ERR");
  EXPECT_EQ(sent.vendor_err, 0x10102u);
  EXPECT_GE(sent.latency(), 0);
  EXPECT_EQ(opcode_of(history.requests[1]), "RECV");
  EXPECT_EQ(status_of(history.requests[1]), "open");
}

TEST_F(TracedVerbs, ADestroyedSharedQueueIsToldOf) {
  const Snapshot snapshot = snapshot_of(
      [](const uiwarp_verbs& verbs, uiwarp_qp*) {
        verbs.srq_destroy(reinterpret_cast<uiwarp_srq*>(0x1000), nullptr);
      },
      "");
  ASSERT_FALSE(snapshot.records.empty());
  EXPECT_EQ(snapshot.records.back().kind, Kind::kSharedGone);
  EXPECT_EQ(snapshot.records.back().work.queue, 0x1000u);
}

TEST_F(TracedVerbs, OfEqualRequestsTheOneFailsThatTheStackNames) {
  const History history = traced([](const uiwarp_verbs& verbs, uiwarp_qp* qp) {
    ibv_sge sge{0, 100, 0};
    ibv_send_wr wr = request(5, &sge), *bad = nullptr;
    wr.send_flags = 0;
    for (int i = 0; i < 3; ++i) verbs.qp_post_send(qp, &wr, &bad);
    complete(verbs, 5, IBV_WC_RETRY_EXC_ERR, 2);
  });
  ASSERT_EQ(history.requests.size(), 3u);
  EXPECT_EQ(status_of(history.requests[0]), "unsignaled");
  EXPECT_EQ(status_of(history.requests[1]), "RETRY_EXC_ERR");
  EXPECT_EQ(status_of(history.requests[2]), "open");
}

TEST_F(TracedVerbs, AListThatNobodyReadsHasNoBytes) {
  const History history = traced([](const uiwarp_verbs& verbs, uiwarp_qp* qp) {
    ibv_send_wr wr = request(5, nullptr), *bad = nullptr;
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.num_sge = 3;
    verbs.qp_post_send(qp, &wr, &bad);
  });
  ASSERT_EQ(history.requests.size(), 1u);
  EXPECT_EQ(history.requests[0].bytes, 0u);
}

TEST_F(TracedVerbs, OfAListThatIsRefusedTheFirstPartIsPosted) {
  const History history = traced([](const uiwarp_verbs& verbs, uiwarp_qp* qp) {
    post_error = ENOMEM;
    ibv_sge sge{0, 100, 0};
    ibv_send_wr second = request(2, &sge), first = request(1, &sge), *bad = nullptr;
    first.next = &second;
    if (verbs.qp_post_send(qp, &first, &bad) != ENOMEM || bad != &second) _exit(1);
  });
  ASSERT_EQ(history.requests.size(), 1u);
  EXPECT_EQ(history.requests[0].wr_id, 1u);
  EXPECT_EQ(text_of(history.events.back()), "post refused: ENOMEM");
  EXPECT_EQ(history.events.back().record.work.wr_id, 2u);
}

TEST_F(TracedVerbs, ABatchIsThereOnceItIsPosted) {
  const History history = traced([](const uiwarp_verbs& verbs, uiwarp_qp* qp) {
    ibv_sge sge{0, 100, 0};
    const ibv_send_wr wr = request(1, &sge), other = request(2, &sge);
    verbs.qp_batch_begin(qp);
    verbs.qp_batch_add(qp, &wr);
    verbs.qp_batch_end(qp, 0);
    verbs.qp_batch_begin(qp);
    verbs.qp_batch_add(qp, &other);
    verbs.qp_batch_end(qp, 1);
  });
  ASSERT_EQ(history.requests.size(), 1u);
  EXPECT_EQ(history.requests[0].wr_id, 2u);
}

TEST_F(TracedVerbs, StatesAndAddressesAreToldOfQueuePairs) {
  const History history = traced([](const uiwarp_verbs& verbs, uiwarp_qp* qp) {
    connect(verbs, 7, 4711);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    verbs.qp_modify(qp, &attr, IBV_QP_STATE);
    uint32_t events;
    verbs.qp_destroy(qp, &events);
  });
  std::vector<std::string> told;
  for (const Event& event : history.events) told.push_back(text_of(event));
  EXPECT_THAT(told, ElementsAre("created, RC", "connected 10.0.0.1:4711 10.0.0.2:7174", "state RTS",
                                "destroyed"));
}

TEST_F(TracedVerbs, AMessageThatWaitedInVainHasEndedTheConnection) {
  const History history = traced([](const uiwarp_verbs& verbs, uiwarp_qp*) {
    verbs.receive_awaited(7, 1500, 0);
    verbs.receive_awaited(7, 2500, 1);
  });
  ASSERT_EQ(history.events.size(), 3u);
  EXPECT_EQ(text_of(history.events[1]), "a message waited 1.500 us for a receive");
  EXPECT_EQ(text_of(history.events[2]),
            "a message waited 2.500 us for a receive in vain: the connection ended");
}

TEST_F(TracedVerbs, DroppedReceivesAreRecordedEach) {
  const Snapshot snapshot = snapshot_of(
      [](const uiwarp_verbs& verbs, uiwarp_qp*) {
        const uint64_t wr_ids[] = {3, 4};
        verbs.receives_dropped(7, wr_ids, 2);
      },
      "");
  std::vector<uint64_t> dropped;
  for (const Record& record : snapshot.records)
    if (record.kind == Kind::kDropped && record.qp == 7) dropped.push_back(record.work.wr_id);
  EXPECT_THAT(dropped, ElementsAre(3u, 4u));
}

TEST_F(TracedVerbs, AsynchronousEventsAndInjectedFaultsAreEvents) {
  const History history = traced([](const uiwarp_verbs& verbs, uiwarp_qp*) {
    verbs.async_event_taken(7, IBV_EVENT_QP_FATAL);
    verbs.async_event_taken(0, IBV_EVENT_GID_CHANGE);
    core::on_injected.load()(7, 3, "completes with IBV_WC_RETRY_EXC_ERR");
    core::on_injected.load()(0, 12, "more than there is room for in one record");
  });
  std::vector<std::string> told;
  for (const Event& event : history.events)
    told.push_back(number_of(history, event.queue_pair) + " " + text_of(event));
  EXPECT_THAT(told, ElementsAre("0x000007 created, RC", "0x000007 asynchronous event QP_FATAL",
                                "- asynchronous event GID_CHANGE",
                                "0x000007 fault of line 3: completes with IBV_WC_RETRY_EXC_ERR",
                                "- fault of line 12: more than there is room for in one r"));
}

TEST_F(TracedVerbs, AnFpduIsRecordedWithAllOfItsHeaders) {
  const Snapshot snapshot = snapshot_of([](const uiwarp_verbs& verbs, uiwarp_qp*) {
    const sockaddr_storage nowhere{};
    verbs.connected(7, &nowhere, &nowhere);
    uiwarp_agreement agreement{};
    agreement.initiator = 1;
    agreement.began = 5;
    for (uint8_t i = 0; i < 24; ++i) agreement.request[i] = i, agreement.reply[i] = i + 100;
    verbs.agreed(7, &agreement);
    uiwarp_fpdu fpdu{
        .sent = 1, .time = 1, .position = 0x7777'12345678, .size = 70, .head_size = 70, .head = {}};
    for (uint8_t i = 0; i < 70; ++i) fpdu.head[i] = i;
    verbs.fpdu_passed(7, &fpdu);
    fpdu.sent = 0;
    fpdu.size = 0xffff;
    fpdu.head_size = 14;
    verbs.fpdu_passed(7, &fpdu);
  });
  // As the times above are before that of the connection.
  std::vector<Snapshot> all = {snapshot};
  for (Record& record : all[0].records) record.time = 0;
  std::ranges::sort(all[0].records, {}, &Record::sequence);
  const Wire wire = wire_of(all);
  ASSERT_EQ(wire.connections.size(), 1u);
  EXPECT_EQ(wire.connections[0].agreed.began, 5);
  EXPECT_THAT(wire.connections[0].agreed.request, ElementsAre(16, 17, 18, 19, 20, 21, 22, 23));
  EXPECT_THAT(wire.connections[0].agreed.reply,
              ElementsAre(116, 117, 118, 119, 120, 121, 122, 123));
  ASSERT_EQ(wire.fpdus.size(), 2u);
  EXPECT_TRUE(wire.fpdus[0].by_initiator);
  EXPECT_EQ(wire.fpdus[0].position(), 0x7777'12345678u);
  uint8_t head[WireFpdu::kMaxHead];
  EXPECT_EQ(wire.fpdus[0].head(head), 70u);
  for (uint8_t i = 0; i < sizeof head; ++i) EXPECT_EQ(head[i], i < 70 ? i : 0);
  EXPECT_FALSE(wire.fpdus[1].by_initiator);
  EXPECT_EQ(wire.fpdus[1].record->fpdu.ulpdu_size, 0xffff);
  EXPECT_EQ(wire.fpdus[1].head(head), 14u);
}

// What a file of 64 KiB has room for: of 960 records 15 are for connections.
constexpr size_t kConnections = 15, kRoom = (65536 - kHeaderSize) / kRecordSize - kConnections;

// The local ends of the queue pairs of a history, by number.
std::map<uint32_t, std::string> locals(const History& history) {
  std::map<uint32_t, std::string> all;
  for (const QueuePair& qp : history.queue_pairs) all[qp.number] = local_of(qp);
  return all;
}

TEST_F(TracedVerbs, TheConnectionOfAQueuePairIsKnownHoweverMuchItDid) {
  const History history = traced(
      [](const uiwarp_verbs& verbs, uiwarp_qp*) {
        for (uint16_t i = 0; i < kConnections; ++i) connect(verbs, 10 + i, 4000 + i);
        // It is over, and so its place is another one's first.
        write(record_of(Kind::kDestroyed, 13, 1));
        connect(verbs, 40, 5000);
        // Its number is another queue pair's, which has no connection.
        write(record_of(Kind::kCreated, 14, 1));
        for (size_t i = 0; i < kRoom; ++i)
          write(record_of(Kind::kState, i % 2 ? 10 + i % kConnections : 40, 5));
      },
      ",size=64K");
  EXPECT_GT(history.processes[0].lost, kConnections);
  const auto ends = locals(history);
  for (uint16_t i = 0; i < kConnections; ++i) {
    const bool is_known = i != 3 && i != 4;
    EXPECT_EQ(ends.at(10 + i), is_known ? "10.0.0.1:" + std::to_string(4000 + i) : "-");
  }
  EXPECT_EQ(ends.at(40), "10.0.0.1:5000");
  EXPECT_EQ(history.events.size(), kRoom) << "what is told again is no event";
}

TEST_F(TracedVerbs, TheNewestRecordsStayInAFileOfItsSize) {
  const History history = traced(
      [](const uiwarp_verbs&, uiwarp_qp*) {
        std::vector<std::thread> threads;
        for (uint32_t t = 0; t < 4; ++t)
          threads.emplace_back([t] {
            for (int64_t i = 0; i < 1000; ++i) {
              Record record = record_of(Kind::kDestroyed, t + 10, i);
              write(record);
            }
          });
        for (std::thread& thread : threads) thread.join();
        // Who was not scheduled for a whole round may have written over a newer one.
        for (size_t i = 0; i < kRoom; ++i) write(record_of(Kind::kDestroyed, 9, 2000));
      },
      ",size=64K");
  EXPECT_EQ(history.events.size(), kRoom);
  EXPECT_EQ(history.processes[0].lost, 4001u);
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 65536);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

// As the first processes of two containers do.
TEST_F(TracedVerbs, AProcessThatHasTheNumberOfOneBeforeReplacesItsFile) {
  traced([](const uiwarp_verbs&, uiwarp_qp*) {});
  const auto look_with = [&](uint64_t started) {
    FILE* const file = std::fopen(path_.c_str(), "r+");
    Header header{};
    EXPECT_TRUE(file && std::fread(&header, sizeof header, 1, file) == 1);
    if (!file) return Place::kForeign;
    EXPECT_NE(header.started, 0u);
    header.pid = static_cast<uint32_t>(getpid());
    header.started = started;
    std::rewind(file);
    EXPECT_EQ(std::fwrite(&header, sizeof header, 1, file), 1u);
    std::fclose(file);
    return look_at(path_);
  };
  EXPECT_EQ(look_with(started_at(getpid())), Place::kInUse);
  EXPECT_EQ(look_with(started_at(getpid()) - 1), Place::kFree);
}

TEST_F(TracedVerbs, ALimitOfFilesDoesNotEndTheProgram) {
  ASSERT_TRUE(configure(path_.c_str()));
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
    _exit(open_ring());
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), EFBIG);
  EXPECT_NE(access(path_.c_str(), F_OK), 0);
}

TEST_F(TracedVerbs, AnotherProcessThatRunsKeepsItsFile) {
  ASSERT_TRUE(configure(path_.c_str()));
  ASSERT_EQ(open_ring(), 0);
  write(record_of(Kind::kDestroyed, 42, 0));
  const pid_t child = fork();
  if (child == 0) {
    // Its parent's ring is none of its own.
    write(record_of(Kind::kDestroyed, 43, 0));
    const int error = open_ring();
    write(record_of(Kind::kDestroyed, 44, 0));
    _exit(error);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const std::string other = path_ + "." + std::to_string(child);
  Snapshot mine, its;
  EXPECT_EQ(read(path_, mine), "");
  EXPECT_EQ(read(other, its), "");
  std::remove(other.c_str());
  ASSERT_EQ(mine.records.size(), 1u);
  EXPECT_EQ(mine.records[0].qp, 42u);
  ASSERT_EQ(its.records.size(), 1u);
  EXPECT_EQ(its.records[0].qp, 44u);
}

}  // namespace
}  // namespace uiw::trace
