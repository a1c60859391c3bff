// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The table of --faults, by rules of the test's, in front of a stack of which the test says when it
// completes what.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "faults/instrument.h"
#include "faults/objects.h"
#include "faults/wraps.h"
#include "unit/faults/fake_stack.h"

namespace uiw::faults {

using Completion = std::pair<uint64_t, ibv_wc_status>;

class FaultyVerbs : public testing::Test {
 protected:
  // With these rules, a queue pair that has room for `depth` requests.
  void begin(const std::string& text, uint32_t depth = 8) {
    const std::string path = testing::TempDir() + "uiwarp-faults-" + std::to_string(getpid());
    FILE* const file = std::fopen(path.c_str(), "w");
    ASSERT_TRUE(file);
    std::fputs(text.c_str(), file);
    std::fclose(file);
    ASSERT_EQ(make_table(path.c_str(), &behind_, &verbs_), 0);
    std::remove(path.c_str());
    int actual = 0;
    ASSERT_EQ(verbs_->cq_create(nullptr, 64, -1, 0, nullptr, nullptr, &sends_, &actual), 0);
    ASSERT_EQ(verbs_->cq_create(nullptr, 64, -1, 0, nullptr, nullptr, &receives_, &actual), 0);
    qp_ = make_qp(depth);
    behind_qp_ = &fake::of(of(qp_).next);
  }
  uiwarp_qp* make_qp(uint32_t depth = 8) {
    uiwarp_qp_init init{};
    init.send_cq = sends_;
    init.recv_cq = receives_;
    init.cap.max_send_wr = depth;
    init.cap.max_send_sge = 1;
    init.cap.max_inline_data = 64;
    init.qp_type = type_;
    uiwarp_qp* qp = nullptr;
    uint32_t number = 0;
    EXPECT_EQ(verbs_->qp_create(nullptr, &init, &qp, &number), 0);
    return qp;
  }
  void TearDown() override {
    let_ports_go();  // the next test has other rules
    if (!qp_) return;
    uint32_t events;
    EXPECT_EQ(verbs_->qp_destroy(qp_, &events), 0);
    EXPECT_EQ(verbs_->cq_destroy(sends_, &events, &events), 0);
    EXPECT_EQ(verbs_->cq_destroy(receives_, &events, &events), 0);
  }

  static ibv_send_wr request(uint64_t wr_id, ibv_wr_opcode opcode = IBV_WR_SEND,
                             unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.opcode = opcode;
    wr.send_flags = flags;
    return wr;
  }
  int post(ibv_send_wr wr) {
    ibv_send_wr* bad = nullptr;
    return verbs_->qp_post_send(qp_, &wr, &bad);
  }
  std::vector<ibv_wc> poll_all(uiwarp_cq* cq) {
    std::vector<ibv_wc> all(32);
    const int count = verbs_->cq_poll(cq, 32, all.data());
    EXPECT_GE(count, 0);
    all.resize(static_cast<size_t>(std::max(count, 0)));
    return all;
  }
  std::vector<Completion> poll(uiwarp_cq* cq) {
    std::vector<Completion> list;
    for (const ibv_wc& wc : poll_all(cq)) list.emplace_back(wc.wr_id, wc.status);
    return list;
  }

  ibv_qp_type type_ = IBV_QPT_RC;
  const uiwarp_verbs behind_ = fake::table();
  const uiwarp_verbs* verbs_ = nullptr;
  uiwarp_cq *sends_ = nullptr, *receives_ = nullptr;
  uiwarp_qp* qp_ = nullptr;
  fake::Qp* behind_qp_ = nullptr;
};

// Waits until `done`, for at most a minute.
template <class Done>
bool comes_true(Done done) {
  const core::Nanoseconds limit = core::now() + 60 * core::kSecond;
  while (!done()) {
    if (core::now() > limit) return false;
    usleep(1000);
  }
  return true;
}

}  // namespace uiw::faults
