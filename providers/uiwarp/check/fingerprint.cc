// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/fingerprint.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/crc32c.h"

namespace uiw::check {
namespace {

constexpr size_t kPiece = 256, kPieces = 16;

}  // namespace

Look fingerprint(const void* memory, size_t size, uint32_t& value) {
  if (size == 0) return Look::kSeen;
  auto* const bytes = static_cast<uint8_t*>(const_cast<void*>(memory));
  const bool whole = size <= kPiece * kPieces;
  iovec pieces[kPieces];
  // The last one ends where the memory does.
  for (size_t i = 0; i < kPieces; ++i)
    pieces[i] = {bytes + (size - std::min(size, kPiece)) / (kPieces - 1) * i, kPiece};
  if (whole) pieces[0] = {bytes, size};
  if (!whole) pieces[kPieces - 1].iov_base = bytes + size - kPiece;
  uint8_t copy[kPiece * kPieces];
  const iovec here{copy, sizeof copy};
  const long wanted = static_cast<long>(std::min(size, sizeof copy));
  const long seen =
      syscall(SYS_process_vm_readv, getpid(), &here, 1, pieces, whole ? 1 : kPieces, 0);
  if (seen < 0 && errno != EFAULT) return Look::kForbidden;
  if (seen != wanted) return Look::kUnreadable;
  value = core::crc32c_update(value, copy, static_cast<size_t>(wanted));
  return Look::kSeen;
}

}  // namespace uiw::check
