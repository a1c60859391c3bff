// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Rules that meet a time, a completion or a host.
#include <arpa/inet.h>
#include <gmock/gmock.h>

#include <atomic>
#include <utility>

#include "core/cause.h"
#include "core/gid.h"
#include "faults/later.h"
#include "unit/faults/faulty.h"

namespace uiw::faults {
namespace {

using testing::ElementsAre;

class TimedFaults : public FaultyVerbs {
 protected:
  void SetUp() override {
    fake::happenings.clear();
    set_patience(0);
  }
  static void set_patience(core::Nanoseconds patience) {
    const std::lock_guard lock(fake::mutex);
    fake::patience = patience;
  }
  // Polls until there are so many.
  std::vector<ibv_wc> poll_for(uiwarp_cq* cq, size_t count) {
    std::vector<ibv_wc> all;
    EXPECT_TRUE(comes_true([&] {
      for (const ibv_wc& wc : poll_all(cq)) all.push_back(wc);
      return all.size() >= count;
    }));
    return all;
  }
  void take_port_down() {
    begin("dev=uiw_fake at=1ms port=down");
    open_device();
    ASSERT_TRUE(has_happened("uiw_fake down"));
  }
  void open_device() {
    uiwarp_context* context = nullptr;
    int fd = -1;
    EXPECT_EQ(verbs_->context_open(nullptr, 0, &context, &fd), 0);
  }
  bool is_deaf() {
    const std::lock_guard lock(fake::mutex);
    return behind_qp_->deaf;
  }
  // What comes last comes behind all that was to come a millisecond after another.
  static void expect_all_that_is_over_was_lifted() {
    std::atomic<bool> last{false};
    EXPECT_TRUE(later(core::now() + 2 * core::kMillisecond, [&last] { last = true; }));
    ASSERT_TRUE(comes_true([&] { return last.load(); }));
  }
  bool has_happened(const char* what) {
    return comes_true([&] {
      const auto all = fake::all_that_happened();
      return std::ranges::find(all, what) != all.end();
    });
  }
  std::vector<ibv_wr_opcode> seen() {
    const std::lock_guard lock(fake::mutex);
    return behind_qp_->seen;
  }
  void connect_to(const char* address) {
    sockaddr_storage peer{};
    peer.ss_family = AF_INET;
    inet_pton(AF_INET, address, &reinterpret_cast<sockaddr_in&>(peer).sin_addr);
    verbs_->connected(of(qp_).number, &peer, &peer);
  }
};

TEST_F(TimedFaults, HappenInTheirOrderAfterTheFirstDeviceIsOpen) {
  begin("dev=* at=3ms event=LID_CHANGE\ngid=shift at=2ms\ndev=uiw_fake at=1ms event=PORT_ERR");
  open_device();
  open_device();
  ASSERT_TRUE(has_happened("* 11"));
  EXPECT_THAT(fake::all_that_happened(), ElementsAre("uiw_fake 10", "* shift", "* 11"));
}

TEST_F(TimedFaults, ADeviceThatIsNotThereIsToldOfAtTheBeginning) {
  begin(
      "dev=uiw_none at=1000s port=down\ndev=uiw_fake at=1000s port=down\ndev=* at=1000s "
      "event=PORT_ERR");
  testing::internal::CaptureStderr();
  open_device();
  open_device();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, testing::HasSubstr("faults: line 1: there is no device uiw_none now"));
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
}

TEST_F(TimedFaults, QueuePairsOfADeviceThatFailsGoToErr) {
  begin("dev=uiw_fake at=1ms event=DEVICE_FATAL");
  EXPECT_EQ(post(request(1)), 0);
  open_device();
  ASSERT_TRUE(has_happened("uiw_fake 8"));
  ASSERT_TRUE(comes_true([&] { return fake::state_of(*behind_qp_) == IBV_QPS_ERR; }));
  const std::vector<ibv_wc> all = poll_all(sends_);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(all[0].vendor_err, static_cast<uint32_t>(core::Cause::kInjected));
}

TEST_F(TimedFaults, NothingLeavesOrArrivesWhileThePortIsDown) {
  begin("dev=uiw_fake at=1ms port=down for=300ms");
  EXPECT_EQ(post(request(1)), 0);
  open_device();
  ASSERT_TRUE(has_happened("uiw_fake down"));
  const core::Nanoseconds down = core::now();
  EXPECT_TRUE(comes_true([&] { return is_deaf(); })) << "what its peer does goes on";
  fake::complete_sends(*behind_qp_);
  fake::receive(*behind_qp_, 9);
  EXPECT_EQ(post(request(2, IBV_WR_RDMA_WRITE)), 0);
  EXPECT_EQ(post(request(3)), 0);
  const std::vector<ibv_wr_opcode> posted = seen();
  if (core::now() < down + 250 * core::kMillisecond)  // else this thread was kept waiting
    EXPECT_THAT(posted, ElementsAre(IBV_WR_SEND));
  // What has come before is there, as an adapter has it.
  EXPECT_THAT(poll(sends_), ElementsAre(Completion(1, IBV_WC_SUCCESS)));
  EXPECT_THAT(poll(receives_), ElementsAre(Completion(9, IBV_WC_SUCCESS)));
  ASSERT_TRUE(has_happened("uiw_fake up"));
  EXPECT_TRUE(comes_true([&] { return !is_deaf(); }));
  ASSERT_TRUE(comes_true([&] { return seen().size() == 3; }));
  EXPECT_THAT(seen(), ElementsAre(IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_SEND));
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_),
              ElementsAre(Completion(2, IBV_WC_SUCCESS), Completion(3, IBV_WC_SUCCESS)));
}

