// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The project's own lock-free headers over Relacy's atomics, which explore interleavings and, for
// each load, the values that the C++ memory model allows it to see: older ones too, unless an
// ordering forbids it. A header is taken as it is, with `std` meaning the namespace below; so this
// file comes first, with all of the standard library that they need.
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <semaphore>
#include <span>
#include <sstream>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wshadow"
#include <relacy/relacy.hpp>
#pragma GCC diagnostic pop
// What it redefines is the project's again.
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert
#undef errno
#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst
#define errno (*__errno_location())

namespace modelled {

using namespace ::std;  // but for what follows

inline constexpr rl::memory_order memory_order_relaxed = rl::mo_relaxed;
inline constexpr rl::memory_order memory_order_acquire = rl::mo_acquire;
inline constexpr rl::memory_order memory_order_release = rl::mo_release;
inline constexpr rl::memory_order memory_order_acq_rel = rl::mo_acq_rel;
inline constexpr rl::memory_order memory_order_seq_cst = rl::mo_seq_cst;

template <class T>
class atomic {
 public:
  atomic(T value = {}) { store(value, memory_order_relaxed); }
  atomic(const atomic&) = delete;

  T load(rl::memory_order order = rl::mo_seq_cst) const { return out(value_.load(order, RL_INFO)); }
  void store(T value, rl::memory_order order = rl::mo_seq_cst) {
    value_.store(in(value), order, RL_INFO);
  }
  T exchange(T value, rl::memory_order order = rl::mo_seq_cst) {
    return out(value_.exchange(in(value), order, RL_INFO));
  }
  T fetch_add(T value, rl::memory_order order = rl::mo_seq_cst) {
    return value_.fetch_add(value, order, RL_INFO);
  }
  T fetch_sub(T value, rl::memory_order order = rl::mo_seq_cst) {
    return value_.fetch_sub(value, order, RL_INFO);
  }
  bool compare_exchange_weak(T& expected, T value, rl::memory_order order) {
    return value_.compare_exchange_weak(expected, value, order, RL_INFO);
  }
  bool compare_exchange_weak(T& expected, T value, rl::memory_order order,
                             rl::memory_order failed) {
    return value_.compare_exchange_weak(expected, value, order, RL_INFO, failed, RL_INFO);
  }
  bool compare_exchange_strong(T& expected, T value, rl::memory_order order) {
    return value_.compare_exchange_strong(expected, value, order, RL_INFO);
  }

 private:
  // It writes values to its report, which it cannot do with those of enumerations.
  using Kept = typename conditional_t<is_enum_v<T>, underlying_type<T>, type_identity<T>>::type;
  static Kept in(T value) { return static_cast<Kept>(value); }
  static T out(Kept value) { return static_cast<T>(value); }
  rl::atomic<Kept> value_;
};

}  // namespace modelled
