// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Who of the instruments wants to know what another one of them has injected.
#pragma once

#include <atomic>
#include <cstdint>

namespace uiw::core {

// A rule in this line of the file of --faults was carried out: of that queue pair or of none (0),
// and what became of what it met. Takes no lock. Thread: any.
using OnInjected = void (*)(uint32_t qp_num, int line, const char* what);
// Null: nobody.
inline constinit std::atomic<OnInjected> on_injected{nullptr};

// Calls of this thread that have failed by a rule, ever.
inline constinit thread_local unsigned calls_injected = 0;

// Of one call, or several: made before it.
class Injections {
 public:
  // Whether it has failed by a rule since.
  bool any() const { return calls_injected != before_; }

 private:
  const unsigned before_ = calls_injected;
};

inline constinit thread_local bool is_own_call = false;

// While it lives what this thread calls is an instrument's own doing: it meets no rule, and counts
// for none. Not within another one.
class OwnCalls {
 public:
  OwnCalls() { is_own_call = true; }
  ~OwnCalls() { is_own_call = false; }
  OwnCalls(const OwnCalls&) = delete;
};

}  // namespace uiw::core
