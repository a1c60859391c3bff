// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/pd.h"

#include <cerrno>
#include <new>

using namespace uiw;

int uiwarp_pd_alloc(uiwarp_context* context, uiwarp_pd** pd) {
  if (context->in_child()) return ENODEV;
  if (!context->pds.take(device::Limits::kMaxPd)) return ENOMEM;
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

int uiwarp_pd_dealloc(uiwarp_pd* pd) {
  if (pd->users.load(std::memory_order_acquire) > 0) return EBUSY;
  pd->context->pds.give();
  delete pd;
  return 0;
}
