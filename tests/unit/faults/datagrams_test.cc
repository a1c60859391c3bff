// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Rules of datagrams, and of connections that are requested of the process.
#include <arpa/inet.h>
#include <gmock/gmock.h>

#include "core/cause.h"
#include "faults/injection.h"
#include "faults/wraps.h"
#include "unit/faults/faulty.h"

namespace uiw::faults {
namespace {

using testing::ElementsAre;

constexpr uint32_t kQkey = 0x11111111;

// What twenty editions of these rules do with sixteen events: each the same, and not always one.
template <class Event>
void expect_the_same(const char* text, Event event) {
  std::vector<int> first;
  for (int turn = 0; turn < 20; ++turn) {
    Rules rules;
    ASSERT_EQ(parse(text, rules), "");
    put_in_force(std::move(rules));
    std::vector<int> fates;
    for (int i = 0; i < 16; ++i) fates.push_back(event());
    if (turn == 0) first = fates;
    EXPECT_EQ(fates, first) << "turn " << turn;
  }
  EXPECT_NE(std::ranges::count(first, first[0]), 16);
}

class FaultyDatagrams : public FaultyVerbs {
 protected:
  FaultyDatagrams() { type_ = IBV_QPT_UD; }
  ibv_send_wr datagram(uint64_t wr_id) {
    ibv_send_wr wr = request(wr_id);
    wr.wr.ud.remote_qkey = kQkey;
    return wr;
  }
  uiwarp_datagram_fate arriving() {
    delay_ = 0;
    return verbs_->datagram_arriving(of(qp_).number, &delay_);
  }
  std::vector<bool> lost() {
    const std::lock_guard lock(fake::mutex);
    std::vector<bool> list;
    for (const ibv_send_wr& wr : behind_qp_->posted) list.push_back(wr.wr.ud.remote_qkey != kQkey);
    return list;
  }
  uint64_t delay_ = 0;  // of the last one that was arriving
};

TEST_F(FaultyDatagrams, OneThatIsLostLeavesWithAKeyThatNobodyHas) {
  begin("op=UD_SEND nth=2 drop\nop=SEND nth=1 status=GENERAL_ERR");
  ibv_send_wr first = datagram(1), second = datagram(2), third = datagram(3), *bad = nullptr;
  first.next = &second;
  second.next = &third;
  EXPECT_EQ(verbs_->qp_post_send(qp_, &first, &bad), 0);
  EXPECT_THAT(lost(), ElementsAre(false, true, false));
  EXPECT_EQ(second.wr.ud.remote_qkey, kQkey);  // the program's own is as it was
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_),
              ElementsAre(Completion(1, IBV_WC_SUCCESS), Completion(2, IBV_WC_SUCCESS),
                          Completion(3, IBV_WC_SUCCESS)));
}

TEST_F(FaultyDatagrams, ThoseOfABatchAreCountedByTheirAddresses) {
  begin("op=UD_SEND nth=2 drop");
  verbs_->qp_batch_begin(qp_);
  for (uint64_t i = 1; i <= 3; ++i) {
    const ibv_send_wr wr = request(i);
    EXPECT_EQ(verbs_->qp_batch_add(qp_, &wr), 0);
    EXPECT_EQ(verbs_->qp_batch_address(qp_, nullptr, 5, kQkey), 0);
  }
  EXPECT_EQ(verbs_->qp_batch_end(qp_, 1), 0);
  EXPECT_THAT(lost(), ElementsAre(false, true, false));
}

// Without having been sent; and the queue pair goes to ERR.
TEST_F(FaultyDatagrams, OneThatIsToFailCompletesSoAndWhatIsBehindItFlushes) {
  begin("op=UD_SEND nth=2 status=LOC_PROT_ERR\nop=RECV nth=1 status=GENERAL_ERR");
  fake::receive(*behind_qp_, 20);
  EXPECT_THAT(poll(receives_), ElementsAre(Completion(20, IBV_WC_SUCCESS)));
  EXPECT_EQ(post(datagram(1)), 0);
  EXPECT_EQ(post(datagram(2)), 0);
  ibv_send_wr unsignaled = datagram(3);
  unsignaled.send_flags = 0;
  EXPECT_EQ(post(unsignaled), 0);
  EXPECT_THAT(lost(), ElementsAre(false, true, true));
  fake::complete_sends(*behind_qp_);
  std::vector<ibv_wc> all = poll_all(sends_);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(all[1].status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(all[2].status, IBV_WC_WR_FLUSH_ERR);
  for (int i = 1; i < 3; ++i)
    EXPECT_EQ(all[i].vendor_err, static_cast<uint32_t>(core::Cause::kInjected));
  EXPECT_EQ(fake::state_of(*behind_qp_), IBV_QPS_ERR);
  EXPECT_EQ(post(datagram(4)), 0);
  EXPECT_THAT(poll(sends_), ElementsAre(Completion(4, IBV_WC_WR_FLUSH_ERR)));
}

TEST_F(FaultyDatagrams, OneOfABatchThatIsNotPostedDoesNotFail) {
  begin("op=UD_SEND nth=2 status=GENERAL_ERR");
  for (const int publish : {0, 1}) {
    verbs_->qp_batch_begin(qp_);
    // Two that are not posted, one that is.
    for (uint64_t wr_id = 1; wr_id <= (publish ? 1 : 2); ++wr_id) {
      const ibv_send_wr wr = request(wr_id);
      EXPECT_EQ(verbs_->qp_batch_add(qp_, &wr), 0);
      EXPECT_EQ(verbs_->qp_batch_address(qp_, nullptr, 5, kQkey), 0);
    }
    EXPECT_EQ(verbs_->qp_batch_end(qp_, publish), 0);
  }
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_), ElementsAre(Completion(1, IBV_WC_SUCCESS)));
}

