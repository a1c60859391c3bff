// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/pd.h"

#include <cerrno>
#include <new>

using namespace uiw;
using device::Limits;
using verbs::User;

namespace {

// A domain of the context, which counts as one of `all`. Null: the limit, or out of memory.
template <class Domain>
Domain* make(uiwarp_context& context, verbs::Quota& all) {
  // Thread domains are no more than what they can be used for.
  if (!all.take(Limits::kMaxPd)) return nullptr;
  auto* const made = new (std::nothrow) Domain;
  if (made)
    made->context = &context;
  else
    all.give();
  return made;
}

}  // namespace

int uiwarp_pd_alloc(uiwarp_context* context, uiwarp_pd** pd) {
  if (context->in_child()) return ENODEV;
  auto* const made = make<uiwarp_pd>(*context, context->pds);
  if (!made) return ENOMEM;
  made->id = context->last_pd_id.fetch_add(1, std::memory_order_relaxed) + 1;
  *pd = made;
  return 0;
}

int uiwarp_pd_alloc_parent(uiwarp_context* context, uiwarp_pd* pd, uiwarp_td* td,
                           uiwarp_pd** parent) {
  if (context->in_child()) return ENODEV;
  if (pd->context != context || (td && td->context != context)) return EINVAL;
  auto* const made = make<uiwarp_pd>(*context, context->pds);
  if (!made) return ENOMEM;
  made->id = pd->id;
  made->parent_of = pd;
  made->td = td;
  pd->users.add(User::kParentDomain);
  if (td) td->users.add(User::kParentDomain);
  *parent = made;
  return 0;
}

int uiwarp_pd_dealloc(uiwarp_pd* pd) {
  if (pd->users.any()) return verbs::refuse_busy(pd->told, "ibv_dealloc_pd", pd->users);
  if (pd->parent_of) pd->parent_of->users.remove(User::kParentDomain);
  if (pd->td) pd->td->users.remove(User::kParentDomain);
  pd->context->pds.give();
  delete pd;
  return 0;
}

int uiwarp_td_alloc(uiwarp_context* context, uiwarp_td** td) {
  if (context->in_child()) return ENODEV;
  *td = make<uiwarp_td>(*context, context->tds);
  return *td ? 0 : ENOMEM;
}

int uiwarp_td_dealloc(uiwarp_td* td) {
  if (td->users.any()) return verbs::refuse_busy(td->told, "ibv_dealloc_td", td->users);
  td->context->tds.give();
  delete td;
  return 0;
}
