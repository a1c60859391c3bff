// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/startup_closer.h"

#include <cerrno>
#include <utility>

#include "cm/first_fpdu.h"
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
  Outbox outbox;
  set_terminate(outbox, code, crc, markers);
  send_and_close(engine, std::move(stream), std::move(outbox), at_most);
}

}  // namespace uiw::cm
