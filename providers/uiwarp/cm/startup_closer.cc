// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/startup_closer.h"

#include <cerrno>
#include <utility>

#include "core/crc32c.h"
#include "ddp/header.h"
#include "mpa/markers.h"
#include "rdmap/header.h"
#include "rdmap/terminate.h"
#include "transport/lingering_close.h"

namespace uiw::cm {
namespace {

void send_and_close(engine::Engine& engine, StreamPtr stream, Outbox outbox,
                    core::Nanoseconds at_most) {
  const int error = outbox.flush(*stream);
  if (error == 0 || error == EAGAIN)
    transport::lingering_close(engine, std::move(stream), at_most,
                               engine::Standing::kUnauthenticated, outbox.take_rest());
}

}  // namespace

void send_reject(engine::Engine& engine, StreamPtr stream, const mpa::StartupFrame& reply,
                 core::Nanoseconds at_most) {
  Outbox outbox;
  outbox.set(reply);
  send_and_close(engine, std::move(stream), std::move(outbox), at_most);
}

void send_terminate(engine::Engine& engine, StreamPtr stream, core::TermCode code, bool crc,
                    bool markers, core::Nanoseconds at_most) {
  uint8_t ulpdu[mpa::kLengthSize + ddp::kUntaggedHeaderSize + rdmap::kMaxTerminateBody];
  // RFC 5040 4.8: alone on queue 2.
  uint8_t* end =
      ddp::encode(ulpdu + mpa::kLengthSize,
                  ddp::UntaggedHeader{.last = true,
                                      .ulp_control = rdmap::control(rdmap::Opcode::kTerminate),
                                      .invalidate_stag = 0,
                                      .qn = ddp::kQnTerminate,
                                      .msn = 1,
                                      .mo = 0});
  rdmap::Terminate terminate;
  terminate.code = code;
  end += rdmap::encode(end, terminate);
  const auto ulpdu_length = static_cast<uint32_t>(end - ulpdu) - mpa::kLengthSize;
  core::store_be16(ulpdu, static_cast<uint16_t>(ulpdu_length));

  // Without markers: laid down right behind a marker's position it ends before the next one.
  uint8_t fpdu[mpa::marked_size(0, mpa::fpdu_size(sizeof ulpdu))];
  mpa::MarkerWriter writer(fpdu, markers ? 0 : mpa::kMarkerSize);
  writer.put(ulpdu, static_cast<uint32_t>(end - ulpdu));
  constexpr uint8_t kZeros[4] = {};
  writer.put(kZeros, mpa::pad_size(ulpdu_length));
  // RFC 5044 4.4: the field is there with CRC off, too. Least significant octet first.
  const core::Bytes covered = writer.written();
  const uint32_t sum = crc ? core::crc32c(covered.data(), covered.size()) : 0;
  writer.put(&sum, sizeof sum);
  Outbox outbox;
  outbox.set(writer.written());
  send_and_close(engine, std::move(stream), std::move(outbox), at_most);
}

}  // namespace uiw::cm
