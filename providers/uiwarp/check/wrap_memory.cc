// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Memory regions, memory windows, address handles.
#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <memory>
#include <mutex>

#include "check/destroyed.h"
#include "check/forks.h"
#include "check/text.h"
#include "check/unmapping.h"
#include "check/wraps.h"
#include "core/injected.h"

namespace uiw::check {
namespace {

Region region_of(const Pd& pd, void* addr, size_t length, uint64_t iova, int access, uint32_t stag,
                 const Stack& registered) {
  Region region;
  region.stag = stag;
  region.pd = pd.root;
  region.memory = static_cast<uint8_t*>(addr);
  region.start = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
  region.length = length;
  region.access = static_cast<uint32_t>(access);
  region.registered = registered;
  return region;
}

bool names(const Request& request, uint32_t lkey) {
  return std::ranges::any_of(request.sges,
                             [&](const ibv_sge& sge) { return sge.length && sge.lkey == lkey; });
}

// Requests whose completion the program has asked for, and not taken. Receives of a queue pair
// whose peer sends no more are as good as gone, which nobody can see; and of a send the program may
// know by other means that it was carried out. What fails for it is a finding of its own.
void report_use(Context& context, const Region& region) {
  Stack here;
  capture(here);
  const std::shared_lock lock(context.mutex);
  for (const auto& [number, qp] : context.qps) {
    const std::lock_guard queue_lock(qp->mutex);
    const auto [wr_ids, posted] =
        unpolled_of(qp->sends, [&](const Request& request) { return names(request, region.lkey); });
    if (wr_ids.empty() || state_of(*qp) != IBV_QPS_RTS) continue;
    Report::instance().add(
        {Kind::kBufferInFlight,
         qp->name(),
         wr_ids.front(),
         region.name() +
             " is deregistered while requests use it whose completions were not polled: " +
             list_of(wr_ids),
         {{"deregistered", here}, {"posted", posted}, {"memory registered", region.registered}},
         true});
  }
}

}  // namespace

namespace wrap {

int mr_reg(uiwarp_pd* pd, void* addr, size_t length, uint64_t iova, int access, uiwarp_mr** mr,
           uint32_t* lkey, uint32_t* rkey) {
  if (is_gone(pd, "ibv_reg_mr", As::kGiven)) return EINVAL;
  auto made = std::make_unique<Mr>();
  uint32_t stag;
  Context& context = *of(pd).context;
  is_inherited(context, &of(pd), "ibv_reg_mr");
  if (const int error =
          next->mr_reg(of(pd).next, addr, length, iova, access, &made->next, &stag, rkey))
    return error;
  made->pd = &of(pd);
  Stack registered;
  capture(registered);
  {
    const std::lock_guard lock(context.mutex);
    made->region =
        context.regions.add(region_of(of(pd), addr, length, iova, access, stag, registered))
            .shared_from_this();
    *lkey = made->region->lkey;
  }
  Objects::instance().add(context, made.get(), made->region->name(), {made->pd});
  watch_memory(*made->region, made.get());
  *mr = handle_of(made.release());
  return 0;
}

int mr_rereg(uiwarp_mr* handle, int flags, uiwarp_pd* pd, void* addr, size_t length, int access,
             uint32_t* lkey, uint32_t* rkey) {
  Mr& mr = of(handle);
  const bool has_pd = flags & IBV_REREG_MR_CHANGE_PD;
  if (is_gone(&mr, "ibv_rereg_mr") || (has_pd && is_gone(pd, "ibv_rereg_mr", As::kGiven)))
    return EINVAL;
  Context& context = *mr.pd->context;
  uint32_t stag;
  is_inherited(context, &mr, "ibv_rereg_mr");
  // What is not to be changed is not looked at: libibverbs passes on whatever a program gave.
  uiwarp_pd* const inner = has_pd ? next_of<Pd>(pd) : nullptr;
  const core::Injections injected;
  if (const int error = next->mr_rereg(mr.next, flags, inner, addr, length, access, &stag, rkey)) {
    if (error == EBUSY && !context.foreign() && !injected.any())
      report_busy("ibv_rereg_mr", &mr, "by memory windows that are bound to it");
    return error;
  }
  Stack registered;
  capture(registered);
  {
    const std::lock_guard lock(context.mutex);
    const Region& old = *mr.region;
    if (has_pd) mr.pd = &of(pd);
    const bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
    const int rights = flags & IBV_REREG_MR_CHANGE_ACCESS ? access : static_cast<int>(old.access);
    Region changed =
        region_of(*mr.pd, moves ? addr : old.memory, moves ? length : old.length,
                  moves ? reinterpret_cast<uintptr_t>(addr) : old.start, rights, stag, registered);
    context.regions.change(*mr.region, changed);
    *lkey = mr.region->lkey;
  }
  leave_memory(*mr.region);
  watch_memory(*mr.region, &mr);
  Objects::instance().add(context, &mr, mr.region->name(), {mr.pd});
  return 0;
}

int mr_dereg(uiwarp_mr* handle) {
  Mr* const mr = &of(handle);
  if (is_gone(mr, "ibv_dereg_mr")) return EINVAL;
  Context& context = *mr->pd->context;
  if (is_inherited(context, mr, "ibv_dereg_mr", Use::kDestroys)) return next->mr_dereg(mr->next);
  if (wants.hints) report_use(context, *mr->region);
  if (const int error = next->mr_dereg(mr->next)) {
    if (error == EBUSY) report_busy("ibv_dereg_mr", mr, "by memory windows that are bound to it");
    return error;
  }
  Stack here;
  capture(here);
  {
    const std::lock_guard lock(context.mutex);
    mr->region->deregistered = here;
    context.regions.remove(*mr->region);
  }
  leave_memory(*mr->region);
  bury(mr);
  return 0;
}

uint32_t mr_handle(uiwarp_mr* mr) {
  return next->mr_handle(of(mr).next);
}

int mr_import(uiwarp_pd* pd, uint32_t handle, uiwarp_mr** mr, uint32_t* lkey, uint32_t* rkey,
              uint64_t* length) {
  if (is_gone(pd, "ibv_import_mr", As::kGiven)) return EINVAL;
  auto made = std::make_unique<Mr>();
  Context& context = *of(pd).context;
  is_inherited(context, &of(pd), "ibv_import_mr");
  if (const int error = next->mr_import(of(pd).next, handle, &made->next, lkey, rkey, length))
    return error;
  made->pd = &of(pd);
  {
    const std::shared_lock lock(context.mutex);
    made->region = context.regions.find_by_stag(*rkey);
  }
  if (!made->region) {  // another thread is deregistering it
    next->mr_unimport(made->next);
    return EINVAL;
  }
  *lkey = made->region->lkey;
  Objects::instance().add(context, made.get(), "imported " + made->region->name(), {made->pd});
  *mr = handle_of(made.release());
  return 0;
}

void mr_unimport(uiwarp_mr* handle) {
  Mr* const mr = &of(handle);
  const bool inherited = is_inherited(*mr->pd->context, mr, "ibv_unimport_mr", Use::kDestroys);
  next->mr_unimport(mr->next);
  if (inherited) return;
  Objects::instance().remove(mr);
  delete mr;
}

int mr_advise(uiwarp_pd* pd, int advice, uint32_t flags, const ibv_sge* sges, uint32_t count) {
  if (is_gone(pd, "ibv_advise_mr", As::kGiven)) return EINVAL;
  Context& context = *of(pd).context;
  std::vector<ibv_sge> copies(sges, sges + count);
  if (!is_inherited(context, &of(pd), "ibv_advise_mr")) {
    const std::shared_lock lock(context.mutex);
    for (ibv_sge& sge : copies) sge.lkey = context.regions.stag_of(sge.lkey);
  }
  return next->mr_advise(of(pd).next, advice, flags, copies.data(), count);
}

int mw_alloc(uiwarp_pd* pd, int type, uiwarp_mw** mw, uint32_t* rkey) {
  if (is_gone(pd, "ibv_alloc_mw", As::kGiven)) return EINVAL;
  is_inherited(*of(pd).context, &of(pd), "ibv_alloc_mw");
  const int error = next->mw_alloc(of(pd).next, type, mw, rkey);
  if (error) return error;
  make_way(*mw);
  Objects::instance().add(*of(pd).context, *mw, "memory window", {&of(pd)});
  return 0;
}

int mw_dealloc(uiwarp_mw* mw) {
  if (is_handle_gone(mw, "ibv_dealloc_mw")) return EINVAL;
  bury_handle(mw);
  const int error = next->mw_dealloc(mw);
  if (error) bring_back(mw);
  return error;
}

// By which ibv_bind_mw() begins.
int mw_next_rkey(uiwarp_mw* mw, uint32_t rkey, uint32_t* next_rkey) {
  if (is_handle_gone(mw, "ibv_bind_mw", As::kGiven)) return EINVAL;
  return next->mw_next_rkey(mw, rkey, next_rkey);
}

int ah_create(uiwarp_pd* pd, const ibv_ah_attr* attr, uiwarp_ah** ah) {
  if (is_gone(pd, "ibv_create_ah", As::kGiven)) return EINVAL;
  is_inherited(*of(pd).context, &of(pd), "ibv_create_ah");
  const int error = next->ah_create(of(pd).next, attr, ah);
  if (error) return error;
  make_way(*ah);
  Objects::instance().add(*of(pd).context, *ah, "address handle", {&of(pd)});
  return 0;
}

int ah_destroy(uiwarp_ah* ah) {
  if (is_handle_gone(ah, "ibv_destroy_ah")) return EINVAL;
  bury_handle(ah);
  const int error = next->ah_destroy(ah);
  if (error) bring_back(ah);
  return error;
}

}  // namespace wrap
}  // namespace uiw::check
