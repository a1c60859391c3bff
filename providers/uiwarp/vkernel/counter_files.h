// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The files in which processes of this user publish what they count (counters/), in the folder
// `counters` beside the trees.
//
// A file is held by a record lock of its process, which ends with it however it ends, and which a
// fork does not take along. What nobody holds is what an ended process has counted: it stays until
// the next process that publishes adds it to the file of sums. So no count goes back.
#pragma once

#include <string>
#include <vector>

#include "counters/snapshot.h"

namespace uiw::vkernel {

// A new file for this process, held by it: a descriptor or -errno. Adds to the sums what ended
// processes have left. As counters::Create.
int create_counter_file();

// What all queue pairs of this user have counted since the folder was made, for each device.
// Thread: any.
std::vector<counters::Row> counted_by_device();

// The same two in a given folder; `own` is this process's file, which it must not close: that would
// end the lock. For tests.
int create_counter_file(const std::string& path);
std::vector<counters::Row> counted_by_device(const std::string& path, int own);

}  // namespace uiw::vkernel
