// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/guest.h"

#include <new>
#include <utility>

#include "core/settings.h"
#include "rendezvous/door.h"

namespace uiw::rendezvous {
namespace {

// A tenth of what a Reply may take. A peer comes again a quarter of a second after he was sent off
// (caller.cc), so nothing is lost; a stranger holds his place no longer.
core::Nanoseconds wait_for_queue_pair() {
  return core::settings().reply_timeout_ms * core::kMillisecond / 10;
}

// As long as a Reply may take: a peer who is sent off while he gives it does not come again.
core::Nanoseconds wait_for_proof() {
  return core::settings().reply_timeout_ms * core::kMillisecond;
}

}  // namespace

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
  // Sent off by RST: a connection in TIME_WAIT for each stranger would keep the port from whoever
  // wants to bind it next.
  if (stream_) stream_->set_abortive();
}

transport::StreamPtr Guest::take_stream() {
  stream_->set_handler(nullptr);
  return std::move(stream_);
}

void Guest::challenged(uint64_t proof, const core::SipKey& opening, Stage in) {
  right_proof_ = proof;
  challenged_in_ = in;
  opening_ = opening;
  step_ = Step::kChallenged;
  collector_ = {};
  engine_.arm(*this, wait_for_proof());
}

void Guest::on_octets(core::Bytes octets) {
  // RFC 5044 7.1.2(2): behind a Request he has to wait for the Reply.
  const mpa::ParseStatus status = step_ == Step::kWaiting
                                      ? mpa::ParseStatus::kBadLength
                                      : collector_.feed(octets, mpa::FrameKind::kRequest, request_);
  if (status == mpa::ParseStatus::kNeedMore) return;
  if (status != mpa::ParseStatus::kComplete) {
    door_.send_off(*this, "breaks the rules of MPA");
    return;
  }
  if (const char* wrong = understand(octets)) {
    door_.send_off(*this, wrong);
  } else if (step_ == Step::kUnknown) {
    step_ = Step::kWaiting;
    engine_.arm(*this, wait_for_queue_pair());
    door_.introduce(*this);
  } else {
    step_ = Step::kProven;
    door_.judge(*this);
  }
}

// RFC 5044 7.1.1 and 6581: nothing but what a queue pair of ours would say; null when it is that.
const char* Guest::understand(core::Bytes behind) {
  static constexpr char kStranger[] = "is no queue pair of uiwarp there";
  if (!behind.empty() || !request_.enhanced) return kStranger;
  const core::Bytes octets(request_.private_data, request_.private_size);
  if (is_of_another_version(octets))
    return "is another version of uiwarp: install the same one at both ends";
  const std::optional<HandshakeMessage> said = decode_handshake_message(octets);
  if (!said) return kStranger;
  if (step_ == Step::kChallenged) {
    // The same as before, but for the type and its value.
    given_proof_ = said->value.first;
    HandshakeMessage again = hello_;
    again.type = MessageType::kProof;
    again.value = {given_proof_, 0};
    return *said == again ? nullptr : kStranger;
  }
  if (said->type != MessageType::kHello) return kStranger;
  hello_ = *said;
  // He speaks from the address he claims.
  const in6_addr source = gid_of(stream_->peer_address());
  return std::memcmp(&hello_.from.gid, &source, sizeof source) == 0 ? nullptr : kStranger;
}

void Guest::on_end_of_stream() {
  door_.leave(*this);
}

void Guest::on_error(int) {
  door_.leave(*this);
}

void Guest::expire() {
  door_.send_off(*this, step_ == Step::kUnknown   ? "does not say who it is"
                        : step_ == Step::kWaiting ? "asks for a queue pair that does not expect it"
                                                  : "does not prove that it knows the PSNs");
}

}  // namespace uiw::rendezvous
