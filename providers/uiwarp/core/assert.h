// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// UIW_ASSERT: a programming error of ours. Never reached by what a peer or an application sends.
#pragma once

namespace uiw::core {
[[noreturn]] void assert_failed(const char* expression, const char* file, int line);
}

#define UIW_ASSERT(expression) \
  ((expression) ? (void)0 : ::uiw::core::assert_failed(#expression, __FILE__, __LINE__))
