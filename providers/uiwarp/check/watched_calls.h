// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Calls of the program that are none of the verbs.
#pragma once

namespace uiw::check {

// Has libuiwarp-preload.so, if it is there, tell of calls (uiwarp-watch.h). Once.
void watch_calls();

}  // namespace uiw::check
