// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/rules.h"

#include <cerrno>

#include "cm/resolution.h"
#include "core/qp_number.h"
#include "core/retry_count.h"

namespace uiw::cm {
namespace {

constexpr Rules kIwarp{
    .mover = Mover::kConnection,
    .connection =
        {
            .connect_room = 255,
            .accept_room = 255,
            .reject_room = 255,
            .refused = EventType::kRejected,
            .no_way = EventType::kConnectError,
            .failed = EventType::kConnectError,
            .rejected = -ECONNREFUSED,
            .nobody_listens = -ECONNREFUSED,
            .closed = -ECONNRESET,
        },
    .datagrams = nullptr,
};

// Statuses: those of a SIDR_REP (InfiniBand specification 12.11.2). `closed`: an adapter answers
// even for a program that died.
constexpr ServiceRules kResolution{
    .connect_room = kRequestRoom,
    .accept_room = kAnswerRoom,
    .reject_room = kAnswerRoom,
    .refused = EventType::kUnreachable,
    .no_way = EventType::kUnreachable,
    .failed = EventType::kUnreachable,
    .rejected = static_cast<int>(ResolutionStatus::kRejected),
    .nobody_listens = static_cast<int>(ResolutionStatus::kNotSupported),
    .closed = static_cast<int>(ResolutionStatus::kRejected),
};

// Rooms: rdma_cm uses 36 of the REQ's 92 bytes itself. Statuses: reasons of a REJ message
// (InfiniBand specification 12.6.7.2), consumer reject and invalid service ID.
constexpr Rules kInfiniband{
    .mover = Mover::kProgram,
    .connection =
        {
            .connect_room = 56,
            .accept_room = 196,
            .reject_room = 148,
            .refused = EventType::kRejected,
            .no_way = EventType::kUnreachable,
            .failed = EventType::kConnectError,
            .rejected = 28,
            .nobody_listens = 8,
            .closed = 28,
        },
    .datagrams = &kResolution,
};

}  // namespace

const Rules& rules_of(device::CmRules which) {
  return which == device::CmRules::kInfiniband ? kInfiniband : kIwarp;
}

void complete_offer(const Rules& rules, ConnParam& offer) {
  if (rules.mover != Mover::kProgram) return;
  offer.qp_num = core::kCmQpNumber;
  offer.flow_control = 1;
  // TCP retransmits by itself, and the peer decides how long it waits for a receive.
  offer.retry_count = offer.rnr_retry_count = core::kMostRetries;
}

}  // namespace uiw::cm
