// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a UD queue pair is posted goes to the kernel inside the post, from the program's memory.
#include <array>
#include <cerrno>
#include <cinttypes>
#include <span>

#include "core/qp_number.h"
#include "core/raw_sys.h"
#include "core/tuning.h"
#include "core/verbs_names.h"
#include "datagram/door.h"
#include "datagram/drops.h"
#include "datagram/queue_pair.h"
#include "datagram/states.h"
#include "queue/memory_trouble.h"

namespace uiw::datagram {

namespace sys = core::sys;

namespace {

void set_port(sockaddr_storage& address, uint16_t port) {
  reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);  // of sockaddr_in6 at that place
}

// How long the datagrams of one post may wait for room in the socket, all together.
class Patience {
 public:
  // Until it is worth another try. False: it is at its end.
  bool wait_for_room(int fd) {
    if (left_ <= 0) return false;
    const core::Nanoseconds before = core::now();
    const long result = sys::wait_writable(fd, left_);
    left_ -= core::now() - before;
    return result > 0 || result == -EINTR;
  }

 private:
  core::Nanoseconds left_ = core::tuning::kFullSocketWait;
};

}  // namespace

// Datagrams that go out by one system call. Their regions are held meanwhile, so that nothing is
// read from memory whose deregistration has returned.
class QueuePair::Burst {
 public:
  explicit Burst(QueuePair& qp) : qp_(qp) {}

  enum class Added {
    kYes,
    kFull,       // it has to go by the next one
    kTooLong,    // for the port's MTU
    kBadMemory,  // an SGE names none that may be sent
  };
  // `frees`: what its completion frees.
  Added add(const SendRequest& request, uint64_t frees);
  // Sends and completes all of them. False: the memory of one is not there, and those behind it
  // were not sent.
  bool send(Patience& patience);

 private:
  static constexpr unsigned kMostMessages = 16, kMostPieces = 64, kMostRegions = 16;
  static_assert(kMostPieces > queue::kMaxSge && kMostRegions >= queue::kMaxSge);

  Added gather(const SendRequest& request);
  const mem::Region* hold(uint32_t lkey);
  void address(const SendRequest& request, iovec* pieces, unsigned count);

  struct Sent {
    const SendRequest* request;
    uint64_t frees;
  };
  QueuePair& qp_;
  unsigned count_ = 0, pieces_ = 0, regions_ = 0;
  std::array<mmsghdr, kMostMessages> messages_;
  std::array<Sent, kMostMessages> sent_;
  std::array<sockaddr_storage, kMostMessages> addresses_;
  std::array<std::array<uint8_t, kHeaderSize>, kMostMessages> headers_;
  std::array<iovec, kMostPieces> iovecs_;
  std::array<mem::RegionRef, kMostRegions> held_;
};

QueuePair::Burst::Added QueuePair::Burst::add(const SendRequest& request, uint64_t frees) {
  // InfiniBand has it that too long a message is not sent and nobody told (C10-93.1.1), which rxe
  // does; adapters tell.
  if (request.length > qp_.mtu()) return Added::kTooLong;
  const unsigned most_pieces = 1 + (request.is_inline ? 1u : request.sge_count);
  if (count_ == kMostMessages || pieces_ + most_pieces > kMostPieces) return Added::kFull;
  const unsigned first = pieces_;
  iovecs_[pieces_++] = {headers_[count_].data(), kHeaderSize};
  if (const Added gathered = gather(request); gathered != Added::kYes) {
    pieces_ = first;
    return gathered;
  }
  address(request, &iovecs_[first], pieces_ - first);
  sent_[count_++] = {&request, frees};
  return Added::kYes;
}

QueuePair::Burst::Added QueuePair::Burst::gather(const SendRequest& request) {
  if (request.is_inline) {
    if (request.length > 0) iovecs_[pieces_++] = {request.area, request.length};
    return Added::kYes;
  }
  const ibv_sge* const sges = request.sges();
  for (unsigned i = 0; i < request.sge_count; ++i) {
    const ibv_sge& sge = sges[i];
    if (sge.length == 0) continue;
    const bool alone = count_ == 0;
    const mem::Region* const region = hold(sge.lkey);
    if (!region) return regions_ == kMostRegions && !alone ? Added::kFull : Added::kBadMemory;
    if (mem::check(*region, qp_.options_.pd, sge.addr, sge.length, 0) != mem::Fault::kNone)
      return Added::kBadMemory;
    iovecs_[pieces_++] = {region->memory + (sge.addr - region->start), sge.length};
  }
  return Added::kYes;
}

