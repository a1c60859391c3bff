// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Service id resolution: how a program learns the queue pair number and Q_Key of a program that
// receives datagrams at a port. InfiniBand uses the messages SIDR_REQ and SIDR_REP for that; here
// they are two MPA start-up frames. Their private data begins with: "UIWS", version 1, type, status
// and a zero octet; in the answer there follow queue pair number and Q_Key, 4 octets each,
// big-endian. Then comes the program's private data. The answer is a Reply that rejects, as no
// connection follows (RFC 5044 7.1.2(3)). Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "core/bytes.h"
#include "mpa/startup_frame.h"

namespace uiw::cm {

enum class ResolutionStatus : uint8_t {  // InfiniBand's values, which programs see
  kSuccess = 0,
  kNotSupported = 1,  // no program receives datagrams at that port
  kRejected = 2,      // the program has rejected the request
};

struct ResolutionAnswer {
  ResolutionStatus status = ResolutionStatus::kSuccess;
  uint32_t qp_num = 0, qkey = 0;
};

// Room for the program's private data in a request and an answer: what rdma_cm leaves of a
// SIDR_REQ's 216 bytes, and a SIDR_REP's 136 bytes.
inline constexpr uint32_t kRequestRoom = 180, kAnswerRoom = 136;

mpa::StartupFrame make_resolution_request(core::Bytes private_data);
mpa::StartupFrame make_resolution_answer(const ResolutionAnswer& answer, core::Bytes private_data);

// The program's private data, in `frame`. Nothing when the frame is no such request: an ordinary
// Request, one of another version, or one with more private data than there is room for.
std::optional<core::Bytes> parse_resolution_request(const mpa::StartupFrame& frame);
// The same for a Reply. Nothing also when the status is unknown or the Reply accepts a connection.
std::optional<core::Bytes> parse_resolution_answer(const mpa::StartupFrame& frame,
                                                   ResolutionAnswer& answer);

}  // namespace uiw::cm
