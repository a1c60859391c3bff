// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// /dev/infiniband/rdma_cm: the ucma command set that librdmacm writes.
#pragma once

#include <memory>

#include "vkernel/device_file.h"
#include "vkernel/event_pipe.h"

namespace uiw::vkernel {

// A new event channel. `events` is the pipe whose other end the application polls: push() when an
// event becomes available to GET_EVENT, pop() when it is taken. Null when memory is short.
// Any thread.
DeviceFile* make_ucma_file(std::unique_ptr<EventPipe> events);

}  // namespace uiw::vkernel
