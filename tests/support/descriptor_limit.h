// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How many descriptors this process may have (RLIMIT_NOFILE): another number for as long as this
// lives.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace uiw::test {

class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t number) : before_(now()) {
    const rlimit wanted{number, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &wanted), 0);
  }
  ~DescriptorLimit() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

  static rlim_t allowed() { return now().rlim_cur; }
  // What it can be raised to.
  static rlim_t most() { return now().rlim_max; }

 private:
  static rlimit now() {
    rlimit limit{};
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    return limit;
  }
  const rlimit before_;
};

}  // namespace uiw::test
