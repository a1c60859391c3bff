// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <unistd.h>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "common.h"

namespace uiw::soak {

void fail(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "soak: process %d: %s\n", getpid(), text);
  _exit(1);
}

void fill(uint8_t* octets, uint32_t size, uint64_t seed, uint64_t number) {
  Random random(seed ^ number * 0x5851f42d4c957f2d);
  for (uint32_t at = 0; at < size; at += 8) {
    const uint64_t word = random.next();
    std::memcpy(octets + at, &word, size - at < 8 ? size - at : 8);
  }
}

void compare(Stats& stats, const uint8_t* octets, uint32_t size, uint64_t seed, uint64_t number,
             const char* what) {
  static thread_local std::vector<uint8_t> wanted;
  wanted.resize(size);
  fill(wanted.data(), size, seed, number);
  if (size && std::memcmp(wanted.data(), octets, size) != 0) {
    uint32_t at = 0;
    while (wanted[at] == octets[at]) ++at;
    fail("%s %llu: octet %u of %u is %02x, not %02x", what, static_cast<unsigned long long>(number),
         at, size, octets[at], wanted[at]);
  }
  stats.octets += size;
}

Abilities abilities_of(ibv_context* context) {
  ibv_device_attr device{};
  REQUIRE(ibv_query_device(context, &device) == 0);
  Abilities out;
  out.atomics = device.atomic_cap != IBV_ATOMIC_NONE;
  out.windows = (device.device_cap_flags &
                 (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) != 0;
  out.sges = device.max_sge >= 2 && device.max_sge_rd >= 2 ? 2 : 1;
  return out;
}

Endpoint::Endpoint(Stats& its_stats, rdma_cm_id* its_id, uint64_t its_seed)
    : abilities(abilities_of(its_id->verbs)),
      stats(its_stats),
      id(its_id),
      seed(its_seed),
      memory(2 * kMemory),
      send_memory(2 * kSlots * kMessage),
      receive_memory_(kReceives * kMessage),
      receive_posted_(kReceives) {
  pd = ibv_alloc_pd(id->verbs);
  cq = ibv_create_cq(id->verbs, 256, nullptr, nullptr, 0);
  REQUIRE(pd && cq);
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.cap = {.max_send_wr = 64,
              .max_recv_wr = kReceives,
              .max_send_sge = abilities.sges,
              .max_recv_sge = 1,
              .max_inline_data = 64};
  attr.qp_type = IBV_QPT_RC;
  if (rdma_create_qp(id, pd, &attr) != 0) fail("rdma_create_qp: %s", strerror(errno));
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                     (abilities.atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0) |
                     (abilities.windows ? IBV_ACCESS_MW_BIND : 0);
  mr = ibv_reg_mr(pd, memory.data(), memory.size(), access);
  send_mr = ibv_reg_mr(pd, send_memory.data(), send_memory.size(), 0);
  const int local = IBV_ACCESS_LOCAL_WRITE;  // a variable: the macro ibv_reg_mr mixes enumerations
  receive_mr = ibv_reg_mr(pd, receive_memory_.data(), receive_memory_.size(), local);
  REQUIRE(mr && send_mr && receive_mr);
  for (uint32_t i = 0; i < kReceives; ++i) post_receive(i);
}

Endpoint::~Endpoint() {
  rdma_destroy_qp(id);
  // Whoever destroys a queue pair in the middle must not find its completions later.
  REQUIRE(ibv_dereg_mr(mr) == 0 && ibv_dereg_mr(send_mr) == 0 && ibv_dereg_mr(receive_mr) == 0);
  REQUIRE(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0);
}

void Endpoint::post_receive(uint32_t index) {
  ibv_sge sge = {reinterpret_cast<uint64_t>(receive_buffer(index)), kMessage, receive_mr->lkey};
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = kReceiveIds + index;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  REQUIRE(!receive_posted_[index]);
  REQUIRE(ibv_post_recv(id->qp, &wr, &bad) == 0);
  receive_posted_[index] = true;
  ++receives_out_;
}

bool Endpoint::post(ibv_send_wr& wr, uint64_t tag, int* error) {
  ibv_send_wr* bad = nullptr;
  wr.wr_id = posted_;
  const int result = ibv_post_send(id->qp, &wr, &bad);
  if (error) *error = result;
  if (result == ENOMEM || (error && result == EINVAL)) return false;
  if (result != 0) fail("ibv_post_send, opcode %d: %s", wr.opcode, strerror(result));
  sent_.push_back({posted_++, tag, (wr.send_flags & IBV_SEND_SIGNALED) != 0});
  return true;
}

Endpoint::Kind Endpoint::poll(ibv_wc& wc, uint64_t& tag) {
  const int count = ibv_poll_cq(cq, 1, &wc);
  if (count == 0) return kNothing;
  REQUIRE(count == 1 && wc.qp_num == id->qp->qp_num);
  ++stats.completions;
  if (wc.status == IBV_WC_WR_FLUSH_ERR) ++stats.flushed;
  const bool good = wc.status == IBV_WC_SUCCESS;
  // Of a failed completion only wr_id, status, qp_num and vendor_err mean anything: the numbers
  // differ.
  const bool of_receive = good ? (wc.opcode & IBV_WC_RECV) != 0 : wc.wr_id >= kReceiveIds;
  if (of_receive) {
    const auto index = static_cast<uint32_t>(wc.wr_id - kReceiveIds);
    REQUIRE(wc.wr_id >= kReceiveIds && index < kReceives && receive_posted_[index]);
    REQUIRE(!(good && receive_broken_));  // nothing succeeds behind an error
    receive_posted_[index] = false;
    --receives_out_;
    tag = index;
    if (!good) receive_broken_ = true;
  } else {
    // In the order of posting; those that are silent when they succeed are done with the next that
    // is not.
    while (!sent_.empty() && sent_.front().number != wc.wr_id) {
      REQUIRE(!sent_.front().signaled && !broken_);
      sent_.pop_front();
    }
    if (sent_.empty())
      fail("a completion for request %llu, which is not outstanding",
           static_cast<unsigned long long>(wc.wr_id));
    REQUIRE(!(good && broken_));
    REQUIRE(!good || sent_.front().signaled);
    tag = sent_.front().tag;
    sent_.pop_front();
    if (!good) broken_ = true;
  }
  if (!good) return kFailed;
  return of_receive ? kReceived : kSent;
}

void Endpoint::forget_silent() {
  while (!sent_.empty() && !sent_.front().signaled && !broken_) sent_.pop_front();
}

}  // namespace uiw::soak
