// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Creating and destroying UD queue pairs.
#pragma once

#include "uiwarp/uiwarp-abi.h"
#include "verbs/qp.h"

namespace uiw::verbs {

// Gives `qp`, whose queues are set, a number, a door and its datagram part. EADDRINUSE: no port is
// free for both TCP and UDP (logged); ENOMEM, EMFILE. Thread: any that may wait for the engine.
int create_datagrams(uiwarp_qp& qp, const uiwarp_qp_init& init);
// When this returns, nothing completes or raises events any more, and another queue pair of this
// process may get the number. Other processes find the port taken while a thread is inside a poll
// that receives. Thread: the same.
void end_datagrams(uiwarp_qp& qp);

}  // namespace uiw::verbs
