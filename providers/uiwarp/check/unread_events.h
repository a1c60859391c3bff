// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Asynchronous events that nobody has read by the end of what they name. libibverbs reads them from
// a pipe by itself, so no call shows that; but what is in the pipe can be looked at.
#pragma once

#include <cstdint>

#include "check/objects.h"

namespace uiw::check {

// Before `call` destroys `object`, which the program calls `user` (an ibv_qp, ibv_cq or ibv_srq):
// what was told of it and not read is taken back then. With null for `user` before the device is
// closed: of itself and its port. A hint. Thread: the program's.
void hint_at_unread(const Context& context, const void* object, const void* user, const char* call);

}  // namespace uiw::check
