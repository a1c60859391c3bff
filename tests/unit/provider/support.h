// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// uiw_lo opened by the stock libibverbs.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

namespace uiw::provider_test {

inline bool readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

// With a place for the message, or with none.
inline int post_recv(ibv_qp* qp, uint64_t wr_id, std::optional<ibv_sge> sge = {}) {
  ibv_recv_wr wr{}, *bad;
  wr.wr_id = wr_id;
  wr.sg_list = sge ? &*sge : nullptr;
  wr.num_sge = sge ? 1 : 0;
  return ibv_post_recv(qp, &wr, &bad);
}

// A Send, signaled.
inline int post_send(ibv_qp* qp, uint64_t wr_id, ibv_sge sge) {
  ibv_send_wr wr{}, *bad;
  wr.wr_id = wr_id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  return ibv_post_send(qp, &wr, &bad);
}

// ThreadSanitizer does not know threads that are started after a fork of several.
#ifdef __SANITIZE_THREAD__
constexpr bool kThreadsAfterFork = false;
#else
constexpr bool kThreadsAfterFork = true;
#endif

class Verbs : public ::testing::Test {
 protected:
  void SetUp() override {
    ibv_device** list = ibv_get_device_list(nullptr);
    ASSERT_NE(list, nullptr);
    for (ibv_device** each = list; *each; ++each)
      if (std::strcmp(ibv_get_device_name(*each), "uiw_lo") == 0) context_ = ibv_open_device(*each);
    ibv_free_device_list(list);
    ASSERT_NE(context_, nullptr) << "no uiw_lo: is the loopback interface up?";
    pd_ = ibv_alloc_pd(context_);
    ASSERT_NE(pd_, nullptr);
  }
  void TearDown() override {
    if (!context_) return;
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
  }

  // libibverbs makes a macro of the call that mixes enumerations.
  ibv_mr* reg(void* addr, size_t length, int access) {
    return ibv_reg_mr(pd_, addr, length, access);
  }

  static ibv_qp_init_attr qp_attr(ibv_cq* cq, ibv_srq* srq = nullptr) {
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq;
    attr.srq = srq;
    attr.cap = {.max_send_wr = 4,
                .max_recv_wr = 4,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 64};
    attr.qp_type = IBV_QPT_RC;
    return attr;
  }
  ibv_qp* make_qp(ibv_cq* cq, ibv_srq* srq = nullptr) {
    ibv_qp_init_attr attr = qp_attr(cq, srq);
    ibv_qp* qp = ibv_create_qp(pd_, &attr);
    EXPECT_NE(qp, nullptr);
    return qp;
  }
  static void to_error(ibv_qp* qp) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
  }

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
};

// Expects that `call` yields NULL and this errno.
#define EXPECT_NULL_ERRNO(call, error) \
  do {                                 \
    errno = 0;                         \
    EXPECT_EQ((call), nullptr);        \
    EXPECT_EQ(errno, error);           \
  } while (0)

}  // namespace uiw::provider_test
