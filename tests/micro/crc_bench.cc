// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <benchmark/benchmark.h>

#include <vector>

#include "core/crc32c.h"

namespace uiw::micro {
namespace {

void crc32c(benchmark::State& state) {
  const std::vector<uint8_t> octets(static_cast<size_t>(state.range(0)), 'u');
  for (auto _ : state) benchmark::DoNotOptimize(core::crc32c(octets.data(), octets.size()));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
// An FPDU without payload, with 64 octets, of an Ethernet segment, of a page, the largest.
BENCHMARK(crc32c)->Arg(20)->Arg(82)->Arg(1444)->Arg(4096)->Arg(65536);

void crc32c_copy(benchmark::State& state) {
  const std::vector<uint8_t> octets(static_cast<size_t>(state.range(0)), 'u');
  std::vector<uint8_t> copied(octets.size());
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        core::crc32c_copy(core::crc32c_begin(), copied.data(), octets.data(), octets.size()));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(crc32c_copy)->Arg(64)->Arg(512)->Arg(1424)->Arg(16384);

}  // namespace
}  // namespace uiw::micro
