// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// UD queue pairs on the loopback device, and plain UDP sockets that speak to them.
#pragma once

#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/be.h"
#include "core/qp_number.h"
#include "datagram/drops.h"
#include "datagram/header.h"
#include "device/face.h"
#include "device/gid_table.h"
#include "support.h"
#include "support/gid.h"
#include "verbs/ah.h"
#include "verbs/qp.h"

namespace uiw::verbs::test {

inline constexpr uint32_t kQkey = 0x11223344;
inline constexpr uint32_t kGrh = 40;

// A UDP socket of the test's own.
class Stranger {
 public:
  explicit Stranger(uint16_t port = 0, const char* address = "::") {
    fd_ = socket(AF_INET6, SOCK_DGRAM, 0);
    sockaddr_in6 at = named(address, port);
    bound_ = bind(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
    timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Stranger() { close(fd_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  bool bound() const { return bound_; }
  uint16_t port() const {
    sockaddr_in6 at{};
    socklen_t size = sizeof at;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
    return ntohs(at.sin6_port);
  }
  // Of a queue pair that could be behind it.
  uint32_t number() const { return core::number_of(port(), 7); }
  void send(uint16_t port, std::string_view datagram, const char* to = "::ffff:127.0.0.1") const {
    const sockaddr_in6 at = named(to, port);
    EXPECT_EQ(sendto(fd_, datagram.data(), datagram.size(), 0,
                     reinterpret_cast<const sockaddr*>(&at), sizeof at),
              static_cast<ssize_t>(datagram.size()))
        << strerror(errno);
  }
  std::string receive(sockaddr_in6* from = nullptr) const {
    char bytes[65536];
    sockaddr_in6 source{};
    socklen_t size = sizeof source;
    const ssize_t got = recvfrom(fd_, bytes, sizeof bytes, 0,
                                 reinterpret_cast<sockaddr*>(from ? from : &source), &size);
    return got < 0 ? "nothing" : std::string(bytes, static_cast<size_t>(got));
  }
  int fd() const { return fd_; }

 private:
  static sockaddr_in6 named(const char* address, uint16_t port) {
    sockaddr_in6 at{};
    at.sin6_family = AF_INET6;
    at.sin6_port = htons(port);
    at.sin6_addr = uiw::test::gid(address);
    return at;
  }
  int fd_ = -1;
  bool bound_ = false;
};

class UdQueuePairs : public OpenDevice {
 protected:
  void SetUp() override {
    OpenDevice::SetUp();
    if (HasFatalFailure()) return;
    context_->face = &device::face(core::Face::kRoce);
    cq_ = make_cq(256);
    uiwarp_mr* mr = nullptr;
    uint32_t rkey;
    ASSERT_EQ(uiwarp_mr_reg(pd_, memory_, sizeof memory_, reinterpret_cast<uintptr_t>(memory_),
                            IBV_ACCESS_LOCAL_WRITE, &mr, &lkey_, &rkey),
              0);
    mr_ = mr;
    to_ = make_ah("::ffff:127.0.0.1", "::ffff:127.0.0.1", 1);
  }
  void TearDown() override {
    if (!cq_) return;
    for (uiwarp_ah* ah : ahs_) EXPECT_EQ(uiwarp_ah_destroy(ah), 0);
    EXPECT_EQ(uiwarp_mr_dereg(mr_), 0);
    destroy(cq_);
    OpenDevice::TearDown();
  }

  static uint32_t number_of(const uiwarp_qp* qp) { return qp->registration.qp_num; }
  static uint16_t port_of(const uiwarp_qp* qp) { return core::port_of(number_of(qp)); }

  uiwarp_qp* make_ud(uiwarp_srq* srq = nullptr, uint32_t depth = 16, void* user = nullptr) {
    uiwarp_qp_init init = qp_init(cq_, srq);
    init.user = user;
    init.qp_type = IBV_QPT_UD;
    init.cap.max_send_wr = init.cap.max_recv_wr = depth;
    uiwarp_qp* qp = nullptr;
    uint32_t qp_num = 0;
    EXPECT_EQ(uiwarp_qp_create(pd_, &init, &qp, &qp_num), 0);
    return qp;
  }
  static int modify(uiwarp_qp* qp, ibv_qp_state state, int mask = 0, uint32_t qkey = kQkey) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    attr.port_num = 1;
    attr.qkey = qkey;
    return uiwarp_qp_modify(qp, &attr, IBV_QP_STATE | mask);
  }
  static void to_init(uiwarp_qp* qp, uint32_t qkey = kQkey) {
    EXPECT_EQ(modify(qp, IBV_QPS_INIT, IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY, qkey), 0);
  }
  static void to_rts(uiwarp_qp* qp, uint32_t qkey = kQkey) {
    to_init(qp, qkey);
    EXPECT_EQ(modify(qp, IBV_QPS_RTR), 0);
    EXPECT_EQ(modify(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN), 0);
  }
  uiwarp_qp* make_rts(uiwarp_srq* srq = nullptr, void* user = nullptr) {
    uiwarp_qp* const qp = make_ud(srq, 16, user);
    to_rts(qp);
    return qp;
  }
  static ibv_qp_state state_of(uiwarp_qp* qp) {
    ibv_qp_attr attr;
    ibv_qp_init_attr init;
    EXPECT_EQ(uiwarp_qp_query(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
  }

  // What work requests name; `type` 0 or 1: v1 or v2.
  const ibv_ah* make_ah(const char* own, const char* peer, uint32_t type, uint8_t hop_limit = 0,
                        uiwarp_pd* pd = nullptr) {
    const in6_addr wanted = uiw::test::gid(own), to = uiw::test::gid(peer);
    const device::State state = device::state_of(*context_->device);
    uint32_t index = 0;
    for (; const auto entry = device::gid_at(state, *context_->face, index); index += 2)
      if (std::memcmp(&entry->address, &wanted, sizeof wanted) == 0) break;
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.port_num = 1;
    attr.grh.sgid_index = static_cast<uint8_t>(index + type);
    attr.grh.hop_limit = hop_limit;
    std::memcpy(&attr.grh.dgid, &to, sizeof to);
    uiwarp_ah* made = nullptr;
    EXPECT_EQ(uiwarp_ah_create(pd ? pd : pd_, &attr, &made), 0) << own << " to " << peer;
    ahs_.push_back(made);
    handles_.push_back(std::make_unique<uiwarp_ibv_ah>());
    handles_.back()->core = made;
    return &handles_.back()->ah;
  }

  uint8_t* place(uint64_t wr_id) { return memory_ + wr_id * kPlace; }
  int post_receive(uiwarp_qp* qp, uint64_t wr_id, uint32_t length = kPlace) {
    ibv_sge sge{reinterpret_cast<uintptr_t>(place(wr_id)), length, lkey_};
    ibv_recv_wr wr{wr_id, nullptr, &sge, 1}, *bad;
    return uiwarp_qp_post_recv(qp, &wr, &bad);
  }
  std::string received(uint64_t wr_id, const ibv_wc& wc) {
    return {reinterpret_cast<char*>(place(wr_id)) + kGrh, wc.byte_len - kGrh};
  }
  // From place 0.
  ibv_send_wr send_wr(uint32_t to, uint32_t length, unsigned flags = IBV_SEND_SIGNALED) {
    sge_ = {reinterpret_cast<uintptr_t>(place(0)), length, lkey_};
    ibv_send_wr wr{};
    wr.sg_list = &sge_;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = flags;
    wr.wr.ud.ah = const_cast<ibv_ah*>(to_);
    wr.wr.ud.remote_qpn = to;
    wr.wr.ud.remote_qkey = kQkey;
    return wr;
  }
  static int post(uiwarp_qp* qp, ibv_send_wr wr) {
    ibv_send_wr* bad = nullptr;
    return uiwarp_qp_post_send(qp, &wr, &bad);
  }
  int send(uiwarp_qp* qp, uint32_t to, std::string_view text, unsigned flags = IBV_SEND_SIGNALED) {
    std::memcpy(place(0), text.data(), text.size());
    return post(qp, send_wr(to, static_cast<uint32_t>(text.size()), flags));
  }

  static ibv_wc wait_for(uiwarp_cq* cq) {
    ibv_wc wc{};
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (uiwarp_cq_poll(cq, 1, &wc) == 0) {
      if (std::chrono::steady_clock::now() > end) {
        ADD_FAILURE() << "no completion";
        wc.status = IBV_WC_GENERAL_ERR;
        return wc;
      }
      sched_yield();
    }
    return wc;
  }
  ibv_wc wait() { return wait_for(cq_); }
  // Busy-polls for the two completions of a datagram, and gives the receive's.
  ibv_wc wait_for_both() {
    ibv_wc received{}, wc;
    for (int n = 0; n < 2;) {
      if (uiwarp_cq_poll(cq_, 1, &wc) == 0) continue;
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      if (wc.opcode == IBV_WC_RECV) received = wc;
      ++n;
    }
    return received;
  }
  void expect_none() {
    ibv_wc wc;
    EXPECT_EQ(uiwarp_cq_poll(cq_, 1, &wc), 0);
  }
  // What was dropped for that reason, from the beginning of the test on.
  static uint64_t drops(datagram::Drop why) { return datagram::drops().of(why); }
  static void wait_for_drops(datagram::Drop why, uint64_t count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (drops(why) < count && std::chrono::steady_clock::now() < end) sched_yield();
    EXPECT_EQ(drops(why), count);
  }

  static constexpr size_t kPlaces = 32, kPlace = 8192;
  uiwarp_cq* cq_ = nullptr;
  uiwarp_mr* mr_ = nullptr;
  uint32_t lkey_ = 0;
  const ibv_ah* to_ = nullptr;  // 127.0.0.1 to 127.0.0.1, RoCE v2
  std::vector<uiwarp_ah*> ahs_;
  std::vector<std::unique_ptr<uiwarp_ibv_ah>> handles_;
  ibv_sge sge_{};
  alignas(64) uint8_t memory_[kPlaces * kPlace] = {};
};

// A datagram as it goes over the wire.
inline std::string datagram_of(uint32_t to, uint32_t from, uint32_t qkey, std::string_view payload,
                               uint8_t flags = 4, uint32_t immediate = 0) {
  std::string bytes(24, '\0');
  auto* raw = reinterpret_cast<uint8_t*>(bytes.data());
  std::memcpy(raw, "uiUD\1", 5);
  raw[5] = flags;
  core::store_be32(raw + 8, to);
  core::store_be32(raw + 12, from);
  core::store_be32(raw + 16, qkey);
  core::store_be32(raw + 20, immediate);
  return bytes.append(payload);
}

}  // namespace uiw::verbs::test
