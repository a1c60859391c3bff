// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/rules.h"
#include "core/cause.h"
#include "core/verbs_names.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace uiw::check {
namespace {

using testing::HasSubstr;

const int g_domain = 0;
constexpr ibv_qp_cap kCap = {.max_send_wr = 2,
                             .max_recv_wr = 2,
                             .max_send_sge = 1,
                             .max_recv_sge = 1,
                             .max_inline_data = 16};

ibv_send_wr send_wr(ibv_sge& sge, ibv_wr_opcode opcode = IBV_WR_SEND) {
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  return wr;
}

const Requests kNone{Requests::Of::kSends};

Requests outstanding(bool signaled) {
  Requests requests = kNone;
  for (int i = 0; i < 2; ++i) {
    Request request;
    request.signaled = signaled && i == 1;
    requests.add(request);
  }
  return requests;
}

TEST(Refusals, AFullSendQueueIsAFaultWhenNothingInItCompletes) {
  ibv_sge sge{0, 1, 0};
  const ibv_send_wr wr = send_wr(sge);
  const auto fault = why_send_refused(wr, ENOMEM, IBV_QPS_RTS, kCap, outstanding(false));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, Kind::kSendQueueFull);
  EXPECT_THAT(fault->what, HasSubstr("max_send_wr 2"));
  EXPECT_FALSE(why_send_refused(wr, ENOMEM, IBV_QPS_RTS, kCap, outstanding(true)));
  EXPECT_FALSE(why_send_refused(wr, ENOMEM, IBV_QPS_RTS, kCap, kNone));
  ibv_qp_cap deeper = kCap;
  deeper.max_send_wr = 3;
  EXPECT_FALSE(why_send_refused(wr, ENOMEM, IBV_QPS_RTS, deeper, outstanding(false)));
}

TEST(Refusals, SendsAreForRts) {
  ibv_sge sge{0, 1, 0};
  const ibv_send_wr wr = send_wr(sge);
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR}) {
    const auto fault = why_send_refused(wr, EINVAL, state, kCap, kNone);
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->kind, Kind::kWrongState);
    EXPECT_THAT(fault->what, HasSubstr(core::name_of(state)));
  }
  EXPECT_FALSE(why_send_refused(wr, EINVAL, IBV_QPS_RTS, kCap, kNone));
  EXPECT_FALSE(why_send_refused(wr, ENODEV, IBV_QPS_RESET, kCap, kNone));
}

TEST(Refusals, AFullQueueWhoseCompletionsWaitIsNotPolled) {
  Requests requests = kNone;
  requests.add({});
  EXPECT_FALSE(not_polled(ENOMEM, requests, 0));
  EXPECT_FALSE(not_polled(EINVAL, requests, 3));
  const auto fault = not_polled(ENOMEM, requests, 3);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, Kind::kSendQueueFull);
  EXPECT_THAT(fault->what, HasSubstr("holds 1 requests, while 3 completions wait"));
}

TEST(Refusals, ReceivesAreNotForResetOrBesideASharedQueue) {
  EXPECT_EQ(why_receive_refused(EINVAL, IBV_QPS_RESET, false)->kind, Kind::kWrongState);
  EXPECT_EQ(why_receive_refused(EINVAL, IBV_QPS_RTS, true)->kind, Kind::kWrongState);
  EXPECT_FALSE(why_receive_refused(EINVAL, IBV_QPS_RTS, false));
  EXPECT_FALSE(why_receive_refused(ENOMEM, IBV_QPS_RESET, true));
}

TEST(Refusals, AtomicsAreAligned) {
  ibv_sge sge{0, 8, 0};
  ibv_send_wr wr = send_wr(sge, IBV_WR_ATOMIC_FETCH_AND_ADD);
  wr.wr.atomic.remote_addr = 12;
  EXPECT_EQ(why_send_refused(wr, EINVAL, IBV_QPS_RTS, kCap, kNone)->kind, Kind::kAtomicMisaligned);
  wr.wr.atomic.remote_addr = 16;
  EXPECT_FALSE(why_send_refused(wr, EINVAL, IBV_QPS_RTS, kCap, kNone));
  sge.length = 4;
  EXPECT_EQ(why_send_refused(wr, EINVAL, IBV_QPS_RTS, kCap, kNone)->kind, Kind::kAtomicMisaligned);
}

TEST(Refusals, InlineDataIsWhatWasAskedFor) {
  ibv_sge sge{0, 17, 0};
  ibv_send_wr wr = send_wr(sge);
  EXPECT_FALSE(inline_not_asked(wr, 16));
  wr.send_flags = IBV_SEND_INLINE;
  EXPECT_EQ(inline_not_asked(wr, 16)->kind, Kind::kInline);
  EXPECT_FALSE(inline_not_asked(wr, 17));
  EXPECT_EQ(why_send_refused(wr, EINVAL, IBV_QPS_RTS, kCap, kNone)->kind, Kind::kInline);
  // Whose list nobody reads.
  wr.opcode = IBV_WR_LOCAL_INV;
  wr.sg_list = nullptr;
  EXPECT_FALSE(inline_not_asked(wr, 16));
}

