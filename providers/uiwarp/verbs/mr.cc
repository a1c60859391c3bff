// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Memory registration: an entry in the context's table. Nothing is pinned. And memory windows.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <memory>
#include <new>

#include "core/explain_of.h"
#include "mem/mapping.h"
#include "verbs/pd.h"

using namespace uiw;
using verbs::Region;
using verbs::User;

// A region as its context knows it: registered there, or imported.
struct uiwarp_mr {
  uiwarp_context* context;
  std::shared_ptr<Region> region;
};

struct uiwarp_mw {
  uiwarp_pd* pd;
  uint32_t stag;  // one of its STags
};

namespace {

constexpr uint32_t kKept = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND |
                           IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND;
static_assert(uint32_t{IBV_ACCESS_LOCAL_WRITE} == mem::kLocalWrite);
static_assert(uint32_t{IBV_ACCESS_REMOTE_WRITE} == mem::kRemoteWrite);
static_assert(uint32_t{IBV_ACCESS_REMOTE_READ} == mem::kRemoteRead);
static_assert(uint32_t{IBV_ACCESS_REMOTE_ATOMIC} == mem::kRemoteAtomic);
static_assert(uint32_t{IBV_ACCESS_MW_BIND} == mem::kMwBind);
static_assert(uint32_t{IBV_ACCESS_ZERO_BASED} == mem::kZeroBased);
static_assert(uint32_t{IBV_ACCESS_ON_DEMAND} == mem::kOnDemand);
// ibv_rereg_mr() needs one temporarily.
static_assert(device::Limits::kMaxMr + 1 + device::Limits::kMaxMw <= mem::Table::kCapacity);

// IBV_ACCESS_FLUSH_GLOBAL, IBV_ACCESS_FLUSH_PERSISTENT of rdma-core 45.
constexpr uint32_t kFlush = 1u << 8 | 1u << 9;

constexpr uint32_t kWrites =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

int check_access(core::Told& told, uint32_t access) {
  // Optional flags such as relaxed ordering may be ignored (ibv_reg_mr), and so may huge pages.
  access &= ~(uint32_t{IBV_ACCESS_OPTIONAL_RANGE} | uint32_t{IBV_ACCESS_HUGETLB});
  // The kernel knows these flags, and refuses them for a device without the feature.
  if (access & kFlush)
    return core::refuse(
        told, EOPNOTSUPP,
        "ibv_reg_mr: access has IBV_ACCESS_FLUSH_GLOBAL or _PERSISTENT, and there is "
        "no such flush here");
  if (access & ~kKept)
    return core::refuse(told, EINVAL,
                        "ibv_reg_mr: access 0x%x has bits (0x%x) that are not of enum "
                        "ibv_access_flags",
                        access, access & ~kKept);
  // "If IBV_ACCESS_REMOTE_WRITE or IBV_ACCESS_REMOTE_ATOMIC is set, then IBV_ACCESS_LOCAL_WRITE
  // must be set too" (ibv_reg_mr)
  if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
      !(access & IBV_ACCESS_LOCAL_WRITE))
    return core::refuse(told, EINVAL,
                        "ibv_reg_mr: IBV_ACCESS_REMOTE_WRITE and IBV_ACCESS_REMOTE_ATOMIC need "
                        "IBV_ACCESS_LOCAL_WRITE besides (access is 0x%x)",
                        access);
  return 0;
}

// The properties that ibv_rereg_mr() may change.
struct Wanted {
  uiwarp_pd* pd;
  uint8_t* addr;
  uint64_t length;
  uint64_t iova;
  uint32_t rights;

  uint64_t start() const { return rights & IBV_ACCESS_ZERO_BASED ? 0 : iova; }
};

Wanted as_it_is(const Region& region) {
  return {region.pd, region.addr, region.length, region.iova, region.rights};
}

void assign(Region& region, const Wanted& wanted) {
  region.pd = wanted.pd;
  region.addr = wanted.addr;
  region.length = wanted.length;
  region.iova = wanted.iova;
  region.rights = wanted.rights;
}

