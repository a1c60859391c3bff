// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Tells instruments about a connection: that it is established and, where a setting asks for it,
// each FPDU when TCP takes or delivers it.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>

#include "core/bytes.h"
#include "core/clock.h"
#include "mpa/negotiator.h"
#include "qp/fpdu_scan.h"
#include "transport/tcp_stream.h"
#include "uiwarp/uiwarp-abi.h"

namespace uiw::session {

class WireWatch {
 public:
  WireWatch(uint32_t qp_num, const mpa::Agreement& agreement, const uiwarp_agreement& told)
      : sent_(agreement.tx_markers), received_(agreement.rx_markers), qp_num_(qp_num), told_(told) {
    told_.again = 1;
    sent_.told_at = received_.told_at = told.agreed;
  }

  // TCP has taken the first `octets` of `pieces`, at `time` or later. Thread: the holder of the
  // sender role.
  void sent(std::span<const iovec> pieces, size_t octets, core::Nanoseconds time);
  // TCP has delivered these octets. Nothing has processed them yet, and the regions that they lie
  // in are still referenced. Thread: the thread that receives.
  void received(core::Bytes octets);
  void received(std::span<const iovec> pieces, size_t octets);

 private:
  // One direction, and when the agreement was last repeated to the instrument.
  struct alignas(64) Direction {
    explicit Direction(bool markers) : scan(markers) {}
    qp::FpduScan scan;
    uint32_t untold = 0;  // FPDUs
    core::Nanoseconds told_at = 0;
  };
  void feed(Direction& direction, std::span<const iovec> pieces, size_t octets,
            core::Nanoseconds time);

  Direction sent_, received_;
  const uint32_t qp_num_;
  uiwarp_agreement told_;
};

// Call it before anything is sent. Null: FPDUs are not traced, or there is no memory. Thread:
// engine.
std::unique_ptr<WireWatch> tell_of_connection(uint32_t qp_num, const transport::TcpStream& stream,
                                              const mpa::Agreement& agreement);

}  // namespace uiw::session
