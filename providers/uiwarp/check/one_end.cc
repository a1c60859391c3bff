// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/one_end.h"

#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "core/generation.h"
#include "core/no_cancellation.h"
#include "core/raw_sys.h"

namespace uiw::check {
namespace {

// The thread that ends the process, behind the process's number: a fork ends by itself.
constinit std::atomic<uint64_t> first{0};

}  // namespace

void wait_unless_first() {
  constexpr unsigned kBits = 32;
  const uint64_t process = core::generation();
  const uint64_t self = process << kBits | static_cast<uint32_t>(core::sys::gettid());
  uint64_t known = first.load(std::memory_order_acquire);
  while (known >> kBits != process)
    if (first.compare_exchange_weak(known, self, std::memory_order_acq_rel)) return;
  if (known == self) return;
  const core::NoCancellation whole;
  for (;;) pause();
}

}  // namespace uiw::check
