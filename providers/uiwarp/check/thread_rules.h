// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Findings of one_thread.h.
#pragma once

#include "check/objects.h"
#include "check/one_thread.h"

namespace uiw::check {

// While it lives its thread is in `call` on `object`, of which no other thread may make one then.
class Alone {
 public:
  // `promise`: by what the program has said so; null: it has not, and nothing is done.
  Alone(OneAtATime& calls, const char* promise, const void* object, const char* call);
  ~Alone() {
    if (calls_) calls_->leave(this_thread());
  }
  Alone(const Alone&) = delete;

 private:
  OneAtATime* calls_ = nullptr;
};

// The same, of a section: from here on, until leave() of its thread.
void enter_section(Qp& qp, const Stack& here);

// `call` waits for the section of its own thread, for ever.
void report_waiting(const Qp& qp, const char* call, const Stack& here);
// `call` belongs into a section.
void report_outside(Qp& qp, const char* call, const Stack& here);
// One that goes in a section.
void report_open_section(const Qp& qp);

}  // namespace uiw::check