// Null: there is none, or no room for one more.
const mem::Region* QueuePair::Burst::hold(uint32_t lkey) {
  for (unsigned i = regions_; i > 0; --i)
    if (held_[i - 1]->is_live(lkey)) return &*held_[i - 1];
  if (regions_ == kMostRegions) return nullptr;
  held_[regions_] = qp_.options_.memory->find(lkey, mem::Side::kSend);
  return held_[regions_] ? &*held_[regions_++] : nullptr;
}

void QueuePair::Burst::address(const SendRequest& request, iovec* pieces, unsigned count) {
  const Destination& to = request.ah->to;
  sockaddr_storage& address = addresses_[count_];
  address = to.address;
  if (!to.is_group) set_port(address, core::port_of(request.remote_qpn));
  store({.to = to.is_group ? core::kGroupQpNumber : request.remote_qpn & core::kMostQpNumber,
         .from = qp_.options_.qp_num,
         .qkey = qkey_to_send(request.remote_qkey, qp_.qkey_.load(std::memory_order_relaxed)),
         .gid_type = to.gid_type,
         .solicited = request.solicited,
         .has_immediate = request.has_immediate,
         .immediate = request.immediate},
        headers_[count_].data());
  messages_[count_].msg_hdr = {.msg_name = &address,
                               .msg_namelen = to.address_size,
                               .msg_iov = pieces,
                               .msg_iovlen = count,
                               // The kernel reads it only.
                               .msg_control = const_cast<uint8_t*>(to.control.data()),
                               .msg_controllen = to.control_size,
                               .msg_flags = 0};
}

bool QueuePair::Burst::send(Patience& patience) {
  const int fd = qp_.door_.fd();
  unsigned done = 0;
  bool memory_is_there = true;
  while (done < count_ && memory_is_there) {
    const long result = count_ - done == 1
                            ? sys::sendmsg(fd, &messages_[done].msg_hdr, MSG_DONTWAIT)
                            : sys::sendmmsg(fd, &messages_[done], count_ - done, MSG_DONTWAIT);
    if (result == -EINTR || (result == -EAGAIN && patience.wait_for_room(fd))) continue;
    if (result == -EFAULT) {
      memory_is_there = false;
      break;
    }
    if (result < 0) drops().count(Drop::kNotSent);  // no route, no room, a filter: it is lost
    done += count_ - done == 1 || result < 0 ? 1 : static_cast<unsigned>(result);
  }
  for (unsigned i = 0; i < count_; ++i) {
    const ibv_wc_status status = i < done    ? IBV_WC_SUCCESS
                                 : i == done ? IBV_WC_LOC_PROT_ERR
                                             : IBV_WC_WR_FLUSH_ERR;
    qp_.complete(*sent_[i].request, sent_[i].frees, status, core::Cause::kNotMapped);
  }
  return memory_is_there;
}

int QueuePair::refuse_post(ibv_qp_state now) const {
  return core::refuse(
      told_, EINVAL,
      "ibv_post_send: queue pair 0x%06x is in %s: a UD queue pair sends in RTS (ibv_modify_qp)",
      options_.qp_num, core::name_of(now));
}

int QueuePair::post_send(ibv_send_wr* wr, ibv_send_wr** bad) {
  int error = 0;
  queue::PostRefusal refused;
  ibv_qp_state now = IBV_QPS_RTS;
  if (engine_.in_child()) {
    error = core::refuse_in_child();
  } else {
    const std::lock_guard posting(posting_);
    // Under the lock: who has waited for it may have waited for RESET.
    now = state_.load(std::memory_order_acquire);
    for (; wr && takes_sends(now); wr = wr->next) {
      error = add_addressed(*wr, refused);
      if (error) break;
    }
    // What was posted before a bad one, or before there was no room, goes out.
    send_added();
  }
  if (!takes_sends(now)) error = refuse_post(now);
  if (error && bad) *bad = wr;
  queue::explain(told_, options_.qp_num, refused);
  return error;
}

// An address handle is looked at of what is a Send only.
int QueuePair::add_addressed(const ibv_send_wr& wr, queue::PostRefusal& refused) {
  const bool is_send = SendQueue::supports(wr.opcode);
  const AddressHandle* const ah = is_send ? options_.find_address_handle(wr.wr.ud.ah) : nullptr;
  if (is_send && (!ah || ah->pd != options_.pd)) {
    refused = {queue::PostRule::kNoAddress, wr.wr_id, ah ? 1u : 0u, 0};
    return refused.error();
  }
  const int error = send_queue_->add(wr, ah, options_.signal_all);
  if (error) refused = send_queue_->take_refusal();
  return error;
}

