// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How UD queue pairs begin and end.
#pragma once

#include "uiwarp/uiwarp-abi.h"
#include "verbs/qp.h"

namespace uiw::verbs {

// Gives `qp`, whose queues are set, a number, a door and its datagram part. EADDRINUSE: no port is
// free for both TCP and UDP (explained); ENOMEM, EMFILE. Thread: any that may wait for the engine.
int create_datagrams(uiwarp_qp& qp, const uiwarp_qp_init& init);
// Returns when nothing completes or raises events any more, and its number may be another's of this
// process: other processes find the port taken while a thread is inside of a poll that receives.
// Thread: the same.
void end_datagrams(uiwarp_qp& qp);

}  // namespace uiw::verbs
