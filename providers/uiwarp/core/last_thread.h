// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A process whose threads have all ended, main()'s by pthread_exit(), ends by exit(0): the C
// library does that with the last one. Ours would be left behind, and since they take no signals
// nothing but SIGKILL would end them. doc/threading.md
#pragma once

namespace uiw::core {

// When the calling thread ends by pthread_exit() or by returning, and main()'s has ended or is this
// one, exit(0) follows once no thread but ours is left. For a thread that has started one of ours.
// Thread: any.
void end_with_last_thread();

}  // namespace uiw::core
