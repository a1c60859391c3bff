// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/thread_rules.h"

#include "check/report.h"
#include "check/text.h"

namespace uiw::check {
namespace {

void report_concurrent(const void* object, const char* call, const char* promise, const Stack& here,
                       const Stack& other) {
  const Objects::Entry entry = Objects::instance().find(object);
  Report::instance().add({Kind::kConcurrentUse,
                          entry.name,
                          {},
                          text("%s is called while another thread is in a call on the same queue, "
                               "which was created for one thread at a time (%s)",
                               call, promise),
                          {{"called", here}, {"other thread", other}, {"created", entry.created}}});
}

void report_section(const Qp& qp, std::string what, std::vector<Place> places) {
  places.push_back({"queue pair created", qp.created()});
  Report::instance().add({Kind::kSection, qp.name(), {}, std::move(what), std::move(places)});
}

}  // namespace

Alone::Alone(OneAtATime& calls, const char* promise, const void* object, const char* call) {
  if (!promise) return;
  Stack here;
  capture(here);
  const auto within = calls.enter(this_thread(), here);
  if (!within)
    calls_ = &calls;
  else if (within->thread != this_thread())
    report_concurrent(object, call, promise, here, within->where);
}

void enter_section(Qp& qp, const Stack& here) {
  if (!qp.pd->promise) return;
  const auto within = qp.sending.enter(this_thread(), here);
  if (within && within->thread != this_thread())
    report_concurrent(&qp, "ibv_wr_start", qp.pd->promise, here, within->where);
}

void report_waiting(const Qp& qp, const char* call, const Stack& here) {
  const std::optional<Stack> begun = qp.section.open();
  report_section(qp,
                 text("%s waits for ever, since its thread has begun a section by ibv_wr_start() "
                      "and not ended it",
                      call),
                 {{"called", here}, {"section begun", begun.value_or(Stack{})}});
}

void report_outside(Qp& qp, const char* call, const Stack& here) {
  const Section::Fault fault = qp.section.call(this_thread(), here);
  if (fault.step == Section::Step::kOutside)
    report_section(qp, text("%s without ibv_wr_start() before it", call), {{"called", here}});
  if (fault.step == Section::Step::kMixed)
    report_section(
        qp,
        text("%s in a section that another thread has made calls in since ibv_wr_start()", call),
        {{"called", here}, {"section begun", fault.begun}, {"other thread", fault.other}});
}

void report_open_section(const Qp& qp) {
  const std::optional<Stack> begun = qp.section.open();
  if (!begun) return;
  Stack here;
  capture(here);
  report_section(qp, "destroyed in a section of ibv_wr_start() that was never ended",
                 {{"destroyed", here}, {"section begun", *begun}});
}

}  // namespace uiw::check
