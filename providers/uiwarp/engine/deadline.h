// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A timer that calls a member function of its owner.
#pragma once

#include "engine/engine.h"

namespace uiw::engine {

template <class T, void (T::*kExpired)()>
class Deadline final : public Timer {
 public:
  explicit Deadline(T& owner) : owner_(owner) {}
  void expire() override { (owner_.*kExpired)(); }

 private:
  T& owner_;
};

}  // namespace uiw::engine
