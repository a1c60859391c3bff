// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "session/wire_watch.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/instrumented.h"
#include "core/settings.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::session {

static_assert(sizeof uiwarp_fpdu::head >= qp::kMaxUlpduHead);

namespace {

// The agreement is repeated: a trace keeps only the newest records, and FPDUs are useless there
// without their connection's record.
constexpr uint32_t kTellEvery = 256;  // FPDUs
constexpr core::Nanoseconds kTellAfter = 100 * core::kMillisecond;

}  // namespace

void WireWatch::feed(Direction& direction, std::span<const iovec> pieces, size_t octets,
                     core::Nanoseconds time) {
  const uiwarp_verbs* const told = core::instrumented.load(std::memory_order_acquire);
  if (!told) return;
  qp::FpduScan& scan = direction.scan;
  for (const iovec& piece : pieces) {
    if (octets == 0) return;
    const size_t size = std::min(octets, piece.iov_len);
    octets -= size;
    scan.feed({static_cast<const uint8_t*>(piece.iov_base), size}, [&] {
      if (direction.untold++ == kTellEvery || time - direction.told_at > kTellAfter) {
        direction.untold = 1;
        direction.told_at = time;
        told->agreed(qp_num_, &told_);
      }
      uiwarp_fpdu fpdu;
      fpdu.sent = &direction == &sent_;
      fpdu.time = time;
      fpdu.position = scan.position();
      fpdu.size = static_cast<uint16_t>(scan.ulpdu_size());
      fpdu.head_size = static_cast<uint16_t>(scan.head().size());
      std::memcpy(fpdu.head, scan.head().data(), scan.head().size());
      told->fpdu_passed(qp_num_, &fpdu);
    });
  }
}

void WireWatch::sent(std::span<const iovec> pieces, size_t octets, core::Nanoseconds time) {
  feed(sent_, pieces, octets, time);
}

void WireWatch::received(std::span<const iovec> pieces, size_t octets) {
  feed(received_, pieces, octets, core::now());
}

void WireWatch::received(core::Bytes octets) {
  const iovec piece{const_cast<uint8_t*>(octets.data()), octets.size()};
  received({&piece, 1}, octets.size());
}

std::unique_ptr<WireWatch> tell_of_connection(uint32_t qp_num, const transport::TcpStream& stream,
                                              const mpa::Agreement& agreement) {
  const uiwarp_verbs* const told = core::instrumented.load(std::memory_order_acquire);
  if (!told) return nullptr;
  uiwarp_agreement how{};
  how.local = stream.local_address();
  how.peer = stream.peer_address();
  told->connected(qp_num, &how.local, &how.peer);
  how.initiator = agreement.initiator;
  how.agreed = core::now();
  how.began = how.agreed - stream.age();
  std::ranges::copy(agreement.request, how.request);
  std::ranges::copy(agreement.reply, how.reply);
  told->agreed(qp_num, &how);
  if (!core::settings().trace_fpdus) return nullptr;
  return std::unique_ptr<WireWatch>(new (std::nothrow) WireWatch(qp_num, agreement, how));
}

}  // namespace uiw::session
