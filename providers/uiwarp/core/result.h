// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A value or a positive errno. Its members are named as in std::expected, which g++ 12 lacks in
// C++20.
#pragma once

#include <optional>
#include <utility>

namespace uiw::core {

struct Errno {
  int value;  // positive errno
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit by design
  Result(Errno e) : error_(e.value) {}           // NOLINT

  bool has_value() const { return value_.has_value(); }
  explicit operator bool() const { return has_value(); }
  T& value() { return *value_; }
  const T& value() const { return *value_; }
  T& operator*() { return *value_; }
  T* operator->() { return &*value_; }
  // The errno of a failed call; 0 when there is a value.
  int error() const { return error_; }

 private:
  std::optional<T> value_;
  int error_ = 0;
};

}  // namespace uiw::core
