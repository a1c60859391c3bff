// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/pd.h"

#include <cerrno>
#include <new>

using namespace uiw;
using device::Limits;

int uiwarp_pd_alloc(uiwarp_context* context, uiwarp_pd** pd) {
  if (context->in_child()) return ENODEV;
  if (!context->pds.take(Limits::kMaxPd)) return ENOMEM;
  auto* made = new (std::nothrow) uiwarp_pd;
  if (!made) {
    context->pds.give();
    return ENOMEM;
  }
  made->context = context;
  made->id = context->last_pd_id.fetch_add(1, std::memory_order_relaxed) + 1;
  *pd = made;
  return 0;
}

int uiwarp_pd_alloc_parent(uiwarp_context* context, uiwarp_pd* pd, uiwarp_td* td,
                           uiwarp_pd** parent) {
  if (context->in_child()) return ENODEV;
  if (pd->context != context || (td && td->context != context)) return EINVAL;
  if (!context->pds.take(Limits::kMaxPd)) return ENOMEM;
  auto* made = new (std::nothrow) uiwarp_pd;
  if (!made) {
    context->pds.give();
    return ENOMEM;
  }
  made->context = context;
  made->id = pd->id;
  made->parent_of = pd;
  made->td = td;
  pd->users.fetch_add(1, std::memory_order_relaxed);
  if (td) td->users.fetch_add(1, std::memory_order_relaxed);
  *parent = made;
  return 0;
}

int uiwarp_pd_dealloc(uiwarp_pd* pd) {
  if (pd->users.load(std::memory_order_acquire) > 0) return EBUSY;
  if (pd->parent_of) pd->parent_of->users.fetch_sub(1, std::memory_order_release);
  if (pd->td) pd->td->users.fetch_sub(1, std::memory_order_release);
  pd->context->pds.give();
  delete pd;
  return 0;
}

int uiwarp_td_alloc(uiwarp_context* context, uiwarp_td** td) {
  if (context->in_child()) return ENODEV;
  // No more than what they can be used for.
  if (!context->tds.take(Limits::kMaxPd)) return ENOMEM;
  auto* made = new (std::nothrow) uiwarp_td;
  if (!made) {
    context->tds.give();
    return ENOMEM;
  }
  made->context = context;
  *td = made;
  return 0;
}

int uiwarp_td_dealloc(uiwarp_td* td) {
  if (td->users.load(std::memory_order_acquire) > 0) return EBUSY;
  td->context->tds.give();
  delete td;
  return 0;
}
