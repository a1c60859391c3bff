// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// When a peer that says nothing is taken for gone.
//
// TCP_USER_TIMEOUT would be the kernel's way, but it also ends a connection whose peer closed its
// window and answers every probe of it (measured with Linux 6.18): a program that is stopped, or
// has posted no receive yet, is slow and not gone. So TCP_INFO is looked at a few times in each
// limit, and only times count in which TCP waited for an answer and nothing at all came. They are
// counted in looks, not by the clock: a machine that stood still for an hour has missed one look.
#pragma once

#include "core/clock.h"

namespace uiw::transport {

// What TCP knows of the other end.
struct Pulse {
  bool unsent = false;              // bytes wait for the peer's window, or for ours
  bool unacknowledged = false;      // bytes are on their way
  unsigned probes = 0;              // of a closed window, since the peer last acknowledged anything
  core::Nanoseconds heard_ago = 0;  // since it last acknowledged or sent anything
  bool closed =
      false;          // its FIN or RST has come, or TCP has given it up; bytes may still be unread
  bool over = false;  // it has, and takes nothing any more either
};

// Of a connected socket; one system call. Where the kernel cannot say, nothing is asked. Thread:
// any.
Pulse pulse_of(int fd);

// Has the kernel probe a peer from whom nothing was heard for half of `within` while nothing is to
// be sent to it, and end the connection (ETIMEDOUT) when three probes in the other half got no
// answer. The kernel counts in seconds: at least 1 and 3. 0: no probes. Thread: any.
void probe_idle(int fd, core::Nanoseconds within);

// Pure. Thread: one at a time.
class Silence {
 public:
  static constexpr int kLooks = 4;  // in one limit

  // Every quarter of the limit. True when the peer has gone: TCP waited for an answer at each of
  // the last looks, and none came in between. That takes one limit, and up to half as long again.
  bool look(const Pulse& pulse, core::Nanoseconds now);
  // Nothing was on its way or waiting when it was looked at last: until something is sent it need
  // not be looked at again.
  bool idle() const { return idle_; }

 private:
  bool idle_ = true;
  bool asked_ = false;
  int in_vain_ = 0;
  core::Nanoseconds looked_at_ = 0;
};

}  // namespace uiw::transport
