// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "transport/silence.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "core/raw_sys.h"

namespace uiw::transport {

namespace sys = core::sys;

namespace {

// A peer answers at most one window probe per half second (the kernel's tcp_invalid_ratelimit), so
// one unanswered probe proves nothing. The pauses between probes double.
constexpr unsigned kProbes = 2;
// The largest value of TCP_KEEPIDLE, in seconds.
constexpr core::Nanoseconds kLongestIdle = 32767;
// Values of tcpi_state from <netinet/tcp.h>, which cannot be included together with <linux/tcp.h>.
enum TcpState : uint8_t { kTimeWait = 6, kClose = 7, kCloseWait = 8, kLastAck = 9, kClosing = 11 };

void set(int fd, int level, int option, core::Nanoseconds value) {
  const int number = static_cast<int>(value);
  sys::setsockopt(fd, level, option, &number, sizeof number);
}

}  // namespace

Pulse pulse_of(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  Pulse pulse;
  if (sys::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return pulse;
  pulse.unsent = info.tcpi_notsent_bytes > 0;
  pulse.unacknowledged = info.tcpi_unacked > 0;
  pulse.probes = info.tcpi_probes;
  pulse.heard_ago =
      std::min(info.tcpi_last_ack_recv, info.tcpi_last_data_recv) * core::kMillisecond;
  const uint8_t state = info.tcpi_state;
  pulse.over = state == kClose;
  pulse.closed = pulse.over || state == kCloseWait || state == kLastAck || state == kClosing ||
                 state == kTimeWait;
  return pulse;
}

void probe_idle(int fd, core::Nanoseconds within) {
  set(fd, SOL_SOCKET, SO_KEEPALIVE, within > 0);
  if (within <= 0) return;
  constexpr core::Nanoseconds kCount = 3;
  const core::Nanoseconds seconds = within / core::kSecond;
  const core::Nanoseconds idle = std::clamp<core::Nanoseconds>(seconds / 2, 1, kLongestIdle);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, kCount);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL,
      std::clamp<core::Nanoseconds>((seconds - idle) / kCount, 1, kLongestIdle));
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle);
}

bool Silence::look(const Pulse& pulse, core::Nanoseconds now) {
  const bool asked = pulse.unacknowledged || pulse.probes > 0;
  const bool heard = pulse.heard_ago < now - looked_at_;
  in_vain_ = asked && asked_ && !heard ? in_vain_ + 1 : 0;
  asked_ = asked;
  idle_ = !asked && !pulse.unsent;
  looked_at_ = now;
  return in_vain_ >= kLooks && (pulse.unacknowledged || pulse.probes >= kProbes);
}

}  // namespace uiw::transport
