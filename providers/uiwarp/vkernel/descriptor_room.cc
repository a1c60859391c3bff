// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/descriptor_room.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>

#include "core/generation.h"
#include "core/raw_sys.h"

namespace uiw::vkernel {

void make_descriptor_room(int fd) {
  static std::atomic<unsigned> made_in{0};  // which process
  if (made_in.exchange(core::generation(), std::memory_order_relaxed) == core::generation()) return;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t room = std::min<rlim_t>(limit.rlim_cur, kDescriptorRoom);
  // A descriptor of that number for a moment: the table never shrinks.
  const int last = core::sys::fcntl(fd, F_DUPFD_CLOEXEC, static_cast<long>(room) - 1);
  if (last >= 0) core::sys::close(last);
}

}  // namespace uiw::vkernel
