// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/first_fpdu.h"

#include "core/be.h"
#include "core/crc32c.h"
#include "ddp/header.h"
#include "mpa/framing.h"
#include "mpa/markers.h"
#include "rdmap/header.h"
#include "rdmap/terminate.h"

namespace uiw::cm {
namespace {

constexpr uint32_t kMaxUlpdu =
    ddp::kUntaggedHeaderSize + (rdmap::kMaxTerminateBody > rdmap::kReadRequestSize
                                    ? rdmap::kMaxTerminateBody
                                    : rdmap::kReadRequestSize);

// `begin` points to room for the length field, followed by the ULPDU, which ends at `end`.
void set_fpdu(startup::Outbox& outbox, uint8_t* begin, const uint8_t* end, bool crc, bool markers) {
  const auto ulpdu_length = static_cast<uint32_t>(end - begin) - mpa::kLengthSize;
  core::store_be16(begin, static_cast<uint16_t>(ulpdu_length));

  // Without markers: an FPDU that starts right after a marker position ends before the next one.
  uint8_t fpdu[mpa::marked_size(0, mpa::fpdu_size(kMaxUlpdu))];
  mpa::MarkerWriter writer(fpdu, markers ? 0 : mpa::kMarkerSize);
  writer.put(begin, static_cast<uint32_t>(end - begin));
  constexpr uint8_t kZeros[4] = {};
  writer.put(kZeros, mpa::pad_size(ulpdu_length));
  // RFC 5044 4.4: the field exists with CRC off, too. Least significant octet first.
  const core::Bytes covered = writer.written();
  const uint32_t sum = crc ? core::crc32c(covered.data(), covered.size()) : 0;
  writer.put(&sum, sizeof sum);
  outbox.set(writer.written());
}

ddp::UntaggedHeader alone_on(uint32_t qn, rdmap::Opcode opcode) {
  return {.last = true,
          .ulp_control = rdmap::control(opcode),
          .invalidate_stag = 0,
          .qn = qn,
          .msn = 1,
          .mo = 0};
}

}  // namespace

void set_terminate(startup::Outbox& outbox, core::TermCode code, bool crc, bool markers) {
  uint8_t ulpdu[mpa::kLengthSize + kMaxUlpdu];
  uint8_t* end =
      ddp::encode(ulpdu + mpa::kLengthSize, alone_on(ddp::kQnTerminate, rdmap::Opcode::kTerminate));
  rdmap::Terminate terminate;
  terminate.code = code;
  end += rdmap::encode(end, terminate);
  set_fpdu(outbox, ulpdu, end, crc, markers);
}

void set_rtr(startup::Outbox& outbox, const mpa::Agreement& agreement) {
  uint8_t ulpdu[mpa::kLengthSize + kMaxUlpdu];
  uint8_t* end = ulpdu + mpa::kLengthSize;
  if (agreement.rtr == mpa::Rtr::kRead) {
    end = ddp::encode(end, alone_on(ddp::kQnRequest, rdmap::Opcode::kReadRequest));
    end = rdmap::encode(end, rdmap::ReadRequest{});
  } else {
    end = ddp::encode(end, ddp::TaggedHeader{.last = true,
                                             .ulp_control = rdmap::control(rdmap::Opcode::kWrite),
                                             .stag = 0,
                                             .to = 0});
  }
  set_fpdu(outbox, ulpdu, end, agreement.crc, agreement.tx_markers);
}

}  // namespace uiw::cm
