// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Where each behaviour is tried: test_simulated and test_behaviour (TCP) are the same tests, linked
// to a world each.
#pragma once

#include <vector>

#include "sim/behaviour.h"

namespace uiw::test {

// Seeds 1 to `seeds` for the simulator, or those that UIWARP_TEST_SIM_SEEDS=FIRST-LAST (or =ONE)
// names; or the kinds of TCP connections, whatever `seeds` is.
std::vector<Medium> media(uint32_t seeds);

#define UIWARP_EVERYWHERE(suite, seeds)                                        \
  INSTANTIATE_TEST_SUITE_P(Everywhere, suite, testing::ValuesIn(media(seeds)), \
                           [](const auto& the) { return the.param.name; })

}  // namespace uiw::test
