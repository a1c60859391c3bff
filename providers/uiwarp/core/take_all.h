// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How an instrument empties a completion queue through the next table.
#pragma once

#include <algorithm>

#include "uiwarp/uiwarp-verbs.h"

namespace uiw::core {

// Polls until the queue is empty, and calls `visit` for each ibv_wc in order. Returns 0, or the
// negative error of the poll. Thread: any; the order is that of the calls.
template <class Visit>
int take_all(const uiwarp_verbs& verbs, uiwarp_cq* cq, Visit visit) {
  constexpr int kMost = 16;
  ibv_wc wcs[kMost];
  int count;
  do {
    count = verbs.cq_poll(cq, kMost, wcs);
    for (int i = 0; i < count; ++i) visit(wcs[i]);
  } while (count == kMost);
  return std::min(count, 0);
}

}  // namespace uiw::core
