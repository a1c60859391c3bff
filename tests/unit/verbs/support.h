// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A context on the loopback device and small helpers, all through the C API.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <vector>

#include "uiwarp/uiwarp-abi.h"
#include "verbs/event_pipe.h"

namespace uiw::verbs::test {

inline bool readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

// Reads every record that is there.
template <class Record>
std::vector<Record> read_all(int fd) {
  std::vector<Record> records;
  while (readable(fd)) {
    Record record;
    if (::read(fd, &record, sizeof record) != static_cast<ssize_t>(sizeof record)) break;
    records.push_back(record);
  }
  return records;
}

// Like the virtual kernel's channels: one descriptor for both directions.
class Channel {
 public:
  Channel() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    fd_ = open(("/proc/self/fd/" + std::to_string(ends[0])).c_str(), O_RDWR);
    close(ends[0]);
    close(ends[1]);
  }
  ~Channel() { close(fd_); }
  int fd() const { return fd_; }
  std::vector<uint64_t> read_all() const { return test::read_all<uint64_t>(fd_); }

 private:
  int fd_ = -1;
};

class OpenDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    const uiwarp_device* device = uiwarp_device_find("uiw_lo");
    ASSERT_NE(device, nullptr) << "the loopback interface is down";
    ASSERT_EQ(uiwarp_context_open(device, 0, &context_, &async_fd_), 0);
    ASSERT_EQ(uiwarp_pd_alloc(context_, &pd_), 0);
  }
  void TearDown() override {
    if (!context_) return;
    EXPECT_EQ(uiwarp_pd_dealloc(pd_), 0) << "something was left";
    uiwarp_context_close(context_);
    close(async_fd_);
  }

  uiwarp_cq* make_cq(int cqe = 16, int channel_fd = -1, void* user = nullptr) {
    uiwarp_cq* cq = nullptr;
    int actual = 0;
    EXPECT_EQ(uiwarp_cq_create(context_, cqe, channel_fd, 0, nullptr, user, &cq, &actual), 0);
    return cq;
  }
  static void destroy(uiwarp_cq* cq, uint32_t comp_events = 0, uint32_t async_events = 0) {
    uint32_t comp = ~0u, async = ~0u;
    EXPECT_EQ(uiwarp_cq_destroy(cq, &comp, &async), 0);
    EXPECT_EQ(comp, comp_events);
    EXPECT_EQ(async, async_events);
  }

  static uiwarp_qp_init qp_init(uiwarp_cq* cq, uiwarp_srq* srq = nullptr) {
    uiwarp_qp_init init{};
    init.send_cq = init.recv_cq = cq;
    init.srq = srq;
    init.cap = {.max_send_wr = 4,
                .max_recv_wr = 4,
                .max_send_sge = 2,
                .max_recv_sge = 2,
                .max_inline_data = 16};
    init.qp_type = IBV_QPT_RC;
    return init;
  }
  uiwarp_qp* make_qp(uiwarp_cq* cq, uiwarp_srq* srq = nullptr, void* user = nullptr) {
    uiwarp_qp_init init = qp_init(cq, srq);
    init.user = user;
    uiwarp_qp* qp = nullptr;
    uint32_t qp_num = 0;
    EXPECT_EQ(uiwarp_qp_create(pd_, &init, &qp, &qp_num), 0);
    EXPECT_GT(qp_num, 1u);
    EXPECT_LT(qp_num, 1u << 24);
    return qp;
  }
  static void destroy(uiwarp_qp* qp, uint32_t async_events = 0) {
    uint32_t async = ~0u;
    EXPECT_EQ(uiwarp_qp_destroy(qp, &async), 0);
    EXPECT_EQ(async, async_events);
  }

  uiwarp_srq* make_srq(uint32_t max_wr = 4, uint32_t max_sge = 1, void* user = nullptr) {
    ibv_srq_attr attr{max_wr, max_sge, 0};
    uiwarp_srq* srq = nullptr;
    EXPECT_EQ(uiwarp_srq_create(pd_, &attr, user, &srq), 0);
    return srq;
  }
  static void destroy(uiwarp_srq* srq, uint32_t async_events = 0) {
    uint32_t async = ~0u;
    EXPECT_EQ(uiwarp_srq_destroy(srq, &async), 0);
    EXPECT_EQ(async, async_events);
  }

  static int post_recv(uiwarp_qp* qp, uint64_t wr_id) {
    ibv_recv_wr wr{};
    wr.wr_id = wr_id;
    ibv_recv_wr* bad = nullptr;
    return uiwarp_qp_post_recv(qp, &wr, &bad);
  }
  static void to_error(uiwarp_qp* qp) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    EXPECT_EQ(uiwarp_qp_modify(qp, &attr, IBV_QP_STATE), 0);
  }

  uiwarp_context* context_ = nullptr;
  uiwarp_pd* pd_ = nullptr;
  int async_fd_ = -1;
};

}  // namespace uiw::verbs::test
