// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/pd.h"

#include <cerrno>
#include <new>

using namespace uiw;
using device::Limits;
using verbs::User;

namespace {

// Makes a domain of the context, counted in `all`. Null: limit reached, or out of memory.
template <class Domain>
Domain* make(uiwarp_context& context, verbs::Quota& all) {
  // Thread domains have the same limit: more could not be used.
  if (!all.take(Limits::kMaxPd)) {
    core::explain(context.told.pd,
                  &all == &context.pds
                      ? "ibv_alloc_pd, ibv_alloc_parent_domain: the device has %u domains, its "
                        "limit (ibv_query_device: max_pd)"
                      : "ibv_alloc_td: the device has %u thread domains, its limit",
                  Limits::kMaxPd);
    return nullptr;
  }
  auto* const made = new (std::nothrow) Domain;
  if (made)
    made->context = &context;
  else
    all.give();
  return made;
}

uiwarp_pd* make_pd(uiwarp_context& context, std::shared_ptr<verbs::Domain> domain) {
  auto* const made = make<uiwarp_pd>(context, context.pds);
  if (!made) return nullptr;
  made->id = domain->id;
  made->domain = std::move(domain);
  return made;
}

void end(uiwarp_pd* pd) {
  if (pd->parent_of) verbs::let_go(*pd->parent_of, User::kParentDomain);
  if (pd->td) pd->td->users.remove(User::kParentDomain);
  pd->context->pds.give();
  delete pd;
}

}  // namespace

int verbs::check_usable(const uiwarp_pd& pd) {
  if (pd.context->in_child()) return core::refuse_in_child();
  if (!pd.domain->is_destroyed.load(std::memory_order_relaxed)) return 0;
  return core::refuse(
      pd.context->told.pd, EINVAL,
      "protection domain: nothing can be made in it, since ibv_dealloc_pd was called "
      "for it in another ibv_context of the same command descriptor");
}

// Objects of a parent domain hold the parent domain, and that holds the domain that it was made of.
void verbs::hold(uiwarp_pd& pd, User kind) {
  pd.held.fetch_add(1, std::memory_order_relaxed);
  pd.users.add(kind);
  if (!pd.parent_of) pd.domain->users.add(kind);
}

void verbs::let_go(uiwarp_pd& pd, User kind) {
  if (!pd.parent_of) pd.domain->users.remove(kind);
  pd.users.remove(kind);
  if (pd.held.fetch_sub(1, std::memory_order_acq_rel) == (kUnimported | 1)) end(&pd);
}

int uiwarp_pd_alloc(uiwarp_context* context, uiwarp_pd** pd) {
  if (context->in_child()) return core::refuse_in_child();
  std::shared_ptr<verbs::Domain> domain(new (std::nothrow) verbs::Domain);
  if (!domain) return ENOMEM;
  domain->id = context->space->last_pd_id.fetch_add(1, std::memory_order_relaxed) + 1;
  *pd = make_pd(*context, domain);
  if (!*pd) return ENOMEM;
  context->space->domains.add(domain);
  return 0;
}

const char* uiwarp_pd_device(uiwarp_pd* pd) {
  return pd->context->device->name.c_str();
}

int uiwarp_pd_alloc_parent(uiwarp_context* context, uiwarp_pd* pd, uiwarp_td* td,
                           uiwarp_pd** parent) {
  if (context->in_child()) return core::refuse_in_child();
  if (pd->context != context || (td && td->context != context))
    return core::refuse(context->told.pd, EINVAL,
                        "ibv_alloc_parent_domain: the %s domain is of another ibv_context",
                        pd->context != context ? "protection" : "thread");
  if (const int error = verbs::check_usable(*pd)) return error;
  auto* const made = make_pd(*context, pd->domain);
  if (!made) return ENOMEM;
  made->parent_of = pd;
  made->td = td;
  verbs::hold(*pd, User::kParentDomain);
  if (td) td->users.add(User::kParentDomain);
  *parent = made;
  return 0;
}

// In a forked child locks may be held forever, and nothing looks handles up there.
int uiwarp_pd_dealloc(uiwarp_pd* pd) {
  const auto refuse_busy = [&](const verbs::Users& users) {
    return verbs::refuse_busy(pd->told, "ibv_dealloc_pd", users);
  };
  if (pd->held.load(std::memory_order_acquire) > 0) return refuse_busy(pd->users);
  if (!pd->parent_of && !pd->context->in_child()) {
    verbs::Domain& domain = *pd->domain;
    if (domain.users.any()) return refuse_busy(domain.users);
    if (domain.is_destroyed.exchange(true, std::memory_order_relaxed))
      return core::refuse(pd->context->told.pd, EINVAL,
                          "ibv_dealloc_pd: it was called for this protection domain in another "
                          "ibv_context of the same command descriptor; what is left is to be ended "
                          "by ibv_unimport_pd");
    pd->context->space->domains.remove(domain);
  }
  end(pd);
  return 0;
}

uint32_t uiwarp_pd_handle(uiwarp_pd* pd) {
  return pd->domain->handle;
}

int uiwarp_pd_import(uiwarp_context* context, uint32_t handle, uiwarp_pd** pd) {
  if (context->in_child()) return core::refuse_in_child();
  std::shared_ptr<verbs::Domain> domain = context->space->domains.find(handle);
  if (!domain)
    return core::refuse(context->told.pd, EINVAL,
                        "ibv_import_pd: no protection domain of this command descriptor has handle "
                        "%u: it is that of another device or process, or of one that was "
                        "deallocated",
                        handle);
  *pd = make_pd(*context, std::move(domain));
  return *pd ? 0 : ENOMEM;
}

void uiwarp_pd_unimport(uiwarp_pd* pd) {
  if (pd->held.fetch_or(verbs::kUnimported, std::memory_order_acq_rel) == 0) end(pd);
}

int uiwarp_td_alloc(uiwarp_context* context, uiwarp_td** td) {
  if (context->in_child()) return core::refuse_in_child();
  *td = make<uiwarp_td>(*context, context->tds);
  return *td ? 0 : ENOMEM;
}

int uiwarp_td_dealloc(uiwarp_td* td) {
  if (td->users.any()) return verbs::refuse_busy(td->told, "ibv_dealloc_td", td->users);
  td->context->tds.give();
  delete td;
  return 0;
}
