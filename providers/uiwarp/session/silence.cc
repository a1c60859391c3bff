// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How a queue pair notices that the host of its peer, or the way there, has gone without a word.
// Two parts, since the kernel probes only a peer to whom nothing is to be sent: while something is,
// transport::Silence looks; else the kernel's keepalive probes do. Either way TCP has failed with
// ETIMEDOUT, and what was posted first completes with IBV_WC_RETRY_EXC_ERR. Octets that were never
// acknowledged may be all of requests that have completed: a queue pair connected by number goes to
// ERR then, too, as it would where requests complete by acknowledgement, and what is flushed tells.
// Thread: engine.
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
  // The cable of this end is pulled (--faults): what fails are requests, and not answers.
  const bool is_excused = deaf.load(std::memory_order_relaxed) && !owes;
  if (!is_excused && (any || !silence.idle()) && silence.look(stream->pulse(), engine.now())) {
    ring(kPeerSilent);  // somebody else may be receiving
    return;
  }
  // Like InfiniBand's, a peer that owes an answer is waited for no longer than its queue pair
  // wants; one that owes none is asked less often.
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
  stream->set_abortive();  // TCP would go on trying for minutes
  break_off(ETIMEDOUT);
}

}  // namespace uiw::session