void QueuePair::begin_batch() {
  if (!engine_.in_child()) posting_.lock();
}

int QueuePair::add_to_batch(const ibv_send_wr& wr) {
  if (engine_.in_child()) return core::refuse_in_child();
  const bool is_send = SendQueue::supports(wr.opcode);
  const ibv_ah* const ah = is_send ? wr.wr.ud.ah : nullptr;
  return send_queue_->add(wr, ah ? options_.find_address_handle(ah) : nullptr, options_.signal_all);
}

int QueuePair::set_batch_address(const ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey) {
  if (engine_.in_child()) return core::refuse_in_child();
  return send_queue_->set_address(options_.find_address_handle(ah), remote_qpn, remote_qkey);
}

int QueuePair::end_batch(bool publish) {
  if (engine_.in_child()) return core::refuse_in_child();
  queue::PostRefusal refused;
  int error = 0;
  bool addressed = true;
  ibv_qp_state now = IBV_QPS_RTS;
  {
    const std::lock_guard posting(posting_, std::adopt_lock);
    if (publish) now = state_.load(std::memory_order_acquire);
    if (!takes_sends(now) || (publish && !(addressed = send_queue_->are_addressed(options_.pd))))
      error = EINVAL;
    if (publish && error == 0) {
      send_added();
    } else {
      refused = send_queue_->take_refusal();
      send_queue_->forget_added();
    }
  }
  if (!takes_sends(now)) refuse_post(now);
  if (!addressed)
    core::explain(told_,
                  "ibv_wr_complete: queue pair 0x%06x: a work request has no address handle of the "
                  "queue pair's protection domain: ibv_wr_set_ud_addr gives it one",
                  options_.qp_num);
  queue::explain(told_, options_.qp_num, refused);
  return error;
}

void QueuePair::send_added() {
  Patience patience;
  const SendRequest* request = send_queue_->take();
  while (request) {
    if (state_.load(std::memory_order_acquire) == IBV_QPS_ERR) {
      complete(*request, send_queue_->frees(), IBV_WC_WR_FLUSH_ERR,
               end_.load(std::memory_order_relaxed));
      request = send_queue_->take();
      continue;
    }
    Burst burst(*this);
    Burst::Added added = Burst::Added::kYes;
    while (request && (added = burst.add(*request, send_queue_->frees())) == Burst::Added::kYes)
      request = send_queue_->take();
    bool good = burst.send(patience);
    core::Cause cause = core::Cause::kNotMapped;
    if (good && (added == Burst::Added::kTooLong || added == Burst::Added::kBadMemory)) {
      const bool too_long = added == Burst::Added::kTooLong;
      cause = too_long ? core::Cause::kDatagramTooLong : explain_memory(*request);
      if (too_long)
        core::explain(told_,
                      "queue pair 0x%06x: wr_id 0x%" PRIx64
                      ": a datagram of %u bytes, the port's active_mtu is %u (ibv_query_port)",
                      options_.qp_num, request->wr_id, request->length, mtu());
      complete(*request, send_queue_->frees(), too_long ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR,
               cause);
      request = send_queue_->take();
      good = false;
    }
    if (good) continue;
    std::unique_lock receiving(receiving_);
    enter_error(receiving, cause);
  }
}

core::Cause QueuePair::explain_memory(const SendRequest& request) {
  return queue::explain_sges(
      told_, *options_.memory,
      {.qp_num = options_.qp_num, .wr_id = request.wr_id, .what = "SEND", .pd = options_.pd},
      request.sges(), request.sge_count, request.length);
}

void QueuePair::complete(const SendRequest& request, uint64_t frees, ibv_wc_status status,
                         core::Cause cause) {
  const bool good = status == IBV_WC_SUCCESS;
  counters::Slot& counters = *options_.counters;
  counters.posted_sends.add(1);  // none is in flight between two posts
  counters.completed_sends.add(1);
  if (good)
    counters.bytes_sent.add(kHeaderSize + request.length);
  else
    counters.failed_sends.add(1);
  if (good && !request.signaled) return;
  ibv_wc wc{};
  wc.wr_id = request.wr_id;
  wc.status = status;
  if (!good) wc.vendor_err = static_cast<uint32_t>(cause);
  wc.opcode = IBV_WC_SEND;
  wc.qp_num = options_.qp_num;
  options_.send_cq->push({wc, sources_.sends.get(), frees}, !good);
}

}  // namespace uiw::datagram
