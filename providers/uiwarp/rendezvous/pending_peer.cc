// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/pending_peer.h"

#include <new>
#include <utility>

#include "core/gid.h"
#include "core/settings.h"
#include "device/gid_table.h"
#include "rendezvous/qpn_listener.h"

namespace uiw::rendezvous {
namespace {

// A tenth of the time limit of a Reply. A legitimate peer connects again a quarter of a second
// after it was closed (peer_connector.cc), so nothing is lost, and an unknown one does not occupy
// its place for longer.
core::Nanoseconds wait_for_queue_pair() {
  return core::settings().reply_timeout_ms * core::kMillisecond / 10;
}

// The time limit of a Reply: a peer that is closed while it sends its proof does not connect again.
core::Nanoseconds wait_for_proof() {
  return core::settings().reply_timeout_ms * core::kMillisecond;
}

}  // namespace

void PendingPeer::receive(QpnListener& listener, engine::Engine& engine,
                          transport::StreamPtr stream) {
  auto* peer = new (std::nothrow) PendingPeer(listener, engine, std::move(stream));
  if (!peer) return;
  listener.add(*peer);
  // RFC 5044 7.1.2(10): one time limit for the whole Request.
  engine.arm(*peer, core::settings().request_timeout_ms * core::kMillisecond);
  peer->stream_->set_handler(peer);
}

PendingPeer::~PendingPeer() {
  engine_.disarm(*this);
  // Close by RST: connections in TIME_WAIT would keep others from binding the port later.
  if (stream_) stream_->set_abortive();
}

transport::StreamPtr PendingPeer::take_stream() {
  stream_->set_handler(nullptr);
  return std::move(stream_);
}

void PendingPeer::challenged(uint64_t proof, const core::SipKey& opening, Stage in) {
  right_proof_ = proof;
  challenged_in_ = in;
  opening_ = opening;
  step_ = Step::kChallenged;
  collector_ = {};
  engine_.arm(*this, wait_for_proof());
}

void PendingPeer::on_octets(core::Bytes octets) {
  // RFC 5044 7.1.2(2): after a Request the initiator waits for the Reply.
  const mpa::ParseStatus status = step_ == Step::kWaiting
                                      ? mpa::ParseStatus::kBadLength
                                      : collector_.feed(octets, mpa::FrameKind::kRequest, request_);
  if (status == mpa::ParseStatus::kNeedMore) return;
  if (status != mpa::ParseStatus::kComplete) {
    listener_.refuse(*this, "breaks the rules of MPA");
    return;
  }
  if (const char* wrong = understand(octets)) {
    listener_.refuse(*this, wrong);
  } else if (step_ == Step::kUnknown) {
    step_ = Step::kWaiting;
    engine_.arm(*this, wait_for_queue_pair());
    listener_.hello_received(*this);
  } else {
    step_ = Step::kProven;
    listener_.proof_received(*this);
  }
}

// RFC 5044 7.1.1 and 6581. Null when the Request is one of a uiwarp queue pair, else what is wrong.
const char* PendingPeer::understand(core::Bytes behind) {
  static constexpr char kNoUiwarp[] = "is no queue pair of uiwarp there";
  if (!behind.empty() || !request_.enhanced) return kNoUiwarp;
  const core::Bytes octets(request_.private_data, request_.private_size);
  if (is_of_another_version(octets))
    return "is another version of uiwarp: install the same one at both ends";
  const std::optional<HandshakeMessage> said = decode_handshake_message(octets);
  if (!said) return kNoUiwarp;
  if (step_ == Step::kChallenged) {
    // The same as the hello, except for type and value.
    given_proof_ = said->value.first;
    HandshakeMessage again = hello_;
    again.type = MessageType::kProof;
    again.value = {given_proof_, 0};
    return *said == again ? nullptr : kNoUiwarp;
  }
  if (said->type != MessageType::kHello) return kNoUiwarp;
  hello_ = *said;
  // It must connect from the address that it claims.
  const in6_addr source = core::gid_of(stream_->peer_address());
  return std::memcmp(&hello_.from.gid, &source, sizeof source) == 0 ? nullptr : kNoUiwarp;
}

void PendingPeer::on_end_of_stream() {
  listener_.remove(*this);
}

void PendingPeer::on_error(int) {
  listener_.remove(*this);
}

void PendingPeer::expire() {
  listener_.refuse(*this, step_ == Step::kUnknown ? "does not say who it is"
                          : step_ == Step::kWaiting
                              ? "asks for a queue pair that does not expect it"
                              : "does not prove that it knows the PSNs");
}

}  // namespace uiw::rendezvous
