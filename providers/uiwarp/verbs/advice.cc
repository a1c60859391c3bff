// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// ibv_advise_mr: a program tells which on-demand memory it is about to use. All memory is paged on
// demand here, so the advice is passed to the kernel, which may page it in before the copies.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "core/raw_sys.h"
#include "mem/mapping.h"
#include "verbs/pd.h"

using namespace uiw;

namespace {

// Since Linux 5.14; C libraries of that time lack them.
constexpr int kPopulateRead = 22, kPopulateWrite = 23;

struct Range {
  uint8_t* start;
  uint64_t length;
};

// The errnos are those of the kernel's drivers, as far as the manual page documents them.
int find(const uiwarp_pd& pd, const ibv_sge& sge, bool writes, Range& range) {
  const auto refuse = [&](int error, const char* why) {
    return core::refuse_because(pd.context->told.advice, error, "ibv_advise_mr", why);
  };
  const mem::RegionRef region = pd.context->memory.find(sge.lkey);
  if (!region) return refuse(ENOENT, "the lkey of an SGE is that of no memory region");
  if (region->is_window()) return refuse(EINVAL, "the lkey of an SGE is that of a memory window");
  if (!(region->access & mem::kOnDemand))
    return refuse(ENOENT, "the region was registered without IBV_ACCESS_ON_DEMAND");
  if (region->pd != pd.id) return refuse(EPERM, "the region is of another protection domain");
  if (writes && !(region->access & mem::kLocalWrite))
    return refuse(EPERM, "the region was registered without IBV_ACCESS_LOCAL_WRITE");
  if (mem::check_range(*region, sge.addr, sge.length) != mem::Fault::kNone)
    return refuse(EFAULT, "an SGE begins before its region, or ends behind it");
  range = {region->memory + (sge.addr - region->start), sge.length};
  return 0;
}

// Best effort: otherwise the kernel pages in when the memory is used.
void page_in(const Range& range, int advice) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t start = reinterpret_cast<uintptr_t>(range.start);
  const uintptr_t first = start & ~(page - 1);
  core::sys::madvise(reinterpret_cast<void*>(first), start + range.length - first, advice);
}

}  // namespace

int uiwarp_mr_advise(uiwarp_pd* pd, int advice, uint32_t flags, const ibv_sge* sges,
                     uint32_t count) {
  if (pd->context->in_child()) return core::refuse_in_child();
  const bool writes = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
  const bool faults = writes || advice == IBV_ADVISE_MR_ADVICE_PREFETCH;
  core::Told& told = pd->context->told.advice;
  if (!faults && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
    return core::refuse(told, EOPNOTSUPP,
                        "ibv_advise_mr: advice is %d, which is none of enum ibv_advise_mr_advice",
                        advice);
  if (flags & ~uint32_t{IBV_ADVISE_MR_FLAG_FLUSH})
    return core::refuse(told, EINVAL,
                        "ibv_advise_mr: flags are 0x%x, there is IBV_ADVISE_MR_FLAG_FLUSH", flags);
  if (count == 0) return core::refuse(told, EINVAL, "ibv_advise_mr: num_sge is 0");
  for (uint32_t i = 0; i < count; ++i) {
    Range range;
    if (const int error = find(*pd, sges[i], writes, range)) return error;
    // NO_FAULT concerns only pages that are present already, which need nothing.
    if (!faults) continue;
    if (const int error = mem::check_mapped(range.start, range.length, writes))
      return core::refuse_because(told, error, "ibv_advise_mr",
                                  "some of the memory is not mapped, or not to be used so");
  }
  // Without the flag it may be done later: when the memory is used.
  if (!faults || !(flags & IBV_ADVISE_MR_FLAG_FLUSH)) return 0;
  for (uint32_t i = 0; i < count; ++i) {
    Range range;
    if (find(*pd, sges[i], writes, range) == 0)
      page_in(range, writes ? kPopulateWrite : kPopulateRead);
  }
  return 0;
}
