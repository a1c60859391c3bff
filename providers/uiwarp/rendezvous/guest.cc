// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/guest.h"

#include <new>
#include <utility>

#include "core/settings.h"
#include "rendezvous/door.h"

namespace uiw::rendezvous {

void Guest::receive(Door& door, engine::Engine& engine, transport::StreamPtr stream) {
  auto* guest = new (std::nothrow) Guest(door, engine, std::move(stream));
  if (!guest) return;
  door.enter(*guest);
  // RFC 5044 7.1.2(10): one time limit for the whole Request.
  engine.arm(*guest, core::settings().request_timeout_ms * core::kMillisecond);
  guest->stream_->set_handler(guest);
}

Guest::~Guest() {
  engine_.disarm(*this);
}

transport::StreamPtr Guest::take_stream() {
  stream_->set_handler(nullptr);
  return std::move(stream_);
}

void Guest::on_octets(core::Bytes octets) {
  // RFC 5044 7.1.2(2): behind his Request he has to wait for the Reply.
  const mpa::ParseStatus status = introduced_
                                      ? mpa::ParseStatus::kBadLength
                                      : collector_.feed(octets, mpa::FrameKind::kRequest, request_);
  if (status == mpa::ParseStatus::kNeedMore) return;
  if (status != mpa::ParseStatus::kComplete) {
    door_.send_off(*this, "breaks the rules of MPA");
    return;
  }
  if (!understand(octets)) {
    door_.send_off(*this, "is no queue pair of uiwarp there");
    return;
  }
  introduced_ = true;
  engine_.arm(*this, core::settings().reply_timeout_ms * core::kMillisecond);
  door_.introduce(*this);
}

// RFC 5044 7.1.1 and 6581: nothing but what a queue pair of ours would say.
bool Guest::understand(core::Bytes behind) {
  if (!behind.empty() || !request_.enhanced || request_.markers) return false;
  const std::optional<Greeting> said =
      decode_greeting({request_.private_data, request_.private_size});
  if (!said) return false;
  greeting_ = *said;
  // He speaks from the address he claims.
  const in6_addr source = gid_of(stream_->peer_address());
  return std::memcmp(&greeting_.from.gid, &source, sizeof source) == 0;
}

void Guest::on_end_of_stream() {
  door_.leave(*this);
}

void Guest::on_error(int) {
  door_.leave(*this);
}

void Guest::expire() {
  door_.send_off(*this, introduced_ ? "asks for a queue pair that does not expect it"
                                    : "does not say who it is");
}

}  // namespace uiw::rendezvous
