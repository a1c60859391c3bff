// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/last_reader.h"

#include "core/generation.h"
#include "core/raw_sys.h"
#include "vkernel/raw_files.h"

namespace uiw::vkernel {
namespace {

constexpr core::Nanoseconds kStep = 50 * core::kMicrosecond;

// gettid(), which asks the kernel only once per thread.
int this_thread() {
  static thread_local struct {
    unsigned generation;
    int number;
  } known{0, 0};
  const unsigned now = core::generation();
  if (known.generation != now) known = {now, core::sys::gettid()};
  return known.number;
}

}  // namespace

void LastReader::comes() {
  // Whoever waits now: this channel is not without a reader.
  away_.store(0, std::memory_order_release);
}

void LastReader::goes() {
  since_.store(core::now(), std::memory_order_relaxed);
  away_.store(this_thread(), std::memory_order_release);
}

void LastReader::await(core::Nanoseconds at_most) const {
  for (;;) {
    const int thread = away_.load(std::memory_order_acquire);
    if (thread == 0 || thread == this_thread() || !raw::thread_exists(thread)) return;
    if (core::now() - since_.load(std::memory_order_relaxed) >= at_most) return;
    raw::sleep(kStep);
  }
}

}  // namespace uiw::vkernel