// siw refuses empty regions. For drivers that pin pages, ib_umem_get() counts the pages that a
// region touches: an empty one touches a page unless it lies on a page boundary.
bool is_within_page(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)) != 0;
}

// Checks a region before it gets an STag.
int check(const Wanted& mr) {
  core::Told& told = mr.pd->context->told.mr;
  if (const int error = check_access(told, mr.rights)) return error;
  if (mr.length == 0 && !(mr.pd->context->face->zero_length_regions && is_within_page(mr.addr)))
    return core::refuse(told, EINVAL, "ibv_reg_mr: length is 0");
  // The whole address space (implicit ODP): fails as in the kernel with a device that does not
  // support it.
  if ((mr.rights & IBV_ACCESS_ON_DEMAND) && !mr.addr && mr.length == SIZE_MAX)
    return core::refuse(told, EINVAL,
                        "ibv_reg_mr: there is no implicit on-demand paging, of all of the address "
                        "space (ibv_query_device_ex: odp_caps)");
  const uint64_t first = reinterpret_cast<uintptr_t>(mr.addr), start = mr.start();
  if (first + mr.length < first || start + mr.length < start)
    return core::refuse(
        told, EINVAL, "ibv_reg_mr: %p and %" PRIu64 " bytes go beyond the end of the address space",
        static_cast<void*>(mr.addr), mr.length);
  const int error =
      mem::check_mapped(mr.addr, std::max<uint64_t>(mr.length, 1), mr.rights & kWrites);
  if (error == EFAULT)
    core::explain(told, "ibv_reg_mr: of the %" PRIu64 " bytes from %p on some are not mapped%s",
                  mr.length, static_cast<void*>(mr.addr),
                  mr.rights & kWrites ? ", or not to be written to as access wants it" : "");
  return error;
}

core::Result<uint32_t> add(const Wanted& mr, size_t limit) {
  uiwarp_context& context = *mr.pd->context;
  auto stag =
      context.memory.add(mr.pd->id, mr.addr, mr.start(), mr.length, mr.rights & kKept, limit);
  if (!stag && stag.error() == ENOMEM && context.memory.size() >= limit)
    core::explain(context.told.mr,
                  "ibv_reg_mr: the device has %zu memory regions, its limit (ibv_query_device: "
                  "max_mr)",
                  limit);
  return stag;
}

// Returns `error` of a call that removes the region's STag from the table; logs the reason.
int with_reason(uiwarp_context& context, const Region& region, int error, const char* caller) {
  if (error != EBUSY) return error;
  return core::refuse_of(caller, context.told.mr, error,
                         "%s: memory windows are bound to the region of %" PRIu64
                         " bytes at %p: deallocate or invalidate them first; the call failed with "
                         "EBUSY, and the region is still registered",
                         caller, region.length, static_cast<void*>(region.addr));
}

void move_users(uiwarp_pd& from, uiwarp_pd& to) {
  verbs::hold(to, User::kRegion);
  verbs::let_go(from, User::kRegion);
}

// Called before the key becomes invalid. Posted requests may be waiting, if another thread is
// sending or the socket is full. An adapter has usually read their memory by then, and programs
// have come to rely on that (Gloo).
bool send_what_is_posted(const Region& region) {
  return region.pd->domain->senders.let_go_of(region.stag, false);
}

// Requests that could not be sent fail, once no more can be started from the region.
int remove(uiwarp_context& context, const Region& region) {
  const bool all_sent = send_what_is_posted(region);
  if (const int error = context.memory.remove(region.stag)) return error;
  if (!all_sent) region.pd->domain->senders.let_go_of(region.stag, true);
  return 0;
}

int change_rights(uiwarp_context& context, const Region& region, uint32_t rights) {
  send_what_is_posted(region);
  return context.memory.change_access(region.stag, rights);
}

