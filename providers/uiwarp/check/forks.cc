// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/forks.h"

#include <pthread.h>

#include "check/fork_gate.h"
#include "check/report.h"
#include "check/text.h"
#include "core/generation.h"

namespace uiw::check {
namespace {

thread_local Stack forking;  // of a thread that is in fork()

Objects* held = nullptr;  // by the thread that forks; under its lock

// The process that fork() has made last, and where it was called. Another process that is the copy
// of one is of clone(): locks of this library may be held there for good.
unsigned forked = 0;
Stack forked_at;

void before_fork() {
  // Not from within: a handler may fork that has interrupted the taking of another stack.
  if (ForkGate::is_within()) {
    forking = {};
  } else {
    capture(forking);
  }
  Objects& objects = Objects::instance();
  objects.hold();
  held = &objects;
  fork_gate.close();
}

void in_parent() {
  fork_gate.open();
  held->let_go();
}

void in_child() {
  fork_gate.open_in_child();
  held->let_go();
  Objects::instance().inherit(*held);
  forked_at = forking;
  forked = core::generation();
}

}  // namespace

void watch_forks() {
  pthread_atfork(before_fork, in_parent, in_child);
}

bool is_inherited(const Context& context, const void* object, const char* call, Use use) {
  if (!context.foreign()) return false;
  if (forked != core::generation()) return true;
  const Objects::Entry entry = Objects::instance().find(object);
  if (!entry.object) return true;
  Stack here;
  capture(here);
  Report::instance().add(
      {Kind::kInherited,
       entry.name,
       {},
       text(use == Use::kWorks
                ? "%s is called in a fork of the process that made it, where it cannot work"
                : "%s is called in a fork of the process that made it, which goes on having it",
            call),
       {{"called", here}, {"forked", forked_at}, {"created", entry.created}},
       use == Use::kDestroys});
  return true;
}

}  // namespace uiw::check
