// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/fork_mark.h"

#include <sys/mman.h>

#include <cerrno>
#include <new>

namespace uiw::engine {

ForkMark::~ForkMark() {
  if (page_) munmap(page_, sizeof(*page_));
}

int ForkMark::set() {
  if (!page_) {
    void* page =
        mmap(nullptr, sizeof(*page_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return ENOMEM;
    if (madvise(page, sizeof(*page_), MADV_WIPEONFORK) != 0) {
      munmap(page, sizeof(*page_));
      return ENOSYS;
    }
    page_ = new (page) std::atomic<int>(0);
  }
  page_->store(1, std::memory_order_relaxed);
  return 0;
}

}  // namespace uiw::engine
