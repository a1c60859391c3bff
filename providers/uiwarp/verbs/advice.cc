// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// ibv_advise_mr: what a program is about to use of memory that is paged on demand. All memory is,
// so advice is for the kernel, which may page it in ahead of the copies.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "core/raw_sys.h"
#include "mem/mapping.h"
#include "verbs/pd.h"

using namespace uiw;

namespace {

// Of Linux 5.14; C libraries of the time lack them.
constexpr int kPopulateRead = 22, kPopulateWrite = 23;

struct Range {
  uint8_t* start;
  uint64_t length;
};

// The errnos are those of the kernel's drivers that have it, as far as the manual has them.
int find(const uiwarp_pd& pd, const ibv_sge& sge, bool writes, Range& range) {
  const mem::RegionRef region = pd.context->memory.find(sge.lkey);
  if (!region) return ENOENT;
  if (region->is_window()) return EINVAL;
  if (!(region->access & mem::kOnDemand)) return ENOENT;
  if (region->pd != pd.id) return EPERM;
  if (writes && !(region->access & mem::kLocalWrite)) return EPERM;
  if (mem::check_range(*region, sge.addr, sge.length) != mem::Fault::kNone) return EFAULT;
  range = {region->memory + (sge.addr - region->start), sge.length};
  return 0;
}

// Best effort: a kernel that cannot do it pages in when the memory is used.
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
  if (!faults && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) return EOPNOTSUPP;
  if ((flags & ~uint32_t{IBV_ADVISE_MR_FLAG_FLUSH}) || count == 0) return EINVAL;
  for (uint32_t i = 0; i < count; ++i) {
    Range range;
    if (const int error = find(*pd, sges[i], writes, range)) return error;
    // Pages that are there already need nothing.
    if (!faults) continue;
    if (const int error = mem::check_mapped(range.start, range.length, writes)) return error;
  }
  // Without the flag it may be done later, which is when the memory is used.
  if (!faults || !(flags & IBV_ADVISE_MR_FLAG_FLUSH)) return 0;
  for (uint32_t i = 0; i < count; ++i) {
    Range range;
    if (find(*pd, sges[i], writes, range) == 0)
      page_in(range, writes ? kPopulateWrite : kPopulateRead);
  }
  return 0;
}
