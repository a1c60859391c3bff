// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How an instrument learns what another instrument has injected.
#pragma once

#include <atomic>
#include <cstdint>

namespace uiw::core {

// The rule in this line of the --faults file was carried out, on that queue pair or on none (0);
// `what` says with which effect. Takes no lock. Thread: any.
using OnInjected = void (*)(uint32_t qp_num, int line, const char* what);
// Null: no instrument wants to know.
inline constinit std::atomic<OnInjected> on_injected{nullptr};

// How many calls of this thread have failed by a rule so far.
inline constinit thread_local unsigned calls_injected = 0;

// Detects injected failures in one or several calls; create it before them.
class Injections {
 public:
  // Whether a call has failed by a rule since.
  bool any() const { return calls_injected != before_; }

 private:
  const unsigned before_ = calls_injected;
};

inline constinit thread_local bool is_own_call = false;

// While this object lives, calls of this thread are an instrument's own: no rule applies to them or
// counts them. Do not nest.
class OwnCalls {
 public:
  OwnCalls() { is_own_call = true; }
  ~OwnCalls() { is_own_call = false; }
  OwnCalls(const OwnCalls&) = delete;
};

}  // namespace uiw::core
