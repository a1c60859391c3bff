// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the stack tells of queue pairs that no call shows: what their peers do.
#include <rdma/rdma_cma.h>

#include <cinttypes>
#include <cstddef>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <unordered_map>

#include "check/blocked_thread.h"
#include "check/text.h"
#include "check/wraps.h"
#include "core/per_process.h"

namespace uiw::check {
namespace {

// Those of all devices. Held, shared, while one is told of, so that it is there. Before a context's
// mutex.
struct Watched {
  std::shared_mutex mutex;
  std::unordered_map<uint32_t, Qp*> by_number;  // under mutex
  std::unordered_map<uint32_t, Qp*> leaving;    // under mutex: while they are destroyed
};

Watched& watched() {
  static constinit core::PerProcess<Watched> all;
  return *all.get();
}

template <class Visit>
void with(uint32_t number, Visit visit) {
  Watched& all = watched();
  const std::shared_lock lock(all.mutex);
  const auto found = all.by_number.find(number);
  if (found != all.by_number.end()) visit(*found->second);
}

}  // namespace

void listen_for(Qp& qp) {
  Watched& all = watched();
  const std::lock_guard lock(all.mutex);
  all.by_number[qp.number] = &qp;
  all.leaving.erase(qp.number);
}

void stop_listening(Qp& qp) {
  Watched& all = watched();
  const std::lock_guard lock(all.mutex);
  all.by_number.erase(qp.number);
  all.leaving[qp.number] = &qp;
}

void forget(const Qp& qp) {
  Watched& all = watched();
  const std::lock_guard lock(all.mutex);
  // Its number may be another one's by now.
  const auto found = all.leaving.find(qp.number);
  if (found != all.leaving.end() && found->second == &qp) all.leaving.erase(found);
}

void each_listened_for(const std::function<void(Qp&)>& visit) {
  Watched& all = watched();
  const std::shared_lock lock(all.mutex);
  for (const auto& [number, qp] : all.by_number) visit(*qp);
}

void report_queue_pair_of(uint64_t uid, const Stack& here) {
  rdma_cm_id id;
  ibv_qp named;
  if (!read_own_memory(uid, &id, offsetof(rdma_cm_id, route)) || !id.qp ||
      !read_own_memory(reinterpret_cast<uintptr_t>(id.qp), &named, sizeof named))
    return;
  with(named.qp_num, [&](const Qp& qp) {
    // The manual forbids it. Programs that call ibv_destroy_qp() afterwards, as rping, get away
    // with that everywhere.
    Report::instance().add({Kind::kDestroyOrder,
                            qp.name(),
                            {},
                            "rdma_destroy_id is called, but rdma_destroy_qp was not called before "
                            "for the queue pair of this id, which goes on being there",
                            {{"called", here}, {"queue pair created", qp.created()}},
                            true});
  });
}

namespace wrap {

int peer_refused(uint32_t qp_num, uint32_t rkey, uint64_t address, uint64_t length) {
  bool said = false;
  with(qp_num, [&](const Qp& qp) {
    Context& context = *qp.pd->context;
    std::optional<Finding> finding;
    {
      const std::shared_lock lock(context.mutex);
      const Region* const region = context.regions.given_lkey_of(rkey, address, length);
      if (!region) return;
      finding = Finding{
          Kind::kKeySwapped,
          qp.name(),
          {},
          text("the peer was refused %" PRIu64 " bytes at address 0x%" PRIx64
               ", since it has the lkey instead of the rkey of ",
               length, address) +
              region->name(),
          {{"memory registered", region->registered}, {"queue pair created", qp.created()}}};
    }
    Report::instance().add(*finding);
    said = true;
  });
  return next->peer_refused(qp_num, rkey, address, length) || said;
}

int write_refused(uint32_t qp_num, uint32_t rkey, uint64_t address, int code) {
  bool said = false;
  with(qp_num, [&](Qp& qp) {
    std::optional<DoneWrite> refused;
    size_t matches = 0;
    const auto take = [&](const DoneWrite& write) {
      if (matches++ == 0) refused = write;
    };
    {
      const std::lock_guard lock(qp.mutex);
      qp.writes.each_with(rkey, address, take);
      // What has completed and was not polled.
      qp.sends.each([&](const Request& request) {
        if (!is_write(request)) return;
        const DoneWrite write = done_write_of(request);
        if (write.has(rkey, address)) take(write);
      });
    }
    if (!refused) return;
    Report::instance().add(
        {Kind::kRemoteAccess,
         qp.name(),
         matches == 1 ? std::optional(refused->wr_id) : std::nullopt,
         why_write_refused(*refused, matches, address, static_cast<core::TermCode>(code)),
         {{"posted", refused->posted}, {"queue pair created", qp.created()}}});
    said = true;
  });
  return next->write_refused(qp_num, rkey, address, code) || said;
}

void receives_dropped(uint32_t qp_num, const uint64_t* wr_ids, uint32_t count) {
  {
    Watched& all = watched();
    const std::shared_lock lock(all.mutex);
    const auto leaving = all.leaving.find(qp_num), there = all.by_number.find(qp_num);
    const Qp* const qp = leaving != all.leaving.end()   ? leaving->second
                         : there != all.by_number.end() ? there->second
                                                        : nullptr;
    // What is in a queue of its own goes with that.
    if (qp && qp->srq) {
      const std::lock_guard queue_lock(qp->srq->mutex);
      for (const uint64_t wr_id : std::span(wr_ids, count))
        qp->srq->receives.complete_receive(wr_id, [](const Request&) {});
    }
  }
  next->receives_dropped(qp_num, wr_ids, count);
}

int datagram_too_long(uint32_t qp_num, uint64_t wr_id, uint64_t needed) {
  bool said = false;
  with(qp_num, [&](Qp& qp) {
    std::optional<Finding> finding;
    const auto look_at = [&](std::mutex& mutex, const Requests& receives) {
      const std::lock_guard lock(mutex);
      receives.each([&](const Request& receive) {
        if (finding || receive.wr_id != wr_id) return;
        finding = Finding{Kind::kReceiveTooShort,
                          qp.name(),
                          wr_id,
                          why_datagram_dropped(receive, needed),
                          {{"posted", receive.posted}, {"queue pair created", qp.created()}}};
      });
    };
    if (qp.srq)
      look_at(qp.srq->mutex, qp.srq->receives);
    else
      look_at(qp.mutex, qp.receives);
    if (!finding) return;
    Report::instance().add(*finding);
    said = true;
  });
  return next->datagram_too_long(qp_num, wr_id, needed) || said;
}

void receive_awaited(uint32_t qp_num, uint64_t nanoseconds, int gave_up) {
  if (wants.hints || gave_up)
    with(qp_num, [&](const Qp& qp) {
      Report::instance().add(
          {Kind::kNoReceive,
           qp.name(),
           {},
           text("a message of the peer came when no receive was posted%s, and "
                "waited %.3f ms%s",
                qp.srq ? " to its shared receive queue" : "",
                static_cast<double>(nanoseconds) * 1e-6,
                gave_up ? " (UIWARP_RNR_WAIT_MS) in vain: the connection ends" : ""),
           {{"queue pair created", qp.created()}},
           !gave_up});
    });
  next->receive_awaited(qp_num, nanoseconds, gave_up);
}

}  // namespace wrap
}  // namespace uiw::check
