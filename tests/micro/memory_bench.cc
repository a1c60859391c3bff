// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <benchmark/benchmark.h>

#include <vector>

#include "mem/table.h"

namespace uiw::micro {
namespace {

constexpr uint32_t kPd = 7;
constexpr size_t kMost = 100000;

// What each tagged segment asks: whose memory is it, and may it go there? Among as many regions.
void find_and_check(benchmark::State& state) {
  mem::Table table;
  uint8_t octets[64];
  const uint64_t start = reinterpret_cast<uint64_t>(octets);
  std::vector<uint32_t> stags;
  for (int64_t i = 0; i < state.range(0); i++)
    stags.push_back(
        *table.add(kPd, octets, start, sizeof octets, mem::kLocalWrite | mem::kRemoteWrite, kMost));
  const mem::Stream stream = {.pd = kPd, .id = 42};
  size_t next = 0;
  for (auto _ : state) {
    const mem::RegionRef region = table.find(stags[next]);
    if (!region || mem::check_remote(*region, stream, start, sizeof octets, mem::kRemoteWrite) !=
                       mem::Fault::kNone) {
      state.SkipWithError("not found");
      break;
    }
    if (++next == stags.size()) next = 0;
  }
  for (const uint32_t stag : stags) table.remove(stag);
}
BENCHMARK(find_and_check)->Arg(1)->Arg(100)->Arg(10000);

}  // namespace
}  // namespace uiw::micro
