// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/fixed_files.h"

#include <sys/resource.h>

namespace uiw::engine {
namespace {

// IORING_FEAT_RW_ATTR, which Linux 6.14 has. Until 6.12 the ring kept a socket that was removed
// until all operations begun before had ended, including those that wait for an idle peer.
constexpr unsigned kNewEnough = 1u << 16;

// The kernel accepts no table larger than RLIMIT_NOFILE. liburing would then raise the limit, which
// is the program's business.
bool is_allowed(unsigned count) {
  rlimit limit;
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && count <= limit.rlim_cur;
}

}  // namespace

void FixedFiles::open(io_uring& ring) {
  if (!(ring.features & kNewEnough) || !is_allowed(kCount) ||
      io_uring_register_files_sparse(&ring, kCount) != 0)
    return;
  ring_ = &ring;
  while (free_count_ < kCount) {
    free_[free_count_] = static_cast<int16_t>(free_count_);
    ++free_count_;
  }
}

int16_t FixedFiles::add(int fd) {
  if (free_count_ == 0) return -1;
  const int16_t number = free_[free_count_ - 1];
  if (io_uring_register_files_update(ring_, static_cast<unsigned>(number), &fd, 1) != 1) return -1;
  --free_count_;
  return number;
}

void FixedFiles::remove(int16_t number) {
  const int nobody = -1;
  io_uring_register_files_update(ring_, static_cast<unsigned>(number), &nobody, 1);
  free_[free_count_++] = number;
}

}  // namespace uiw::engine