TEST_F(TimedFaults, APortThatTwoRulesHoldIsDownUntilBothAreOver) {
  begin(
      "dev=uiw_fake at=1ms port=down\ndev=uiw_fake at=2ms port=down for=1ms\n"
      "dev=uiw_fake at=3ms event=LID_CHANGE");
  open_device();
  ASSERT_TRUE(has_happened("uiw_fake 11"));
  expect_all_that_is_over_was_lifted();
  EXPECT_THAT(fake::all_that_happened(),
              testing::Not(testing::Contains(std::string("uiw_fake up"))));
  EXPECT_TRUE(is_deaf());
  EXPECT_NE(down_until("uiw_fake"), 0);
  let_ports_go();
  EXPECT_THAT(fake::all_that_happened(), testing::Contains(std::string("uiw_fake up")).Times(1));
  EXPECT_FALSE(is_deaf());
  EXPECT_EQ(down_until("uiw_fake"), 0);
}

TEST_F(TimedFaults, APortOfAllDevicesStaysDownBehindItsOwnRule) {
  begin(
      "dev=* at=1ms port=down\ndev=uiw_fake at=2ms port=down for=1ms\n"
      "dev=uiw_fake at=3ms event=LID_CHANGE");
  open_device();
  ASSERT_TRUE(has_happened("uiw_fake 11"));
  expect_all_that_is_over_was_lifted();
  // The stack knows both; what is its own is let go.
  EXPECT_TRUE(has_happened("uiw_fake up"));
  EXPECT_TRUE(is_deaf());
  EXPECT_NE(down_until("uiw_fake"), 0);
  let_ports_go();
  EXPECT_TRUE(has_happened("* up"));
  EXPECT_FALSE(is_deaf());
}

