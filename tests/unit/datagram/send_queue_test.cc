// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datagram/send_queue.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace uiw::datagram {
namespace {

class Requests : public ::testing::Test {
 protected:
  void SetUp() override {
    queue_ = SendQueue::create(3, 2, 16);
    ASSERT_TRUE(queue_);
    wr_.opcode = IBV_WR_SEND;
    wr_.sg_list = sges_;
    wr_.num_sge = 2;
    wr_.wr.ud.remote_qpn = 0x123456;
    wr_.wr.ud.remote_qkey = 7;
  }
  int add() { return queue_->add(wr_, &ah_, false); }

  std::unique_ptr<SendQueue> queue_;
  AddressHandle ah_{.pd = 5, .to = {}};
  char first_[10] = "first....", second_[10] = "second...";
  ibv_sge sges_[2] = {{reinterpret_cast<uintptr_t>(first_), 5, 1},
                      {reinterpret_cast<uintptr_t>(second_), 6, 2}};
  ibv_send_wr wr_{};
};

TEST_F(Requests, KeepWhatTheyWerePostedWith) {
  wr_.wr_id = 42;
  wr_.opcode = IBV_WR_SEND_WITH_IMM;
  wr_.imm_data = 0xabcd;
  wr_.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
  ASSERT_EQ(add(), 0);
  sges_[0].length = 1;  // the program's again
  const SendRequest* request = queue_->take();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->wr_id, 42u);
  EXPECT_EQ(request->ah, &ah_);
  EXPECT_EQ(request->remote_qpn, 0x123456u);
  EXPECT_EQ(request->remote_qkey, 7u);
  EXPECT_TRUE(request->has_immediate);
  EXPECT_EQ(request->immediate, 0xabcdu);
  EXPECT_TRUE(request->signaled);
  EXPECT_TRUE(request->solicited);
  EXPECT_EQ(request->length, 11u);
  ASSERT_EQ(request->sge_count, 2);
  EXPECT_EQ(request->sges()[0].length, 5u);
  EXPECT_EQ(request->sges()[1].lkey, 2u);
  EXPECT_EQ(queue_->frees(), 1u);
  EXPECT_EQ(queue_->take(), nullptr);
}

TEST_F(Requests, CopyInlineBytes) {
  wr_.send_flags = IBV_SEND_INLINE;
  ASSERT_EQ(add(), 0);
  std::memset(first_, 0, sizeof first_);
  const SendRequest* request = queue_->take();
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->is_inline);
  EXPECT_EQ(request->sge_count, 0);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(request->area), request->length), "firstsecond");
  sges_[0].length = 10;  // 16 bytes fit
  EXPECT_EQ(add(), 0);
  sges_[0].length = 11;
  EXPECT_EQ(add(), EINVAL);
}

TEST_F(Requests, AreRefused) {
  for (int opcode = -1; opcode < 20; ++opcode) {
    ibv_send_wr wr = wr_;
    std::memcpy(&wr.opcode, &opcode, sizeof opcode);
    const bool is_send = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
    EXPECT_EQ(queue_->add(wr, &ah_, false), is_send ? 0 : EINVAL) << opcode;
  }
  for (int count : {3, -1}) {
    wr_.num_sge = count;
    EXPECT_EQ(add(), EINVAL) << count;
  }
}

TEST_F(Requests, OfMoreBytesThanA32BitNumberHoldsAreNotShort) {
  sges_[0].length = sges_[1].length = 0x80000000u;
  ASSERT_EQ(add(), 0);
  EXPECT_EQ(queue_->take()->length, UINT32_MAX);
}

TEST_F(Requests, HoldTheirPlacesUntilTheseAreFreed) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(add(), 0);
  EXPECT_EQ(add(), ENOMEM);
  while (queue_->take()) {
  }
  EXPECT_EQ(add(), ENOMEM) << "sent is not polled";
  queue_->freed().store(2);
  EXPECT_EQ(add(), 0);
  EXPECT_EQ(add(), 0);
  EXPECT_EQ(add(), ENOMEM);
  queue_->clear();
  EXPECT_EQ(queue_->take(), nullptr);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(add(), 0);
  EXPECT_EQ(add(), ENOMEM);
}

TEST_F(Requests, OfABatchMayBeTakenBack) {
  ASSERT_EQ(add(), 0);
  ASSERT_TRUE(queue_->take());
  ASSERT_EQ(add(), 0);
  ASSERT_EQ(add(), 0);
  queue_->forget_added();
  EXPECT_EQ(queue_->take(), nullptr);
  EXPECT_EQ(add(), 0);
  EXPECT_EQ(add(), 0);
  EXPECT_EQ(add(), ENOMEM);
}

TEST_F(Requests, MayBeAddressedLater) {
  EXPECT_EQ(queue_->set_address(&ah_, 1, 2), EINVAL) << "there is none";
  ASSERT_EQ(add(), 0);
  ASSERT_EQ(queue_->add(wr_, nullptr, false), 0);
  EXPECT_FALSE(queue_->are_addressed(5));
  EXPECT_EQ(queue_->set_address(&ah_, 0x654321, 9), 0);
  EXPECT_TRUE(queue_->are_addressed(5));
  EXPECT_FALSE(queue_->are_addressed(6)) << "of another protection domain";
  queue_->take();
  const SendRequest* request = queue_->take();
  EXPECT_EQ(request->remote_qpn, 0x654321u);
  EXPECT_EQ(request->remote_qkey, 9u);
}

}  // namespace
}  // namespace uiw::datagram
