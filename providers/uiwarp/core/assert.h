// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// UIW_ASSERT: fails only on a programming error of ours, never because of what a peer or an
// application does.
#pragma once

namespace uiw::core {
[[noreturn]] void assert_failed(const char* expression, const char* file, int line);
}

#define UIW_ASSERT(expression) \
  ((expression) ? (void)0 : ::uiw::core::assert_failed(#expression, __FILE__, __LINE__))
