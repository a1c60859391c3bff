// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Notices that the peer's host, or the network path to it, has gone without a FIN or RST. There are
// two parts, since the kernel probes a peer only while there is nothing to send to it:
// transport::Silence looks while there is something, else the kernel's keepalive probes do. Either
// way TCP has failed with ETIMEDOUT, and the oldest posted request completes with
// IBV_WC_RETRY_EXC_ERR. Octets that were never acknowledged may belong only to requests that have
// completed already. A queue pair connected by number goes to ERR then as well, as it would if
// requests completed by acknowledgement; flushed requests tell the program. Thread: engine.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/assert.h"
#include "core/log.h"
#include "core/settings.h"
#include "session/state.h"

namespace uiw::session {

void State::watch_peer() {
  UIW_ASSERT(engine.on_engine_thread());
  const core::Nanoseconds limit = patience_with_peer.load(std::memory_order_relaxed);
  if (life.connected() && limit > 0)
    engine.arm(silence_timer, limit / transport::Silence::kLooks);
  else
    engine.disarm(silence_timer);
}

void State::look_after_peer() {
  if (!life.stands()) return;
  const uint64_t sent = sender.bytes_sent();
  const bool any = std::exchange(octets_at_silence, sent) != sent;
  const bool owes = send_queue->posted() != send_queue->retired();
  // The cable of this end is pulled (--faults): then only requests of this end fail, not its
  // answers.
  const bool is_excused = deaf.load(std::memory_order_relaxed) && !owes;
  if (!is_excused && (any || !silence.idle()) && silence.look(stream->pulse(), engine.now())) {
    ring(kPeerSilent);  // a poller may be receiving: the task has the lease revoked first
    return;
  }
  // As in InfiniBand, a peer that owes an answer is waited for no longer than the queue pair's
  // timeout. A peer that owes none is probed less often.
  const core::Nanoseconds limit = patience_with_peer.load(std::memory_order_relaxed);
  const core::Nanoseconds otherwise = core::settings().peer_timeout_ms * core::kMillisecond;
  const core::Nanoseconds wanted = is_excused       ? 0
                                   : owes           ? limit
                                   : otherwise == 0 ? 0
                                                    : std::max(limit, otherwise);
  if (std::exchange(probed_within, wanted) != wanted) stream->probe_idle(wanted);
  watch_peer();
}

void State::on_peer_silent() {
  if (!life.stands()) return;
  core::log(core::LogLevel::kInfo, "queue pair 0x%06x: the peer's host does not answer any more",
            options.qp_num);
  stream->set_abortive();  // TCP would retry for minutes
  break_off(ETIMEDOUT);
}

}  // namespace uiw::session
