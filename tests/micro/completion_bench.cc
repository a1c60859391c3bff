// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <benchmark/benchmark.h>

#include "queue/completion_queue.h"

namespace uiw::micro {
namespace {

constexpr int kMost = 64;

// As many completions pushed, then taken with one poll. Time of one of them.
void push_and_poll(benchmark::State& state) {
  const auto cq = queue::CompletionQueue::create(2 * kMost, nullptr);
  const int batch = static_cast<int>(state.range(0));
  const queue::Completion completion = {};  // of no source: there is no place to free
  ibv_wc out[kMost];
  for (auto _ : state) {
    for (int i = 0; i < batch; i++) cq->push(completion, false);
    if (cq->poll(batch, out) != batch) {
      state.SkipWithError("lost completions");
      break;
    }
  }
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK(push_and_poll)->Arg(1)->Arg(16)->Arg(kMost);

void poll_empty(benchmark::State& state) {
  const auto cq = queue::CompletionQueue::create(kMost, nullptr);
  ibv_wc out;
  for (auto _ : state) benchmark::DoNotOptimize(cq->poll(1, &out));
}
BENCHMARK(poll_empty);

}  // namespace
}  // namespace uiw::micro
