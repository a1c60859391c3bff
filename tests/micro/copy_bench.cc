// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <benchmark/benchmark.h>

#include <cstring>

#include "core/copy.h"
#include "core/pages.h"

namespace uiw::micro {
namespace {

constexpr size_t kMost = 64 << 10;

// As many octets, the destination so much further into its page than the source
// (doc/decisions/015-where-a-payload-begins.md).
template <class Copy>
void copy_payload(benchmark::State& state, Copy how) {
  const auto size = static_cast<size_t>(state.range(0)),
             ahead = static_cast<size_t>(state.range(1));
  const core::Pages from = core::allocate_pages(kMost), to = core::allocate_pages(kMost + 4096);
  std::memset(from.get(), 1, kMost);
  std::memset(to.get(), 2, kMost + 4096);
  for (auto _ : state) {
    how(to.get() + ahead, from.get(), size);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK_CAPTURE(copy_payload, uiwarp, &core::copy)->ArgsProduct({{4 << 10, kMost}, {0, 16, 100}});
BENCHMARK_CAPTURE(copy_payload, memcpy, &std::memcpy)
    ->ArgsProduct({{4 << 10, kMost}, {0, 16, 100}});

}  // namespace
}  // namespace uiw::micro