class FailedCompletions : public testing::Test {
 protected:
  FailedCompletions() {
    Region region;
    region.stag = 1;
    region.pd = &g_domain;
    region.start = 0x1000;
    region.length = 0x100;
    lkey_ = regions_.add(region).lkey;
  }
  Request request(Role role, std::vector<ibv_sge> sges) {
    sges_ = std::move(sges);
    return {.role = role, .sges = sges_};
  }
  Regions regions_;
  uint32_t lkey_ = 0;

 private:
  std::vector<ibv_sge> sges_;
};

TEST_F(FailedCompletions, NameTheFirstWrongSge) {
  const Request wrong = request(Role::kSource, {{0x1000, 8, lkey_}, {0x1100, 8, lkey_}});
  const auto verdict = why_refused(wrong, IBV_WC_LOC_PROT_ERR, regions_, &g_domain);
  ASSERT_TRUE(verdict);
  EXPECT_THAT(verdict->what, HasSubstr("0x1100"));
  EXPECT_FALSE(why_refused(wrong, IBV_WC_WR_FLUSH_ERR, regions_, &g_domain));
}

TEST_F(FailedCompletions, DoNotBlameAnSgeWithoutBytesOrOneThatIsRight) {
  const Request right = request(Role::kSource, {{0, 0, 0}, {0x1000, 8, lkey_}});
  EXPECT_FALSE(why_refused(right, IBV_WC_LOC_PROT_ERR, regions_, &g_domain));
}

TEST_F(FailedCompletions, OfReceivesSayHowLongTheyWere) {
  const Request receive = request(Role::kSink, {{0x1000, 8, lkey_}, {0x1010, 5, lkey_}});
  const auto verdict = why_refused(receive, IBV_WC_LOC_LEN_ERR, regions_, &g_domain);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->kind, Kind::kReceiveTooShort);
  EXPECT_THAT(verdict->what, HasSubstr("13 bytes"));
}

TEST_F(FailedCompletions, OfDatagramsSayWhatTheGrhTakes) {
  const Request receive = request(Role::kSink, {{0x1000, 45, lkey_}});
  EXPECT_THAT(why_datagram_dropped(receive, 48),
              HasSubstr("has 45 bytes: it needs 48, of which the first 40"));
}

TEST_F(FailedCompletions, OfWhatThePeerRefusedSayWhatAndWhy) {
  ibv_wc wc{};
  wc.status = IBV_WC_REM_ACCESS_ERR;
  wc.vendor_err = 0x10101;
  Request read = request(Role::kSink, {{0x1000, 8, lkey_}});
  read.rkey = 0x1234;
  read.remote_address = 0x5000;
  const auto verdict = why_peer_refused(read, wc, true);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->kind, Kind::kRemoteAccess);
  EXPECT_THAT(verdict->what, HasSubstr("of 8 bytes, rkey 0x1234, remote address 0x5000"));
  EXPECT_THAT(verdict->what, HasSubstr("Terminate 0x0101, RDMAP: remote protection error"));
  EXPECT_THAT(why_peer_refused(read, wc, false)->what, Not(HasSubstr("0x1234")));
  wc.vendor_err = 0x20101;  // told by this end
  EXPECT_FALSE(why_peer_refused(read, wc, true));
  wc.vendor_err = 0x10101;
  wc.status = IBV_WC_WR_FLUSH_ERR;
  EXPECT_FALSE(why_peer_refused(read, wc, true));
}

TEST_F(FailedCompletions, OfReadsSayThatNoneWereAgreedOn) {
  ibv_wc wc{};
  wc.status = IBV_WC_LOC_QP_OP_ERR;
  wc.vendor_err = static_cast<uint32_t>(core::Cause::kNoReadsGranted);
  const auto verdict = why_unanswered(request(Role::kSink, {}), wc);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->kind, Kind::kReadDepth);
  EXPECT_FALSE(why_unanswered(request(Role::kSource, {}), wc));
  wc.vendor_err = 0;
  EXPECT_FALSE(why_unanswered(request(Role::kSink, {}), wc));
}

TEST(SpoiltCompletions, KeepWhatTheManualDefines) {
  ibv_wc wc{};
  wc.wr_id = 7;
  wc.status = IBV_WC_REM_ACCESS_ERR;
  wc.vendor_err = 8;
  wc.qp_num = 9;
  spoil(wc);
  EXPECT_EQ(wc.wr_id, 7u);
  EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(wc.vendor_err, 8u);
  EXPECT_EQ(wc.qp_num, 9u);
  EXPECT_EQ(wc.byte_len, 0xa5a5a5a5u);
  EXPECT_EQ(wc.src_qp, 0xa5a5a5a5u);
}

TEST(Lists, AreCutShort) {
  EXPECT_EQ(list_of({1, 0x20}), "wr_id 0x1, 0x20");
  EXPECT_EQ(list_of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}),
            "wr_id 0x1, 0x2, 0x3, 0x4, 0x5, 0x6, 0x7, 0x8 and 2 more");
}

TEST(Rules, SendsWaitForRts) {
  for (const ibv_qp_state state :
       {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR})
    EXPECT_FALSE(too_early(state)) << state;
  ASSERT_TRUE(too_early(IBV_QPS_RTR));
  EXPECT_EQ(too_early(IBV_QPS_RTR)->kind, Kind::kWrongState);
}

}  // namespace
}  // namespace uiw::check
