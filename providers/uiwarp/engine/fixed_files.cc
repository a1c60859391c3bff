// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/fixed_files.h"

namespace uiw::engine {
namespace {

// IORING_FEAT_RW_ATTR, which Linux 6.14 has. Until 6.12 a socket that was removed stayed with the
// ring until all operations begun before had ended, those that wait for an idle peer among them.
constexpr unsigned kNewEnough = 1u << 16;

}  // namespace

void FixedFiles::open(io_uring& ring) {
  if (!(ring.features & kNewEnough)) return;
  if (io_uring_register_files_sparse(&ring, kCount) == 0) ring_ = &ring;
}

int FixedFiles::add(int fd) {
  if (!ring_ || (free_count_ == 0 && used_ == kCount)) return -1;
  const int number = free_count_ > 0 ? free_[--free_count_] : static_cast<int>(used_++);
  if (io_uring_register_files_update(ring_, static_cast<unsigned>(number), &fd, 1) == 1)
    return number;
  free_[free_count_++] = static_cast<int16_t>(number);
  return -1;
}

void FixedFiles::remove(int number) {
  const int nobody = -1;
  io_uring_register_files_update(ring_, static_cast<unsigned>(number), &nobody, 1);
  free_[free_count_++] = static_cast<int16_t>(number);
}

}  // namespace uiw::engine
