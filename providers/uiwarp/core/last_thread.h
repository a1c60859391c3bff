// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A process whose threads have all ended, main()'s by pthread_exit(), ends by exit(0): the C
// library does that with the last one. Ours would be left behind, and since they take no signals
// nothing but SIGKILL would end them. doc/threading.md
#pragma once

namespace uiw::core {

// What our threads are called, in /proc/PID/task/TID/comm too: none of them keeps a process.
inline constexpr char kEngineThread[] = "uiwarp";
inline constexpr char kCheckThread[] = "uiwarp-check";
inline constexpr char kFaultsThread[] = "uiwarp-faults";
inline constexpr char kLastThread[] = "uiwarp-last";

// When the calling thread ends by pthread_exit() or by returning, and main()'s has ended or is this
// one, exit(0) follows once no thread but ours is left. For a thread that has started one of ours.
// Thread: any.
void end_with_last_thread();

}  // namespace uiw::core