// Replaces the region by `changed`, with a new STag.
int replace(uiwarp_context& context, Region& region, const Wanted& changed) {
  auto stag = add(changed, device::Limits::kMaxMr + 1);
  if (!stag) return stag.error();
  if (const int error = remove(context, region)) {
    context.memory.remove(*stag);
    return error;
  }
  region.stag = *stag;
  return 0;
}

int refuse_destroyed(uiwarp_context& context, const char* call) {
  return core::refuse_of(call, context.told.mr, EINVAL,
                         "%s: the memory region was deregistered in another ibv_context of the "
                         "same command descriptor; what is left is to be ended by "
                         "ibv_unimport_mr",
                         call);
}

uiwarp_mr* make(uiwarp_context& context, std::shared_ptr<Region> region) {
  auto* const made = new (std::nothrow) uiwarp_mr{&context, std::move(region)};
  if (made) context.mrs.count();
  return made;
}

void end(uiwarp_mr* mr) {
  mr->context->mrs.give();
  delete mr;
}

}  // namespace

int uiwarp_mr_reg(uiwarp_pd* pd, void* addr, size_t length, uint64_t iova, int access,
                  uiwarp_mr** mr, uint32_t* lkey, uint32_t* rkey) {
  if (const int error = verbs::check_usable(*pd)) return error;
  const Wanted wanted{pd, static_cast<uint8_t*>(addr), length, iova, static_cast<uint32_t>(access)};
  if (const int error = check(wanted)) return error;
  std::shared_ptr<Region> region(new (std::nothrow) Region);
  uiwarp_mr* const made = region ? make(*pd->context, region) : nullptr;
  if (!made) return ENOMEM;
  auto stag = add(wanted, device::Limits::kMaxMr);
  if (!stag) {
    end(made);
    return stag.error();
  }
  assign(*region, wanted);
  region->stag = *stag;
  pd->context->space->regions.add(region);
  verbs::hold(*pd, User::kRegion);
  *mr = made;
  *lkey = *rkey = *stag;
  return 0;
}

int uiwarp_mr_rereg(uiwarp_mr* mr, int flags, uiwarp_pd* pd, void* addr, size_t length, int access,
                    uint32_t* lkey, uint32_t* rkey) {
  uiwarp_context& context = *mr->context;
  Region& region = *mr->region;
  if (context.in_child()) return core::refuse_in_child();
  if (region.is_destroyed.load(std::memory_order_relaxed))
    return refuse_destroyed(context, "ibv_rereg_mr");
  Wanted changed = as_it_is(region);
  if (flags & IBV_REREG_MR_CHANGE_PD) {
    if (!pd || pd->context != &context)
      return core::refuse(context.told.mr, EINVAL,
                          "ibv_rereg_mr: with IBV_REREG_MR_CHANGE_PD pd has to be a protection "
                          "domain of the region's ibv_context, and is %s",
                          pd ? "of another one" : "null");
    if (const int error = verbs::check_usable(*pd)) return error;
    changed.pd = pd;
  }
  if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
    changed.addr = static_cast<uint8_t*>(addr);
    changed.length = length;
    changed.iova = reinterpret_cast<uintptr_t>(addr);
  }
  if (flags & IBV_REREG_MR_CHANGE_ACCESS) changed.rights = static_cast<uint32_t>(access);
  if (const int error = check(changed)) return error;
  // Rights may change while the key stays (RFC 5040 8.1.1(5)), but a key that a peer has must not
  // lead to other memory.
  const bool same_place = changed.pd->id == region.pd->id &&
                          !(flags & IBV_REREG_MR_CHANGE_TRANSLATION) &&
                          changed.start() == as_it_is(region).start();
  if (const int error = same_place ? change_rights(context, region, changed.rights & kKept)
                                   : replace(context, region, changed))
    return with_reason(context, region, error, "ibv_rereg_mr");
  move_users(*region.pd, *changed.pd);
  assign(region, changed);
  *lkey = *rkey = region.stag;
  return 0;
}

