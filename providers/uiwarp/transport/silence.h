// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Decides when a silent peer counts as gone.
//
// The kernel has TCP_USER_TIMEOUT, but that also ends a connection whose peer has closed its window
// and answers every probe (measured with Linux 6.18): a program that is stopped, or has posted no
// receive yet, is slow but not gone. So TCP_INFO is read a few times per limit. Only intervals
// count in which TCP waited for an answer and got nothing at all. They are counted in looks, not by
// the clock: a machine that stood still for an hour has missed one look.
#pragma once

#include "core/clock.h"

namespace uiw::transport {

// TCP's view of the other end.
struct Pulse {
  bool unsent = false;              // bytes wait for the peer's window, or for ours
  bool unacknowledged = false;      // bytes are in flight
  unsigned probes = 0;              // window probes since the peer last acknowledged anything
  core::Nanoseconds heard_ago = 0;  // since it last acknowledged or sent anything
  bool closed = false;              // FIN or RST has come, or TCP has given up; bytes may be unread
  bool over = false;                // the same, and nothing can be sent either
};

// The pulse of a connected socket; one system call. All members are as initialised if the kernel
// does not say. Thread: any.
Pulse pulse_of(int fd);

// Has the kernel probe an idle peer: one that was silent for half of `within` while there was
// nothing to send to it. The connection ends (ETIMEDOUT) when three probes in the other half get no
// answer. The kernel counts in seconds: at least 1 and 3. 0: no probes. Thread: any.
void probe_idle(int fd, core::Nanoseconds within);

// Pure. Thread: one at a time.
class Silence {
 public:
  static constexpr int kLooks = 4;  // in one limit

  // Call it every quarter of the limit. True when the peer has gone: TCP waited for an answer at
  // each of the last looks, and none came in between. That takes one limit, and up to half as long
  // again.
  bool look(const Pulse& pulse, core::Nanoseconds now);
  // At the last look nothing was in flight or waiting: no look is needed until something is sent.
  bool idle() const { return idle_; }

 private:
  bool idle_ = true;
  bool asked_ = false;
  int in_vain_ = 0;
  core::Nanoseconds looked_at_ = 0;
};

}  // namespace uiw::transport
