// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/unmapping.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string_view>
#include <utility>

#include "check/ranges.h"
#include "check/text.h"
#include "check/wraps.h"
#include "core/per_process.h"

namespace uiw::check {
namespace {

constinit core::PerProcess<Ranges> registered;

// Memory that goes, by which call.
struct Going {
  uint64_t begin, end;
  const char* call;
  Stack here;

  std::string name() const {
    return text("%s takes [0x%" PRIx64 ", 0x%" PRIx64 ") away", call, begin, end);
  }
};

// Requests of one queue whose memory goes. Work queues of one queue pair have different ones.
struct Hit {
  const char* requests;  // what they are
  bool is_certain = true;
  std::vector<uint64_t> wr_ids{};
  Stack posted{}, memory{};  // of the first

  void add(const Request& request, const Region& region) {
    if (wr_ids.empty()) {
      posted = request.posted;
      memory = region.registered;
    }
    wr_ids.push_back(request.wr_id);
  }
};

void append(std::vector<Finding>& findings, const Going& going, const std::string& object,
            const Place& created, const Hit& hit) {
  if (hit.wr_ids.empty()) return;
  findings.push_back(
      {Kind::kUnmapped,
       object,
       hit.wr_ids.front(),
       going.name() + ", with memory of " + hit.requests + ": " + list_of(hit.wr_ids),
       {{"unmapped", going.here},
        {"posted", hit.posted},
        {"memory registered", hit.memory},
        created},
       !hit.is_certain || is_exiting()});
}

void look_at_receives(const Requests& requests, const Regions& regions, const Going& going,
                      Hit& hit) {
  requests.each([&](const Request& request) {
    if (const Region* region = region_within(request, regions, going.begin, going.end))
      hit.add(request, *region);
  });
}

// Its mutex and its context's are held. A Send or Write may be over, and the program may know that,
// unless it asked for a completion and there is none.
void look_at_sends(Qp& qp, const Going& going, Hit& sinks, Hit& sources) {
  uint32_t messages;
  const bool any_over = next->cq_waiting(qp.send_cq->next, &messages) > 0;
  sources.is_certain = false;
  for (size_t i = 0; i < qp.sends.size(); ++i) {
    const Request request = qp.sends[i];
    const Region* const region =
        region_within(request, qp.pd->context->regions, going.begin, going.end);
    if (!region) continue;
    (request.role == Role::kSink ? sinks : sources).add(request, *region);
    sources.is_certain |= request.role == Role::kSource && request.signaled && !any_over;
    qp.sends.forget_fingerprint(i);  // this was said
  }
}

std::vector<Finding> look_at_queues(const Going& going) {
  std::vector<Finding> findings;
  std::set<const Srq*> seen;
  each_listened_for([&](Qp& qp) {
    // Nothing is placed there any more, or not yet.
    const ibv_qp_state state = state_of(qp);
    if (state == IBV_QPS_RESET || state == IBV_QPS_ERR || qp.pd->context->foreign()) return;
    Hit receives{"receives that are posted"},
        sinks{"RDMA Reads or atomics whose completions were not polled"},
        sources{"Sends or Writes whose completions were not polled"};
    const std::shared_lock lock(qp.pd->context->mutex);
    {
      const std::lock_guard queue_lock(qp.mutex);
      look_at_receives(qp.receives, qp.pd->context->regions, going, receives);
      look_at_sends(qp, going, sinks, sources);
    }
    const Place created{"queue pair created", qp.created()};
    for (const Hit& hit : {receives, sinks, sources})
      append(findings, going, qp.name(), created, hit);
    if (!qp.srq || !seen.insert(qp.srq).second) return;
    Hit shared{"receives that are posted"};
    {
      const std::lock_guard queue_lock(qp.srq->mutex);
      look_at_receives(qp.srq->receives, qp.srq->pd->context->regions, going, shared);
    }
    const Objects::Entry entry = Objects::instance().find(qp.srq);
    append(findings, going, entry.name, {"created", entry.created}, shared);
  });
  return findings;
}

// A call of this library's own, or of an allocator that it has called: its locks may be held.
bool is_our_own(const Stack& stack) {
  for (const uintptr_t address : stack.calls().addresses()) {
    Dl_info info;
    if (!dladdr(reinterpret_cast<void*>(address - 1), &info) || !info.dli_fname) continue;
    const std::string_view path = info.dli_fname;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (name.starts_with("libuiwarp") && !name.starts_with("libuiwarp-preload")) return true;
  }
  return false;
}

}  // namespace

void unmapping(const void* address, size_t size, const char* call) {
  const Ranges* const all = registered.made();
  if (!all) return;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto from = reinterpret_cast<uintptr_t>(address);
  if (from % page != 0) return;  // it fails
  Going going{from, (from + size + page - 1) / page * page, call, {}};
  std::array<const void*, 4> owners;
  const size_t count = all->find(going.begin, going.end, owners);
  if (count == 0) return;
  capture(going.here);
  if (is_our_own(going.here)) return;
  const std::vector<Finding> findings = look_at_queues(going);
  for (const Finding& finding : findings) Report::instance().add(finding);
  if (!findings.empty() || !wants.hints) return;
  for (const void* const owner : std::span(owners).first(count)) {
    const Objects::Entry entry = Objects::instance().find(owner);
    if (entry.name.empty()) continue;
    Report::instance().add({Kind::kUnmapped,
                            entry.name,
                            {},
                            going.name() + ", with memory of this region: no request names it now, "
                                           "but later ones, and the peer's, may",
                            {{"unmapped", going.here}, {"memory registered", entry.created}},
                            true});
  }
}

void watch_memory(const Region& region, const void* owner) {
  if (region.access & IBV_ACCESS_ON_DEMAND) return;
  const auto begin = reinterpret_cast<uintptr_t>(region.memory);
  if (Ranges* const all = registered.get())
    all->add({begin, begin + region.length, &region, owner});
}

void leave_memory(const Region& region) {
  if (Ranges* const all = registered.made()) all->remove(&region);
}

const Region* region_within(const Request& request, const Regions& regions, uint64_t begin,
                            uint64_t end) {
  const Region* found = nullptr;
  for (const ibv_sge& sge : request.sges) {
    const Region* const region = sge.length ? regions.find(sge.lkey) : nullptr;
    if (!region || (region->access & IBV_ACCESS_ON_DEMAND) || !region->holds(sge)) continue;
    const auto at = reinterpret_cast<uintptr_t>(region->at(sge));
    if (at < end && begin < at + sge.length) found = region;
  }
  return found;
}

}  // namespace uiw::check
