// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Contexts and domains; what is left when one ends.

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <mutex>

#include "check/destroyed.h"
#include "check/forks.h"
#include "check/text.h"
#include "check/unread_events.h"
#include "check/wraps.h"
#include "core/last_thread.h"
#include "core/shared_by_number.h"

namespace uiw::check {

void report_busy(const char* call, const void* object, const char* otherwise) {
  constexpr size_t kShown = 4;
  const Objects::Entry entry = Objects::instance().find(object);
  const auto users = Objects::instance().users_of(object);
  Finding finding{
      Kind::kDestroyOrder, entry.name, {}, {}, {{"called", {}}, {"created", entry.created}}};
  capture(finding.places[0].stack);
  finding.what = text("%s failed with EBUSY, since it is in use", call);
  for (size_t i = 0; i < std::min(users.size(), kShown); ++i) {
    finding.what += (i ? ", " : " by ") + users[i].name;
    finding.places.push_back({"user created", users[i].created});
  }
  if (users.size() > kShown) finding.what += text(" and %zu more", users.size() - kShown);
  if (users.empty()) finding.what += text(" %s", otherwise);
  Report::instance().add(finding);
}

namespace {

// From the first exit handler on: libraries that close devices when the process ends, such as
// librdmacm, do so behind that.
std::atomic<bool> exiting{false};

core::SharedByNumber<CommandSpace> spaces;

const void* root_of(uiwarp_pd* pd) {
  return reinterpret_cast<const void*>(uintptr_t{next->pd_handle(pd)});
}

// librdmacm keeps its devices open until it is unloaded, and frees its protection domain with the
// last rdma_cm_id of the device.
void report_leaks(const std::vector<Objects::Entry>& left) {
  for (const Objects::Entry& entry : left) {
    const bool is_librdmacms = is_by_librdmacm(entry.created);
    if (is_librdmacms && entry.object == entry.context) continue;
    Report::instance().add(
        {Kind::kLeak,
         entry.name,
         {},
         text("not destroyed when the process ended%s",
              is_librdmacms ? "; librdmacm made it, and destroys it in rdma_destroy_qp() or "
                              "rdma_destroy_id(); a protection domain not while a list of "
                              "rdma_get_devices() is there"
                            : ""),
         {{"created", entry.created}},
         true});
  }
}

void at_end() {
  report_overflows(nullptr);
  if (wants.hints) report_leaks(Objects::instance().all_of(nullptr));
}

void report_close(const Context& context, const std::vector<Objects::Entry>& left) {
  constexpr size_t kShown = 8;
  Finding finding{Kind::kLeak, "device", {}, {}, {}};
  finding.places.push_back({"opened", Objects::instance().find(&context).created});
  finding.what = text("ibv_close_device with %zu objects left, which cannot be destroyed any more:",
                      left.size());
  for (size_t i = 0; i < std::min(left.size(), kShown); ++i) {
    finding.what += (i ? ", " : " ") + left[i].name;
    finding.places.push_back({"left object created", left[i].created});
  }
  if (left.size() > kShown) finding.what += text(" and %zu more", left.size() - kShown);
  Report::instance().add(finding);
  // The end of the process has nothing to add.
  for (const Objects::Entry& entry : left) Objects::instance().remove(entry.object);
}

}  // namespace

bool is_exiting() {
  return exiting;
}

namespace wrap {

int context_open(const uiwarp_device* device, uint64_t command, uiwarp_context** context,
                 int* async_fd) {
  static std::once_flag once;
  std::call_once(once, [] {
    std::atexit([] { exiting = true; });
    Report::instance().before_end(at_end);
    watch_forks();
  });
  std::shared_ptr<CommandSpace> space = spaces.get(command);
  if (!space) return ENOMEM;
  auto* const opened = new Context(std::move(space));
  if (const int error = next->context_open(device, command, &opened->next, async_fd)) {
    delete opened;
    return error;
  }
  opened->async_fd = *async_fd;
  Objects::instance().add(*opened, opened, "device");
  *context = handle_of(opened);
  return 0;
}

void context_close(uiwarp_context* handle) {
  Context& context = of(handle);
  hint_at_unread(context, &context, nullptr, "ibv_close_device");
  next->context_close(context.next);
  if (context.foreign()) return;
  const auto left = Objects::instance().all_of(&context);
  if (!left.empty() && !exiting) report_close(context, left);
  forget_queues(context);
  Objects::instance().remove(&context);
  // What is left refers to it.
  if (left.empty()) delete &context;
}

void context_events_taken(uiwarp_context* context, int asynchronous) {
  // One may be of a queue that is polled no more.
  if (asynchronous && !of(context).foreign()) report_overflows(&of(context));
  next->context_events_taken(of(context).next, asynchronous);
}

int query_device(uiwarp_context* context, ibv_device_attr_ex* attr, size_t size) {
  return next->query_device(of(context).next, attr, size);
}

int query_port(uiwarp_context* context, uint8_t port, ibv_port_attr* attr) {
  return next->query_port(of(context).next, port, attr);
}

int pd_alloc(uiwarp_context* context, uiwarp_pd** pd) {
  is_inherited(of(context), &of(context), "ibv_alloc_pd");
  auto* const made = new Pd;
  if (const int error = next->pd_alloc(of(context).next, &made->next)) {
    delete made;
    return error;
  }
  made->context = &of(context);
  made->root = root_of(made->next);
  Objects::instance().add(*made->context, made, "protection domain");
  *pd = handle_of(made);
  return 0;
}

int pd_alloc_parent(uiwarp_context* context, uiwarp_pd* pd, uiwarp_td* td, uiwarp_pd** parent) {
  if (is_gone(pd, "ibv_alloc_parent_domain", As::kGiven) ||
      is_handle_gone(td, "ibv_alloc_parent_domain", As::kGiven))
    return EINVAL;
  is_inherited(of(context), &of(pd), "ibv_alloc_parent_domain");
  auto* const made = new Pd;
  if (const int error = next->pd_alloc_parent(of(context).next, of(pd).next, td, &made->next)) {
    delete made;
    return error;
  }
  made->context = &of(context);
  made->root = of(pd).root;
  if (td) made->promise = "a thread domain";
  Objects::instance().add(*made->context, made, "parent domain", {&of(pd), td});
  *parent = handle_of(made);
  return 0;
}

int pd_dealloc(uiwarp_pd* handle) {
  Pd* const pd = &of(handle);
  if (is_gone(pd, "ibv_dealloc_pd")) return EINVAL;
  if (is_inherited(*pd->context, pd, "ibv_dealloc_pd", Use::kDestroys))
    return next->pd_dealloc(pd->next);
  const int error = next->pd_dealloc(pd->next);
  if (error == EBUSY) report_busy("ibv_dealloc_pd", pd, "by other objects");
  if (error) return error;
  bury(pd);
  return 0;
}

uint32_t pd_handle(uiwarp_pd* pd) {
  return next->pd_handle(of(pd).next);
}

const char* pd_device(uiwarp_pd* pd) {
  return next->pd_device(of(pd).next);
}

int pd_import(uiwarp_context* context, uint32_t handle, uiwarp_pd** pd) {
  is_inherited(of(context), &of(context), "ibv_import_pd");
  auto* const made = new Pd;
  if (const int error = next->pd_import(of(context).next, handle, &made->next)) {
    delete made;
    return error;
  }
  made->context = &of(context);
  made->root = root_of(made->next);
  Objects::instance().add(*made->context, made, "imported protection domain");
  *pd = handle_of(made);
  return 0;
}

void pd_unimport(uiwarp_pd* handle) {
  Pd* const pd = &of(handle);
  const bool inherited = is_inherited(*pd->context, pd, "ibv_unimport_pd", Use::kDestroys);
  next->pd_unimport(pd->next);
  if (inherited) return;
  Objects::instance().remove(pd);
  const std::lock_guard lock(pd->context->mutex);
  pd->context->unimported.emplace_back(pd);
}

int td_alloc(uiwarp_context* context, uiwarp_td** td) {
  is_inherited(of(context), &of(context), "ibv_alloc_td");
  const int error = next->td_alloc(of(context).next, td);
  if (error) return error;
  make_way(*td);
  Objects::instance().add(of(context), *td, "thread domain");
  return 0;
}

int td_dealloc(uiwarp_td* td) {
  // In a child of the process that made it the list of objects is of no use.
  if (is_handle_gone(td, "ibv_dealloc_td")) return EINVAL;
  bury_handle(td);
  const int error = next->td_dealloc(td);
  if (error) bring_back(td);
  if (error == EBUSY) report_busy("ibv_dealloc_td", td, "by a parent domain");
  return error;
}

void object_free(void* object) {
  bury_memory(object);
}

// Another thread may acknowledge them later: then the call returns, as the manual has it. No thread
// can take an acknowledgement back.
void acks_missing(const char* call, const char* function, int32_t count) {
  Finding finding{Kind::kNotAcknowledged, call, {}, {}, {{"called", {}}}};
  finding.hint = count > 0 && !core::program_has_one_thread();
  // Somebody may look at a program that does not go on.
  if (finding.hint && !wants.hints) return next->acks_missing(call, function, count);
  finding.what =
      count < 0
          ? text(
                "it waits without end: %d more events of this object were acknowledged by %s() "
                "than the program got",
                -count, function)
          : text(
                "it waits for a second now: of the events of this object that the program got, "
                "%d are not acknowledged by %s()",
                count, function);
  capture(finding.places[0].stack);
  Report::instance().add(finding);
}

}  // namespace wrap
}  // namespace uiw::check
