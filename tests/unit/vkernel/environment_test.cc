// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the process-wide parts of the virtual kernel read once, set before the first test.
#include <gtest/gtest.h>

#include <memory>

#include "temporary_directory.h"

namespace uiw::vkernel {
namespace {

class RuntimeDirectory final : public testing::Environment {
 public:
  void SetUp() override {
    directory_ = std::make_unique<TemporaryDirectory>();
    setenv("UIWARP_RUNTIME_DIR", directory_->path().c_str(), 1);
    // The tests are about uiwarp's devices, also where the host has others.
    setenv("UIWARP_MODE", "exclusive", 1);
  }
  void TearDown() override { directory_.reset(); }

 private:
  std::unique_ptr<TemporaryDirectory> directory_;
};

[[maybe_unused]] const auto* const kRegistered =
    testing::AddGlobalTestEnvironment(new RuntimeDirectory);

}  // namespace
}  // namespace uiw::vkernel