TEST_F(TimedFaults, WhatIsPostedWhileThePortIsDownIsNotAnsweredInTime) {
  set_patience(20 * core::kMillisecond);
  take_port_down();
  uiwarp_qp* const idle = make_qp();
  const core::Nanoseconds start = core::now();
  EXPECT_EQ(post(request(1)), 0);
  EXPECT_EQ(post(request(2, IBV_WR_RDMA_WRITE, 0)), 0);
  const std::vector<ibv_wc> all = poll_for(sends_, 2);
  EXPECT_GE(core::now(), start + 20 * core::kMillisecond);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(Completion(all[0].wr_id, all[0].status), Completion(1, IBV_WC_RETRY_EXC_ERR));
  EXPECT_EQ(Completion(all[1].wr_id, all[1].status), Completion(2, IBV_WC_WR_FLUSH_ERR));
  for (const ibv_wc& wc : all)
    EXPECT_EQ(wc.vendor_err, static_cast<uint32_t>(core::Cause::kInjected));
  EXPECT_THAT(seen(), testing::Not(testing::Contains(IBV_WR_RDMA_WRITE))) << "it has left";
  EXPECT_EQ(behind_qp_->breaks, 1);
  // In ERR nothing waits.
  EXPECT_EQ(post(request(3)), 0);
  EXPECT_EQ(poll_for(sends_, 1)[0].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(fake::state_of(fake::of(of(idle).next)), IBV_QPS_RTS) << "nothing was posted to it";
  uint32_t events;
  EXPECT_EQ(verbs_->qp_destroy(idle, &events), 0);
}

TEST_F(TimedFaults, AQueuePairByNumberHasNoConnectionThatIsResetByATimeOut) {
  set_patience(5 * core::kMillisecond);
  take_port_down();
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.dest_qp_num = 0x123456;
  EXPECT_EQ(verbs_->qp_modify(qp_, &attr, IBV_QP_STATE | IBV_QP_DEST_QPN), 0);
  EXPECT_EQ(post(request(1)), 0);
  EXPECT_EQ(poll_for(sends_, 1)[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(fake::state_of(*behind_qp_), IBV_QPS_ERR);
  EXPECT_EQ(behind_qp_->breaks, 0);
}

TEST_F(TimedFaults, WhatIsNotAnsweredInTimeFailsBeforeReceivesFlush) {
  set_patience(5 * core::kMillisecond);
  take_port_down();
  uiwarp_cq* const receives = std::exchange(receives_, sends_);
  uiwarp_qp* const other = std::exchange(qp_, make_qp());
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = 7;
  EXPECT_EQ(verbs_->qp_post_recv(qp_, &wr, &bad), 0);
  EXPECT_EQ(post(request(1)), 0);
  const std::vector<ibv_wc> all = poll_for(sends_, 2);
  EXPECT_EQ(Completion(all[0].wr_id, all[0].status), Completion(1, IBV_WC_RETRY_EXC_ERR));
  EXPECT_EQ(Completion(all[1].wr_id, all[1].status), Completion(7, IBV_WC_WR_FLUSH_ERR));
  uint32_t events;
  EXPECT_EQ(verbs_->qp_destroy(std::exchange(qp_, other), &events), 0);
  receives_ = receives;
}

TEST_F(TimedFaults, BehindWhatTheStackHasGivenUpTheRestFlushes) {
  begin("dev=uiw_fake at=1ms port=down");
  EXPECT_EQ(post(request(1)), 0);
  open_device();
  ASSERT_TRUE(has_happened("uiw_fake down"));
  EXPECT_EQ(post(request(2)), 0);
  fake::time_out(*behind_qp_);
  const std::vector<ibv_wc> all = poll_for(sends_, 2);
  EXPECT_EQ(Completion(all[0].wr_id, all[0].status), Completion(1, IBV_WC_RETRY_EXC_ERR));
  EXPECT_EQ(Completion(all[1].wr_id, all[1].status), Completion(2, IBV_WC_WR_FLUSH_ERR));
}

TEST_F(TimedFaults, ACompletionIsLostAndItsQueueOverruns) {
  begin("cq=* nth=2 overrun");
  for (uint64_t i = 1; i <= 3; ++i) EXPECT_EQ(post(request(i)), 0);
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_),
              ElementsAre(Completion(1, IBV_WC_SUCCESS), Completion(3, IBV_WC_SUCCESS)));
  EXPECT_EQ(behind_qp_->send_cq->overruns, 1);
  EXPECT_EQ(behind_qp_->recv_cq->overruns, 0);
  // It was not the program.
  EXPECT_EQ(verbs_->cq_has_overflowed(sends_), UIWARP_OVERRUN);
}

TEST_F(TimedFaults, AQueueThatOverflowedByItselfHasOverflowed) {
  begin("cq=* nth=1 overrun");
  EXPECT_EQ(verbs_->cq_has_overflowed(sends_), 0);
  behind_qp_->send_cq->overruns = 1;
  EXPECT_EQ(verbs_->cq_has_overflowed(sends_), UIWARP_OVERFLOWED);
  EXPECT_EQ(post(request(1)), 0);
  fake::complete_sends(*behind_qp_);
  poll(sends_);
  EXPECT_EQ(verbs_->cq_has_overflowed(sends_), UIWARP_OVERFLOWED);
}

// Who reads the log must not take it for the stack's, or the program's.
TEST_F(TimedFaults, ARuleIsSaidBeforeTheStackSaysWhatCameOfIt) {
  begin("cq=* nth=1 overrun\naccept reset");
  const sockaddr_storage nowhere{};
  verbs_->cm_accepting(&nowhere, &nowhere);
  verbs_->connected(of(qp_).number, &nowhere, &nowhere);
  EXPECT_EQ(post(request(1)), 0);
  testing::internal::CaptureStderr();
  fake::complete_sends(*behind_qp_);
  poll(sends_);
  const std::string said = testing::internal::GetCapturedStderr();
  std::vector<size_t> places;
  for (const char* const what :
       {"is reset", "its completion queue overruns", "a queue is full", "a connection is reset"})
    places.push_back(said.find(what));
  EXPECT_LT(places.back(), said.size()) << said;
  EXPECT_TRUE(std::ranges::is_sorted(places)) << said;
}

TEST_F(TimedFaults, WhatGoesToAPacedHostLeavesLaterInItsOrder) {
  begin("peer=10.0.0.2 delay=50ms");
  connect_to("10.0.0.3");
  EXPECT_EQ(post(request(1)), 0);
  EXPECT_EQ(seen().size(), 1u);
  connect_to("10.0.0.2");
  const core::Nanoseconds start = core::now();
  char octets[4] = "abc";
  ibv_sge sge{reinterpret_cast<uint64_t>(octets), 3, 0};
  ibv_send_wr wr = request(2, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
  wr.num_sge = 1;
  wr.sg_list = &sge;
  EXPECT_EQ(post(wr), 0);
  octets[0] = 'x';  // inline data was taken
  EXPECT_EQ(post(request(3)), 0);
  ASSERT_TRUE(comes_true([&] { return seen().size() == 3; }));
  EXPECT_GE(core::now(), start + 50 * core::kMillisecond);
  EXPECT_THAT(seen(), ElementsAre(IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_SEND));
  {
    const std::lock_guard lock(fake::mutex);
    EXPECT_EQ(behind_qp_->inlined, "abc");
  }
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_),
              ElementsAre(Completion(1, IBV_WC_SUCCESS), Completion(2, IBV_WC_SUCCESS),
                          Completion(3, IBV_WC_SUCCESS)));
}

