// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The file that this process records into. A shared mapping, so that what was recorded is there
// however the process ends.
#pragma once

#include "trace/record.h"

namespace uiw::trace {

// Which file, by the text of UIWARP_TRACE. Once in a process, before anything is recorded. False:
// it is not understood.
bool configure(const char* options);

// Makes the file of this process unless it is there. 0, or a positive errno, of which has been
// said. A fork's child has one of its own. Thread: any.
int open_ring();

// Writes a record, to which it gives its sequence. No system call, and no lock but for queue pairs
// that are made, connected and destroyed, as connections are kept beside the ring, too. Nothing
// happens before open_ring(), or in a child of its process. Thread: any.
void write(const Record& record);

// One with all fields zero but these.
Record record_of(Kind kind, uint32_t qp, int64_t time);

}  // namespace uiw::trace
