// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Where the stack tells whoever sits before the program.
#pragma once

#include <string_view>

namespace uiw::core {

// Writes `text` to descriptor 2. A peer can be the reason for a message, so neither a reader that
// has gone (SIGPIPE), nor a file that may not grow (SIGXFSZ), nor one that does not read does
// anything to the program: what cannot be written within a fifth of a second is dropped, and so is
// what comes until something can be written again. At most 4096 bytes at a time are not mixed with
// those of others. Thread: any.
void write_to_standard_error(std::string_view text);

}  // namespace uiw::core
