// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Output to the user of the program.
#pragma once

#include <string_view>

namespace uiw::core {

// Writes `text` to descriptor 2. A peer can cause a message, so the program must not suffer from a
// reader that has gone (SIGPIPE), a file that may not grow (SIGXFSZ), or a reader that does not
// read: what cannot be written within a fifth of a second is dropped, and so are later messages
// until something can be written again. Up to 4096 bytes at a time are not mixed with the output of
// others. Thread: any.
void write_to_standard_error(std::string_view text);

}  // namespace uiw::core