// In a forked child the table may be in the middle of a change or use by a thread of the parent: a
// wait would never end. Nothing looks keys up there.
int uiwarp_mr_dereg(uiwarp_mr* mr) {
  uiwarp_context& context = *mr->context;
  Region& region = *mr->region;
  if (!context.in_child()) {
    if (region.is_destroyed.load(std::memory_order_relaxed))
      return refuse_destroyed(context, "ibv_dereg_mr");
    if (const int error = remove(context, region))
      return with_reason(context, region, error, "ibv_dereg_mr");
    region.is_destroyed.store(true, std::memory_order_relaxed);
    context.space->regions.remove(region);
  }
  verbs::let_go(*region.pd, User::kRegion);
  end(mr);
  return 0;
}

uint32_t uiwarp_mr_handle(uiwarp_mr* mr) {
  return mr->region->handle;
}

// Like the kernel, this does not compare protection domains.
int uiwarp_mr_import(uiwarp_pd* pd, uint32_t handle, uiwarp_mr** mr, uint32_t* lkey, uint32_t* rkey,
                     uint64_t* length) {
  uiwarp_context& context = *pd->context;
  if (context.in_child()) return core::refuse_in_child();
  std::shared_ptr<Region> region = context.space->regions.find(handle);
  if (!region)
    return core::refuse(context.told.mr, EINVAL,
                        "ibv_import_mr: no memory region of this command descriptor has handle %u: "
                        "it is that of another device or process, or of one that was deregistered",
                        handle);
  *lkey = *rkey = region->stag;
  *length = region->length;
  *mr = make(context, std::move(region));
  return *mr ? 0 : ENOMEM;
}

void uiwarp_mr_unimport(uiwarp_mr* mr) {
  end(mr);
}

int uiwarp_mw_alloc(uiwarp_pd* pd, int type, uiwarp_mw** mw, uint32_t* rkey) {
  static_assert(IBV_MW_TYPE_1 == static_cast<int>(mem::WindowType::kType1));
  static_assert(IBV_MW_TYPE_2 == static_cast<int>(mem::WindowType::kType2));
  if (const int error = verbs::check_usable(*pd)) return error;
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
    return core::refuse(pd->context->told.mw, EINVAL,
                        "ibv_alloc_mw: type is %d, there are IBV_MW_TYPE_1 and IBV_MW_TYPE_2",
                        type);
  auto* made = new (std::nothrow) uiwarp_mw{pd, 0};
  if (!made) return ENOMEM;
  auto stag = pd->context->memory.add_window(pd->id, static_cast<mem::WindowType>(type),
                                             device::Limits::kMaxMw);
  if (!stag) {
    delete made;
    if (stag.error() == ENOMEM && pd->context->mws.used() >= device::Limits::kMaxMw)
      core::explain(pd->context->told.mw,
                    "ibv_alloc_mw: the device has %zu memory windows, its limit "
                    "(ibv_query_device: max_mw)",
                    size_t{device::Limits::kMaxMw});
    return stag.error();
  }
  verbs::hold(*pd, User::kWindow);
  pd->context->mws.count();
  *rkey = made->stag = *stag;
  *mw = made;
  return 0;
}

int uiwarp_mw_dealloc(uiwarp_mw* mw) {
  const int error =
      mw->pd->context->in_child() ? 0 : mw->pd->context->memory.remove_window(mw->stag);
  if (error) return error;
  mw->pd->context->mws.give();
  verbs::let_go(*mw->pd, User::kWindow);
  delete mw;
  return 0;
}

int uiwarp_mw_next_rkey(uiwarp_mw* mw, uint32_t rkey, uint32_t* next) {
  if (mw->pd->context->in_child()) return core::refuse_in_child();
  if (mem::index_of(rkey) != mem::index_of(mw->stag))
    return core::refuse(mw->pd->context->told.mw, EINVAL,
                        "ibv_bind_mw: rkey of the memory window is 0x%x, which is another one's: "
                        "the program has written to its struct ibv_mw",
                        rkey);
  auto stag = mw->pd->context->memory.other_key(rkey);
  if (!stag) return stag.error();
  *next = *stag;
  return 0;
}
