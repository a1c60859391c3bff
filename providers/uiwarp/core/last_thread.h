// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// When all threads of a process have ended, main()'s by pthread_exit(), the C library ends the
// process by exit(0). Our threads would keep it alive, and since they block signals, only SIGKILL
// would end it. doc/threading.md
#pragma once

namespace uiw::core {

// Arranges that, when the calling thread has ended and main()'s thread has ended, too, exit(0) is
// called once only our threads are left. Call it on a thread that has started one of ours. Thread:
// any.
void end_with_last_thread();

// Whether the program has one thread only, so that no other one ends what it waits for. Thread:
// any.
bool program_has_one_thread();

}  // namespace uiw::core
