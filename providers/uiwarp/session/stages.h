// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The log messages of UIWARP_LOG=info and debug about a connection's life. At other levels each
// call only tests the level. Thread: engine.
#pragma once

#include <sys/socket.h>

#include <cstdint>

#include "mpa/negotiator.h"
#include "qp/losses.h"
#include "transport/tcp_stream.h"

namespace uiw::session {

void log_connected(uint32_t qp_num, const mpa::Agreement& agreement, const sockaddr_storage& local,
                   const sockaddr_storage& peer);
// `cause`: as in vendor_err.
void log_end(uint32_t qp_num, uint32_t cause);
void log_closed(uint32_t qp_num, const transport::TcpStream& stream);
// What a connection with unreliable service has dropped.
void log_losses(uint32_t qp_num, const qp::Losses& losses);

}  // namespace uiw::session
