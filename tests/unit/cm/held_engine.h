// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <semaphore>
#include <thread>

#include "engine/engine.h"

namespace uiw::cm::test {

// An engine that does nothing until it is released.
class HeldEngine {
 public:
  explicit HeldEngine(engine::Engine& engine)
      : holder_([this, &engine] {
          engine.run_sync([this] {
            held_.release();
            go_on_.acquire();
          });
        }) {
    held_.acquire();
  }
  void release() {
    go_on_.release();
    holder_.join();
  }

 private:
  std::binary_semaphore held_{0}, go_on_{0};
  std::thread holder_;
};

}  // namespace uiw::cm::test
