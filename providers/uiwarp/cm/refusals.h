// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Why a call of rdma_cm is refused, said at the default log level (core/explain.h): librdmacm's
// callers see an errno. Each `call`, a literal, is told of by itself. Thread: any; the manager's
// lock is held.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cm/id.h"

namespace uiw::cm {

// What an id in that state is waiting for or doing: a clause.
const char* clause_of(IdState state);

// EINVAL: the id's state forbids the call. `allowed`: when it may be called.
int refuse_by_state(Id& id, const char* call, const char* allowed);
// EINVAL: more private data than there is room for.
int refuse_private_data(Id& id, const char* call, size_t size, size_t room);
// `error` of binding to `address`. Programs try addresses with port 0 to learn which belong to a
// device: of these nothing is said.
int refuse_address(Id& id, const char* call, const sockaddr_storage& address, int error);
// EOPNOTSUPP: the id's port space has no such thing on these devices.
int refuse_service(Id& id, const char* call);
// EINVAL of the queue pair that is to have the connection: `exists` or there is none of that
// number.
int refuse_queue_pair(Id& id, const char* call, uint32_t qp_num, bool exists);

}  // namespace uiw::cm
