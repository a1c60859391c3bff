// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Logs why a call of rdma_cm is refused, at the default log level (core/explain.h): callers of
// librdmacm see only an errno. Each `call`, a string literal, is logged once per id and reason.
// Thread: any; the manager's lock is held.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cm/id.h"

namespace uiw::cm {

// A clause that says what an id in that state is doing or waiting for.
const char* clause_of(IdState state);

// EINVAL: the id's state forbids the call. `allowed`: when it may be called.
int refuse_by_state(Id& id, const char* call, const char* allowed);
// EINVAL: more private data than there is room for.
int refuse_private_data(Id& id, const char* call, size_t size, size_t room);
// Returns `error`, of binding to `address`. Nothing is logged for port 0: programs try addresses
// with port 0 to find those that belong to a device.
int refuse_address(Id& id, const char* call, const sockaddr_storage& address, int error);
// EOPNOTSUPP: the id's port space has no such thing on these devices.
int refuse_service(Id& id, const char* call);
// EINVAL: the queue pair for the connection is not fit for it (`exists`), or there is none with
// that number.
int refuse_queue_pair(Id& id, const char* call, uint32_t qp_num, bool exists);

}  // namespace uiw::cm