TEST_F(TimedFaults, WhatTheStackRefusesIsNotKeptBack) {
  begin("peer=10.0.0.2 delay=1ms");
  connect_to("10.0.0.2");
  ibv_sge sges[100]{};
  for (const int count : {-1, 2, 100}) {
    ibv_send_wr wr = request(1);
    wr.sg_list = sges;
    wr.num_sge = count;
    EXPECT_EQ(post(wr), EINVAL) << count;
  }
  EXPECT_EQ(post(request(2)), 0);
  ASSERT_TRUE(comes_true([&] { return seen().size() == 1; }));
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_), ElementsAre(Completion(2, IBV_WC_SUCCESS)));
}

TEST_F(TimedFaults, AListThatNobodyReadsIsNotRead) {
  begin("peer=10.0.0.2 delay=1ms");
  connect_to("10.0.0.2");
  ibv_send_wr wr = request(1, IBV_WR_LOCAL_INV);
  wr.num_sge = 3;  // of no list
  EXPECT_EQ(post(wr), 0);
  ASSERT_TRUE(comes_true([&] { return seen().size() == 1; }));
}

// --check gives a copy of its own.
TEST_F(TimedFaults, TheRegionOfAWindowMayGoWhenItsRequestIsPosted) {
  begin("peer=10.0.0.2 delay=1ms");
  connect_to("10.0.0.2");
  ibv_mw window{};
  ibv_mr region{};
  region.lkey = 7;
  ibv_send_wr wr = request(1, IBV_WR_BIND_MW);
  wr.bind_mw.mw = &window;
  wr.bind_mw.bind_info.mr = &region;
  EXPECT_EQ(post(wr), 0);
  region.lkey = 8;
  ASSERT_TRUE(comes_true([&] { return seen().size() == 1; }));
  const std::lock_guard lock(fake::mutex);
  EXPECT_EQ(behind_qp_->bound, 7u);
}

TEST_F(TimedFaults, NoMoreIsKeptBackThanTheQueueHasRoomFor) {
  begin("peer=10.0.0.2 delay=60s", 2);
  connect_to("10.0.0.2");
  EXPECT_EQ(post(request(1)), 0);
  EXPECT_EQ(post(request(2)), 0);
  EXPECT_EQ(post(request(3)), ENOMEM);
  // What is kept back flushes with the rest.
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(verbs_->qp_modify(qp_, &attr, IBV_QP_STATE), 0);
  EXPECT_THAT(poll(sends_),
              ElementsAre(Completion(1, IBV_WC_WR_FLUSH_ERR), Completion(2, IBV_WC_WR_FLUSH_ERR)));
}

TEST_F(TimedFaults, ABatchIsKeptBackAsAWhole) {
  begin("peer=10.0.0.2 delay=1ms");
  connect_to("10.0.0.2");
  const ibv_send_wr first = request(1), second = request(2, IBV_WR_RDMA_WRITE);
  verbs_->qp_batch_begin(qp_);
  EXPECT_EQ(verbs_->qp_batch_add(qp_, &first), 0);
  EXPECT_EQ(verbs_->qp_batch_end(qp_, 0), 0);  // not after all
  verbs_->qp_batch_begin(qp_);
  EXPECT_EQ(verbs_->qp_batch_add(qp_, &second), 0);
  EXPECT_EQ(verbs_->qp_batch_end(qp_, 1), 0);
  ASSERT_TRUE(comes_true([&] { return !seen().empty(); }));
  EXPECT_THAT(seen(), ElementsAre(IBV_WR_RDMA_WRITE));
}

}  // namespace
}  // namespace uiw::faults