TEST_F(FaultyDatagrams, WhatComesIsLostOrComesTwiceOrBehindTheNextOrLate) {
  begin(
      "op=UD_RECV nth=1 drop\nop=UD_RECV nth=2 duplicate\nop=UD_RECV nth=3 reorder\n"
      "op=UD_RECV nth=4 delay=5ms");
  std::vector<uiwarp_datagram_fate> fates;
  for (int i = 0; i < 5; ++i) {
    fates.push_back(arriving());
    EXPECT_EQ(delay_, i == 3 ? 5'000'000u : 0u);
  }
  EXPECT_THAT(fates,
              ElementsAre(UIWARP_DATAGRAM_LOST, UIWARP_DATAGRAM_TWICE, UIWARP_DATAGRAM_OVERTAKEN,
                          UIWARP_DATAGRAM_LATE, UIWARP_DATAGRAM_ARRIVES));
  EXPECT_EQ(verbs_->datagram_arriving(of(qp_).number + 1, &delay_), UIWARP_DATAGRAM_ARRIVES);
}

// And come again when other rules are in force.
TEST_F(FaultyDatagrams, AreLostWhileThePortIsDown) {
  begin("dev=uiw_fake at=1ms port=down");
  uiwarp_context* context = nullptr;
  int fd = -1;
  EXPECT_EQ(verbs_->context_open(nullptr, 0, &context, &fd), 0);
  ASSERT_TRUE(comes_true([&] { return arriving() == UIWARP_DATAGRAM_LOST; }));
  EXPECT_EQ(post(datagram(1)), 0);
  EXPECT_THAT(lost(), ElementsAre(true));
  let_ports_go();
  EXPECT_EQ(arriving(), UIWARP_DATAGRAM_ARRIVES);
  EXPECT_EQ(post(datagram(2)), 0);
  EXPECT_THAT(lost(), ElementsAre(true, false));
}

TEST_F(FaultyDatagrams, MeetTheSameByTheSameSeed) {
  begin("op=UD_RECV drop");
  expect_the_same("seed 9\nop=UD_RECV probability=0.4 drop\nop=UD_RECV probability=0.4 duplicate",
                  [&] { return arriving(); });
}

TEST_F(FaultyDatagrams, AreAsLateByTheSameSeed) {
  begin("op=UD_RECV drop");
  expect_the_same("seed 9\nop=UD_RECV probability=0.4 delay=1ms..60ms", [&] {
    arriving();
    return static_cast<int>(delay_);
  });
}

class RequestedConnections : public FaultyVerbs {
 protected:
  static sockaddr_storage end(const char* address, uint16_t port) {
    sockaddr_storage storage{};
    auto& in = reinterpret_cast<sockaddr_in&>(storage);
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    inet_pton(AF_INET, address, &in.sin_addr);
    return storage;
  }
  uiwarp_connect_fate request_from(uint16_t port, uint16_t to = 7174) {
    const sockaddr_storage local = end("10.0.0.1", to), peer = end("10.0.0.2", port);
    return verbs_->cm_accepting(&local, &peer);
  }
};

TEST_F(RequestedConnections, AreRejectedOrNotAnsweredByTheirCountAndPort) {
  begin("accept port=7174 nth=2 reject\naccept nth=2 timeout");
  EXPECT_EQ(request_from(1000), UIWARP_CONNECT_GOES_ON);
  EXPECT_EQ(request_from(1001, 7175), UIWARP_CONNECT_UNANSWERED);
  EXPECT_EQ(request_from(1002), UIWARP_CONNECT_REJECTED);
  EXPECT_EQ(request_from(1003), UIWARP_CONNECT_GOES_ON);
}

TEST_F(RequestedConnections, MeetTheSameByTheSameSeed) {
  begin("accept reject");
  expect_the_same("seed 9\naccept probability=0.4 reject\naccept probability=0.4 timeout",
                  [&] { return request_from(1000); });
}

TEST_F(RequestedConnections, AreResetWithTheirQueuePairsRequests) {
  begin("accept nth=1 reset");
  EXPECT_EQ(request_from(1000), UIWARP_CONNECT_GOES_ON);
  const sockaddr_storage local = end("10.0.0.1", 7174), peer = end("10.0.0.2", 1000),
                         another = end("10.0.0.2", 1001);
  uiwarp_qp* const other = make_qp();
  verbs_->connected(of(other).number, &local, &another);
  verbs_->connected(of(qp_).number, &local, &peer);
  EXPECT_FALSE(of(other).doom);
  EXPECT_EQ(post(request(1)), 0);
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_), ElementsAre(Completion(1, IBV_WC_WR_FLUSH_ERR)));
  EXPECT_EQ(behind_qp_->breaks, 1);
  uint32_t events;
  EXPECT_EQ(verbs_->qp_destroy(other, &events), 0);
}

}  // namespace
}  // namespace uiw::faults
