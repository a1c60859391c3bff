// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What instruments are told of a connection: that it stands, and, where a setting asks for it, of
// each FPDU as TCP takes and brings it.
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

  // TCP has taken the first `octets` of `pieces`, not before `time`. Thread: the holder of the
  // sender role.
  void sent(std::span<const iovec> pieces, size_t octets, core::Nanoseconds time);
  // TCP has brought them. Nothing of them was looked at yet, and regions that they lie in are still
  // referenced. Thread: whoever receives.
  void received(core::Bytes octets);
  void received(std::span<const iovec> pieces, size_t octets);

 private:
  // One direction, and since when it was not told whose FPDUs these are.
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

// Before anything is sent. Null: nobody wants to know of FPDUs, or there is no memory. Thread:
// engine.
std::unique_ptr<WireWatch> tell_of_connection(uint32_t qp_num, const transport::TcpStream& stream,
                                              const mpa::Agreement& agreement);

}  // namespace uiw::session
