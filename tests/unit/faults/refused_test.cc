// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Requests that are refused, or whose batch is given up: none of them was posted, so that none
// counts, and the next one meets what it would have met.
#include <arpa/inet.h>
#include <gmock/gmock.h>

#include "unit/faults/faulty.h"

namespace uiw::faults {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RefusedRequests : public FaultyVerbs {
 protected:
  void TearDown() override {
    refuse(0);
    FaultyVerbs::TearDown();
  }
  static void refuse(int error) {
    const std::lock_guard lock(fake::mutex);
    fake::refusal = error;
  }
  void post_in_vain(const ibv_send_wr& wr) {
    refuse(ENOMEM);
    EXPECT_EQ(post(wr), ENOMEM);
    refuse(0);
  }
  // A batch of these; whether it is posted, and what that returns.
  int batch(std::initializer_list<ibv_send_wr> list, int publish) {
    verbs_->qp_batch_begin(qp_);
    for (const ibv_send_wr& wr : list) {
      EXPECT_EQ(verbs_->qp_batch_add(qp_, &wr), 0);
      if (type_ == IBV_QPT_UD) verbs_->qp_batch_address(qp_, nullptr, 5, 0x11111111);
    }
    return verbs_->qp_batch_end(qp_, publish);
  }
  // Of so many bytes that nobody reads.
  ibv_send_wr sized(uint64_t wr_id, uint32_t bytes) {
    sge_.length = bytes;
    ibv_send_wr wr = request(wr_id);
    wr.num_sge = 1;
    wr.sg_list = &sge_;
    return wr;
  }
  ibv_sge sge_{};
};

TEST_F(RefusedRequests, AreNotTheNth) {
  begin("op=SEND nth=2 status=GENERAL_ERR");
  EXPECT_EQ(post(request(1)), 0);
  for (int i = 0; i < 3; ++i) post_in_vain(request(2));
  EXPECT_EQ(post(request(2)), 0);
  EXPECT_EQ(post(request(3)), 0);
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_),
              ElementsAre(Completion(1, IBV_WC_SUCCESS), Completion(2, IBV_WC_GENERAL_ERR),
                          Completion(3, IBV_WC_WR_FLUSH_ERR)));
}

TEST_F(RefusedRequests, OfABatchAreNotTheNth) {
  begin("op=SEND nth=3 status=GENERAL_ERR");
  EXPECT_EQ(batch({request(1), request(2), request(3), request(4)}, 0), 0);
  refuse(ENOMEM);
  EXPECT_EQ(batch({request(1), request(2), request(3), request(4)}, 1), ENOMEM);
  refuse(0);
  EXPECT_EQ(batch({request(1), request(2), request(3), request(4)}, 1), 0);
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_),
              ElementsAre(Completion(1, IBV_WC_SUCCESS), Completion(2, IBV_WC_SUCCESS),
                          Completion(3, IBV_WC_GENERAL_ERR), Completion(4, IBV_WC_WR_FLUSH_ERR)));
}

TEST_F(RefusedRequests, CarryNoBytesTowardsTheEndOfTheirConnection) {
  begin("connect port=7 reset after=100");
  EXPECT_EQ(verbs_->cm_connecting(7, of(qp_).number), UIWARP_CONNECT_GOES_ON);
  EXPECT_EQ(post(sized(1, 60)), 0);
  for (const uint32_t bytes : {30u, 60u}) post_in_vain(sized(2, bytes));
  EXPECT_EQ(batch({sized(2, 40)}, 0), 0);
  EXPECT_EQ(post(sized(2, 40)), 0);
  EXPECT_EQ(of(qp_).doom->carried, 100u);
  EXPECT_EQ(post(sized(3, 1)), 0);
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_),
              ElementsAre(Completion(1, IBV_WC_SUCCESS), Completion(2, IBV_WC_SUCCESS),
                          Completion(3, IBV_WC_WR_FLUSH_ERR)));
  EXPECT_EQ(behind_qp_->breaks, 1);
}

TEST_F(RefusedRequests, OfAPacedHostTakeNoTimeOfItAndNothingIsSaidOfThem) {
  // 125 bytes a second: far more than the test takes.
  begin("peer=10.0.0.2 rate=1Kbit");
  sockaddr_storage peer{};
  peer.ss_family = AF_INET;
  inet_pton(AF_INET, "10.0.0.2", &reinterpret_cast<sockaddr_in&>(peer).sin_addr);
  verbs_->connected(of(qp_).number, &peer, &peer);
  testing::internal::CaptureStderr();
  EXPECT_EQ(batch({sized(1, 125 * 1000)}, 0), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  EXPECT_EQ(batch({sized(1, 125 * 1000)}, 1), 0);
  const core::Nanoseconds after = core::now();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("request, number 1, leaves later"));
  const std::lock_guard lock(of(qp_).posting);
  ASSERT_EQ(of(qp_).parcels.size(), 1u);
  EXPECT_LE(of(qp_).parcels.front().due, after + 1000 * core::kSecond);
}

class RefusedDatagrams : public RefusedRequests {
 protected:
  RefusedDatagrams() { type_ = IBV_QPT_UD; }
};

TEST_F(RefusedDatagrams, AreNotLostAndNotSaidToBe) {
  begin("op=UD_SEND nth=2 drop");
  EXPECT_EQ(post(request(1)), 0);
  testing::internal::CaptureStderr();
  post_in_vain(request(2));
  EXPECT_EQ(batch({request(2)}, 0), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  EXPECT_EQ(batch({request(2), request(3)}, 1), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("outgoing datagram, number 2, is lost"));
  fake::complete_sends(*behind_qp_);
  EXPECT_EQ(poll(sends_).size(), 3u);
}

TEST_F(RefusedDatagrams, ThatWereToFailHaveNotFailed) {
  begin("op=UD_SEND nth=1 status=GENERAL_ERR");
  post_in_vain(request(1));
  EXPECT_EQ(of(qp_).fate, Fate::kNone);
  EXPECT_EQ(post(request(1)), 0);
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_), ElementsAre(Completion(1, IBV_WC_GENERAL_ERR)));
}

}  // namespace
}  // namespace uiw::faults
