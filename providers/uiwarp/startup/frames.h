// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What everybody who starts a connection shares: MPA start-up frames taken from and given to a
// stream, and what the settings wish for. Thread: engine.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "core/bytes.h"
#include "core/settings.h"
#include "mpa/negotiator.h"
#include "mpa/startup_frame.h"
#include "transport/lingering_close.h"
#include "transport/tcp_stream.h"

namespace uiw::startup {

// Gathers the octets of one start-up frame, however TCP cut them. Mostly it did not: only then is
// there memory for them.
class FrameCollector {
 public:
  // Takes what belongs to the frame; `octets` becomes what lies behind it. Not to be called again
  // after another status than kNeedMore.
  mpa::ParseStatus feed(core::Bytes& octets, mpa::FrameKind expected, mpa::StartupFrame& frame);
  bool empty() const { return size_ == 0; }

 private:
  uint32_t size_ = 0;
  std::unique_ptr<uint8_t[]> octets_;  // kMaxStartupFrame
};

// Octets on their way out.
class Outbox {
 public:
  void set(const mpa::StartupFrame& frame);
  void set(core::Bytes octets);
  // 0: all handed to TCP. EAGAIN: the socket is full, ask for want_writable(). Else an errno;
  // ENOMEM when set() found no memory.
  int flush(transport::TcpStream& stream);
  // The same by a socket that is no stream yet, nor connected, perhaps: EAGAIN then. Thread: any.
  int flush(int fd);
  bool begun() const { return sent_ > 0; }
  // What is still to be sent is the caller's.
  transport::Unsent take_rest() { return {std::move(octets_), sent_, size_}; }

 private:
  template <class Send>
  int flush_by(Send send);

  uint32_t size_ = 0;
  uint32_t sent_ = 0;
  std::unique_ptr<uint8_t[]> octets_;
};

// Appends private data to a frame that has none.
void set_private_data(mpa::StartupFrame& frame, core::Bytes data);

// What we want of a connection with these depths. `peer_is_local`: on this host, where nothing can
// damage the octets on the way.
mpa::Wishes wishes_for(const core::Settings& settings, bool peer_is_local, uint16_t ird,
                       uint16_t ord);

}  // namespace uiw::startup
