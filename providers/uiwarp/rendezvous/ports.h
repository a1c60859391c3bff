// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The TCP ports of this process that its queue pair numbers contain. A port is bound, so that no
// other process has the same numbers, but does not listen: a program that uses rdma_cm opens
// nothing. Only when the first of its queue pairs is to be met there (door.h) it does.
#pragma once

#include <cstdint>

#include "core/result.h"
#include "engine/engine.h"

namespace uiw::rendezvous {

class Door;

// A number that no other queue pair of this host has, and none had lately. EADDRINUSE: no port of
// the allowed range (UIWARP_PORTS) is free; EMFILE and the like. Thread: any.
core::Result<uint32_t> take_number();
// With the last number of a port that listens the port is closed. Thread: any that may wait for the
// engine.
void give_number(uint32_t qp_num);
// Closes the ports of which no number is in use. Thread: any.
void close_idle_ports();

// Whether take_number() gave this number. Thread: any.
bool number_in_use(uint32_t qp_num);

// Where the number's queue pair can be met; begins to listen on the port if it does not yet. Stays
// until the number is given back. Errno: EADDRINUSE, ENOMEM, EINVAL no such number. Thread: engine.
core::Result<Door*> open_door(engine::Engine& engine, uint32_t qp_num);

}  // namespace uiw::rendezvous
