// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Calls that take memory away, of which an instrument is told.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "uiwarp/uiwarp-watch.h"

namespace {

std::string told;
const char* base = nullptr;
size_t page = 0;

// Pages relative to `base`.
void note(const void* address, size_t size, const char* call) {
  const auto at = static_cast<const char*>(address) - base;
  told += std::string(call) + " " + std::to_string(at / static_cast<long>(page)) + "+" +
          std::to_string(size / page) + ";";
  errno = E2BIG;
}

class MemoryHooks : public testing::Test {
 protected:
  void SetUp() override {
    watch_ = reinterpret_cast<uiwarp_preload_watch_function*>(
        dlsym(RTLD_DEFAULT, "uiwarp_preload_watch"));
    ASSERT_NE(watch_, nullptr);
    page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    base = static_cast<const char*>(map(nullptr, 4, 0));
    watch_(&watcher_);
  }
  void TearDown() override {
    if (watch_) watch_(nullptr);
    munmap(at(0), 4 * page);
  }

  static void* map(void* where, size_t pages, int flags) {
    return mmap(where, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
                -1, 0);
  }
  static void* at(size_t pages) { return const_cast<char*>(base) + pages * page; }
  // Since it was asked last.
  static std::string heard() { return std::exchange(told, {}); }

 private:
  static constexpr uiwarp_watcher watcher_ = {.unmapping = note, .exiting = nullptr};
  uiwarp_preload_watch_function* watch_ = nullptr;
};

TEST_F(MemoryHooks, TellOfWhatIsUnmapped) {
  errno = EXDEV;
  EXPECT_EQ(munmap(at(1), page), 0);
  EXPECT_EQ(errno, EXDEV);
  EXPECT_EQ(heard(), "munmap 1+1;");
}

TEST_F(MemoryHooks, TellOfWhatIsMappedOver) {
  EXPECT_EQ(map(at(2), 1, MAP_FIXED), at(2));
  EXPECT_EQ(heard(), "mmap 2+1;");
  EXPECT_EQ(map(at(2), 1, MAP_FIXED_NOREPLACE), MAP_FAILED);
  void* const elsewhere = map(nullptr, 1, 0);
  EXPECT_EQ(heard(), "");
  munmap(elsewhere, page);
  heard();
}

TEST_F(MemoryHooks, TellOfWhatIsMovedOrCutOff) {
  EXPECT_EQ(mremap(at(0), 4 * page, 2 * page + 1, 0), at(0));
  EXPECT_EQ(heard(), "mremap 3+1;");
  EXPECT_EQ(mremap(at(0), 1 * page, 1 * page, MREMAP_MAYMOVE | MREMAP_FIXED, at(3)), at(3));
  EXPECT_EQ(heard(), "mremap 0+1;mremap 3+1;");
  EXPECT_EQ(mremap(at(1), page, page, 0), at(1));
  EXPECT_EQ(mremap(at(1), page, 0, 0), MAP_FAILED);
  EXPECT_EQ(heard(), "");
  // The page behind it is taken, so it has to move.
  void* const moved = mremap(at(1), page, 2 * page, MREMAP_MAYMOVE);
  EXPECT_NE(moved, at(1));
  EXPECT_EQ(heard(), "mremap 1+1;");
  munmap(moved, 2 * page);
  heard();
}

}  // namespace
