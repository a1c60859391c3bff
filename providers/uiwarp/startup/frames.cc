// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "startup/frames.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "core/tuning.h"
#include "device/device.h"
#include "device/face.h"

namespace uiw::startup {

mpa::ParseStatus FrameCollector::feed(core::Bytes& octets, mpa::FrameKind expected,
                                      mpa::StartupFrame& frame) {
  const uint32_t before = size_;
  uint32_t consumed = 0;
  mpa::ParseStatus status = mpa::ParseStatus::kNeedMore;
  if (before == 0) status = mpa::parse(octets, expected, frame, consumed);
  if (status == mpa::ParseStatus::kNeedMore && !octets.empty()) {
    if (!octets_) octets_.reset(new (std::nothrow) uint8_t[mpa::kMaxStartupFrame]);
    // Without its beginning what is still to come is no frame.
    if (!octets_) return mpa::ParseStatus::kBadKey;
    const size_t taken = std::min<size_t>(octets.size(), mpa::kMaxStartupFrame - size_);
    std::memcpy(octets_.get() + size_, octets.data(), taken);
    size_ += static_cast<uint32_t>(taken);
    if (before > 0) status = mpa::parse({octets_.get(), size_}, expected, frame, consumed);
  }
  if (status == mpa::ParseStatus::kComplete) {
    // What came before was not a whole frame, so it ends within these octets.
    octets = octets.subspan(consumed - before);
  }
  return status;
}

void Outbox::set(const mpa::StartupFrame& frame) {
  uint8_t octets[mpa::kMaxStartupFrame];
  set({octets, mpa::encode(octets, frame)});
}

void Outbox::set(core::Bytes octets) {
  octets_.reset(new (std::nothrow) uint8_t[octets.size()]);
  if (octets_) std::memcpy(octets_.get(), octets.data(), octets.size());
  size_ = static_cast<uint32_t>(octets.size());
  sent_ = 0;
}

template <class Send>
int Outbox::flush_by(Send send) {
  if (!octets_) return ENOMEM;
  while (sent_ < size_) {
    const iovec piece{octets_.get() + sent_, size_ - sent_};
    const long taken = send(piece);
    if (taken < 0) return static_cast<int>(-taken);
    sent_ += static_cast<uint32_t>(taken);
  }
  return 0;
}

int Outbox::flush(transport::TcpStream& stream) {
  return flush_by([&](const iovec& piece) { return stream.send(&piece, 1); });
}

int Outbox::flush(int fd) {
  return flush_by([&](const iovec& piece) { return transport::send_now(fd, &piece, 1); });
}

void set_private_data(mpa::StartupFrame& frame, core::Bytes data) {
  frame.private_size = static_cast<uint16_t>(data.size());
  std::copy(data.begin(), data.end(), frame.private_data);
}

mpa::Wishes wishes_for(const core::Settings& settings, bool peer_is_local, uint16_t ird,
                       uint16_t ord) {
  mpa::Wishes wishes;
  wishes.revision = static_cast<uint8_t>(settings.mpa_revision);
  switch (settings.crc) {
    case core::CrcPolicy::kAuto:
      wishes.crc = !peer_is_local;
      break;
    case core::CrcPolicy::kOn:
      wishes.crc = true;
      break;
    case core::CrcPolicy::kOff:
      wishes.crc = false;
      break;
  }
  wishes.markers = settings.mpa_markers;
  wishes.peer_to_peer = settings.peer_to_peer;
  switch (settings.mpa_rtr) {
    case core::RtrKind::kAny:
      wishes.rtr = mpa::Rtr::kNone;
      break;
    case core::RtrKind::kRead:
      wishes.rtr = mpa::Rtr::kRead;
      break;
    case core::RtrKind::kWrite:
      wishes.rtr = mpa::Rtr::kWrite;
      break;
  }
  wishes.ird = ird;
  wishes.ord = ord;
  // What an end asks the other by is an empty Read: for an acknowledgement, and whether it takes
  // Sends with immediate.
  const bool asks = device::face(settings.face).send_with_immediate;
  wishes.least = settings.acknowledged() ? core::tuning::kMostAcknowledgements : asks ? 1 : 0;
  wishes.max_ird = device::Limits::kMaxReads;
  wishes.max_ord = device::Limits::kMaxReads;
  return wishes;
}

}  // namespace uiw::startup
