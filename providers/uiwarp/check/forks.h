// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Children of a process that go on using what it has opened.
#pragma once

#include "check/objects.h"

namespace uiw::check {

// Remembers from now on where processes are forked off. Once.
void watch_forks();

enum class Use : uint8_t {
  kWorks,     // makes, posts, polls: a finding
  kDestroys,  // a child may do so as it ends: a hint
};

// Whether `call` is on an object that a parent of this process has opened; that is reported, and
// the call belongs to the next table as it is. `object`: as in Objects. Thread: any.
bool is_inherited(const Context& context, const void* object, const char* call,
                  Use use = Use::kWorks);

}  // namespace uiw::check
