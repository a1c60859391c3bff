// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "session/stages.h"

#include <cinttypes>

#include "core/cause.h"
#include "core/gid.h"
#include "core/log.h"

namespace uiw::session {

void log_losses(uint32_t qp_num, const qp::Losses& losses) {
  const uint64_t no_receive = losses.of(qp::Loss::kNoReceive),
                 too_long = losses.of(qp::Loss::kTooLong),
                 no_access = losses.of(qp::Loss::kNoAccess);
  if (no_receive + too_long + no_access == 0) return;
  core::log(core::LogLevel::kInfo,
            "queue pair 0x%06x: of what its peer sent %" PRIu64
            " messages found no receive, %" PRIu64 " were longer than theirs, and %" PRIu64
            " Writes had no right to the memory; "
            "they were dropped",
            qp_num, no_receive, too_long, no_access);
}

void log_connected(uint32_t qp_num, const mpa::Agreement& agreement, const sockaddr_storage& local,
                   const sockaddr_storage& peer) {
  if (!core::log_enabled(core::LogLevel::kDebug)) return;
  core::log(core::LogLevel::kDebug,
            "queue pair 0x%06x: connected, %s to %s, MPA revision %u, CRC %s, markers %s, IRD %u, "
            "ORD %u",
            qp_num, core::text_of(local).text, core::text_of(peer).text,
            unsigned{agreement.revision}, agreement.crc ? "on" : "off",
            agreement.tx_markers || agreement.rx_markers ? "on" : "off", unsigned{agreement.ird},
            unsigned{agreement.ord});
}

void log_end(uint32_t qp_num, uint32_t cause) {
  if (!core::log_enabled(core::LogLevel::kDebug)) return;
  const core::CauseInfo* const known = core::find_cause(cause);
  core::log(core::LogLevel::kDebug, "queue pair 0x%06x: goes to ERR (vendor_err 0x%x, %s)", qp_num,
            cause, known ? known->name : "unknown");
}

void log_closed(uint32_t qp_num, const transport::TcpStream& stream) {
  if (core::log_enabled(core::LogLevel::kDebug))
    core::log(core::LogLevel::kDebug, "queue pair 0x%06x: connection to %s closed", qp_num,
              core::text_of(stream.peer_address()).text);
}

}  // namespace uiw::session
