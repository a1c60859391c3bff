// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/meeting.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/log.h"
#include "core/raw_sys.h"
#include "core/settings.h"
#include "rendezvous/ports.h"
#include "rendezvous/wishes.h"
#include "transport/addresses.h"

namespace uiw::rendezvous {
namespace {

constexpr int kSteps = 4;  // of which patience is made

// Guesses at the PSNs that a queue pair takes as fast as they come, and the time between two that
// come later: of 2^24 (proof.h) a stranger has tried one in 4096 then, and needs days for the rest.
constexpr uint32_t kQuickChallenges = 4096;
constexpr core::Nanoseconds kBetweenChallenges = 20 * core::kMillisecond;

// False when the socket does not take it at once, as a fresh one does.
bool say(PendingPeer& peer, mpa::StartupFrame& reply, const HandshakeMessage& message) {
  reply.private_size = kHandshakeMessageSize;
  encode(reply.private_data, message);
  startup::Outbox outbox;
  outbox.set(reply);
  return outbox.flush(peer.stream()) == 0;
}

}  // namespace

core::Result<std::unique_ptr<Meeting>> Meeting::arrange(engine::Engine& engine,
                                                        session::QueuePair& queue_pair,
                                                        const Appointment& appointment) {
  std::unique_ptr<Meeting> meeting(new (std::nothrow) Meeting(engine, queue_pair, appointment));
  if (!meeting) return core::Errno{ENOMEM};
  if (const int error = meeting->make_ready()) return core::Errno{error};
  return meeting;
}

Meeting::~Meeting() {
  engine_.disarm(*this);
  if (listener_) listener_->stop_expecting(appointment_.own.qp_num);
  if (met_) queue_pair_.forget_observer();
  if (own_socket_ >= 0) core::sys::close(own_socket_);
}

int Meeting::make_ready() {
  if (!number_in_use(appointment_.own.qp_num)) {
    core::log(core::LogLevel::kWarn,
              "QP %u cannot be met, it has no TCP port: widen UIWARP_PORTS or end what uses them",
              appointment_.own.qp_num);
    return EADDRNOTAVAIL;
  }
  if (appointment_.own == appointment_.peer) {
    core::Result<int> fd = transport::bind_tcp(
        address_of(appointment_.own.gid, 0, appointment_.ifindex), {.reuse_address = false});
    if (fd) own_socket_ = *fd;
    return fd.error();
  }
  if (appointment_.own > appointment_.peer) {
    connector_.reset(new (std::nothrow)
                         PeerConnector(engine_, appointment_.own, appointment_.peer, psns_,
                                       appointment_.ifindex, appointment_.ird, *this));
    return connector_ ? 0 : ENOMEM;
  }
  core::Result<QpnListener*> listener =
      open_listener(engine_, appointment_.own, appointment_.ifindex);
  if (!listener) {
    core::log(core::LogLevel::kWarn, "QP %u cannot be met at %s, TCP port %u: %s",
              appointment_.own.qp_num, text_of(appointment_.own.gid).text,
              unsigned{port_of(appointment_.own.qp_num)}, strerrordesc_np(listener.error()));
    return listener.error();
  }
  listener_ = *listener;
  return 0;
}

void Meeting::begin() {
  if (listener_) listener_->expect(appointment_.own.qp_num, *this);
  if (connector_) connector_->begin();
  if (own_socket_ < 0) return;
  // A TCP socket that connects to its own address is connected to itself.
  sockaddr_storage self{};
  socklen_t size = sizeof self;
  core::sys::getsockname(own_socket_, reinterpret_cast<sockaddr*>(&self), &size);
  to_self_ = transport::Connector::start(
      engine_, own_socket_, transport::Connector::begin(own_socket_, self, true),
      core::settings().connect_timeout_ms * core::kMillisecond, *this);
  if (to_self_) own_socket_ = -1;
}

void Meeting::hurry(uint32_t sq_psn, core::Nanoseconds patience) {
  psns_.send = sq_psn;
  if (connector_ && !met_) connector_->set_send_psn(sq_psn);
  // Those that wait may be challenged now.
  if (listener_ && !met_) listener_->expect(appointment_.own.qp_num, *this);
  step_ = patience / kSteps;
  if (step_ > 0 && !met_) engine_.arm(*this, step_);
}

void Meeting::expire() {
  if (met_) return;
  const session::PeerWanted wanted = queue_pair_.peer_wanted();
  if (wanted == session::PeerWanted::kNow && steps_waited_++ == kSteps) {
    give_up();
  } else if (wanted == session::PeerWanted::kNoMore) {
    connector_.reset();
  } else {
    engine_.arm(*this, step_);
  }
}

void Meeting::give_up() {
  const Name &own = appointment_.own, &peer = appointment_.peer;
  if (wrong_proofs_ > 0) {
    core::log(core::LogLevel::kWarn,
              "QP %u at %s, in %s: its peer, QP %u at %s, did not come; who came by that name did "
              "not know the PSNs, %u times",
              own.qp_num, text_of(own.gid).text, text_of(psns_.stage()), peer.qp_num,
              text_of(peer.gid).text, wrong_proofs_);
  } else if (listener_) {
    core::log(
        core::LogLevel::kWarn,
        "QP %u at %s: its peer, QP %u at %s, did not connect to TCP port %u here. Does it know "
        "this number and GID, and does a firewall let it in?",
        own.qp_num, text_of(own.gid).text, peer.qp_num, text_of(peer.gid).text,
        unsigned{port_of(own.qp_num)});
  } else {
    core::log(
        core::LogLevel::kWarn,
        "QP %u at %s: its peer, QP %u at %s, is not reached on TCP port %u: %s. Are number and "
        "GID right, and has it been told ours?",
        own.qp_num, text_of(own.gid).text, peer.qp_num, text_of(peer.gid).text,
        unsigned{port_of(peer.qp_num)}, connector_ ? connector_->problem() : "no TCP connection");
  }
  queue_pair_.give_up_peer();
  connector_.reset();
}

bool Meeting::may_challenge() {
  const core::Nanoseconds now = engine_.now();
  if (challenges_ >= kQuickChallenges && now - last_challenge_ < kBetweenChallenges) return false;
  ++challenges_;
  last_challenge_ = now;
  return true;
}

bool Meeting::on_hello(PendingPeer& peer) {
  const HandshakeMessage& hello = peer.hello();
  if (met_ || hello.from != appointment_.peer || hello.to != appointment_.own) {
    core::log(core::LogLevel::kInfo, "QP %u sends QP %u at %s off: %s", appointment_.own.qp_num,
              hello.from.qp_num, text_of(hello.from.gid).text,
              met_ ? "its peer is there already" : "it was told another peer");
    return false;
  }
  const std::optional<uint64_t> secret = secret_of_responder(psns_, hello.stage);
  if (!secret) return true;  // both in RTR: it waits for our RTS, or comes again after its own
  core::SipKey opening;
  if (!may_challenge() || !make_random(opening)) return false;
  const Transcript said{hello.from, hello.to, hello.stage, psns_.stage(), hello.value.first};
  const uint64_t commitment = commitment_of(said, *secret, opening);
  mpa::StartupFrame reply =
      mpa::make_reject(wishes(peer.stream().peer_is_local(), appointment_.ird), peer.request());
  if (!say(peer, reply,
           {MessageType::kChallenge,
            said.responder_stage,
            said.responder,
            said.initiator,
            {commitment, 0}}))
    return false;
  peer.challenged(proof_of(said, *secret, commitment), opening, said.responder_stage);
  return true;
}

// RFC 5044 7.1.2: the responder's side.
void Meeting::on_proof(PendingPeer& peer) {
  if (met_) return;
  if (!peer.proof_is_right()) {
    tell_of_wrong_proof(peer.hello());
    return;
  }
  mpa::Agreement agreement;
  mpa::StartupFrame reply = mpa::make_reply(wishes(peer.stream().peer_is_local(), appointment_.ird),
                                            peer.request(), agreement);
  if (say(peer, reply,
          {MessageType::kOpening, peer.challenged_in(), appointment_.own, appointment_.peer,
           peer.opening()}))
    join(peer.take_stream(), agreement, {});
}

// Once by name, so that no stranger fills the log.
void Meeting::tell_of_wrong_proof(const HandshakeMessage& hello) {
  if (wrong_proofs_++ > 0) return;
  core::log(
      core::LogLevel::kWarn,
      "QP %u at %s, in %s: who comes as its peer, QP %u at %s, in %s, does not know the PSNs. "
      "Either the two programs do not have as rq_psn what the other has as sq_psn, or it is a "
      "stranger",
      appointment_.own.qp_num, text_of(appointment_.own.gid).text, text_of(psns_.stage()),
      hello.from.qp_num, text_of(hello.from.gid).text, text_of(hello.stage));
}

void Meeting::on_peer_connected(transport::StreamPtr stream, const mpa::Agreement& agreement,
                                core::Bytes leftover) {
  join(std::move(stream), agreement, leftover);
}

void Meeting::on_connected(int fd) {
  transport::StreamPtr stream =
      transport::TcpStream::adopt(engine_, fd, transport::TcpStream::Origin::kOurs);
  if (!stream) {
    core::sys::close(fd);
    return;
  }
  // There is nobody to negotiate with.
  mpa::Agreement agreement;
  agreement.initiator = true;
  agreement.crc = core::settings().crc == core::CrcPolicy::kOn;
  agreement.ird = agreement.ord = std::max<uint16_t>(appointment_.ird, 1);
  join(std::move(stream), agreement, {});
}

void Meeting::on_connect_failed(int error) {
  core::log(core::LogLevel::kWarn, "QP %u cannot be connected to itself: errno %d",
            appointment_.own.qp_num, error);
}

void Meeting::join(transport::StreamPtr stream, const mpa::Agreement& agreement,
                   core::Bytes leftover) {
  const int error = queue_pair_.attach(std::move(stream), agreement, leftover, this);
  if (error != 0) {
    core::log(core::LogLevel::kInfo, "QP %u met its peer in no state to be connected",
              appointment_.own.qp_num);
    return;
  }
  met_ = true;
  engine_.disarm(*this);
}

}  // namespace uiw::rendezvous
