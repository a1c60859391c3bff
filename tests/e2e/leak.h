// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

// The device that owns 127.0.0.1, by any name. These are plain verbs programs: they use only the
// public interfaces. Each function does one cycle and returns 0, or prints what failed and returns 1.

// Opens and closes every device, with a PD, an MR, a completion channel, a CQ and a QP in between.
int leak_cycle_device(void);
// Creates and destroys an event channel with a bound, listening id.
int leak_cycle_listen(void);
// Connects two ids of this process over 127.0.0.1, disconnects, destroys everything.
int leak_cycle_connect(void);
// Destroys a listener while a connection request waits unaccepted; the client must be told.
int leak_cycle_pending(void);
// Rejects a request with private data; the client must see the rejection and the data.
int leak_cycle_reject(void);
