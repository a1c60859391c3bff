// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <benchmark/benchmark.h>

#include "ddp/header.h"

namespace uiw::micro {
namespace {

void encode_tagged(benchmark::State& state) {
  uint8_t octets[ddp::kTaggedHeaderSize];
  ddp::TaggedHeader header = {true, 0x40, 0x11223344, 0x1000};
  for (auto _ : state) {
    header.to++;
    ddp::encode(octets, header);
    benchmark::DoNotOptimize(octets);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(encode_tagged);

void decode_tagged(benchmark::State& state) {
  uint8_t octets[ddp::kTaggedHeaderSize];
  ddp::encode(octets, ddp::TaggedHeader{true, 0x40, 0x11223344, 0x1000});
  for (auto _ : state) {
    benchmark::DoNotOptimize(octets);
    benchmark::ClobberMemory();
    ddp::TaggedHeader header = ddp::decode_tagged(octets);
    benchmark::DoNotOptimize(header);
  }
}
BENCHMARK(decode_tagged);

void decode_untagged(benchmark::State& state) {
  uint8_t octets[ddp::kUntaggedHeaderSize];
  ddp::encode(octets, ddp::UntaggedHeader{true, 0x43, 0, ddp::kQnSend, 1, 0});
  for (auto _ : state) {
    benchmark::DoNotOptimize(octets);
    benchmark::ClobberMemory();
    ddp::UntaggedHeader header = ddp::decode_untagged(octets);
    benchmark::DoNotOptimize(header);
  }
}
BENCHMARK(decode_untagged);

}  // namespace
}  // namespace uiw::micro
