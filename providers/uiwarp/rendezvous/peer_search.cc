// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/peer_search.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/gid.h"
#include "core/log.h"
#include "core/raw_sys.h"
#include "core/settings.h"
#include "device/gid_table.h"
#include "rendezvous/ports.h"
#include "rendezvous/wishes.h"
#include "transport/addresses.h"
#include "transport/close_connection.h"

namespace uiw::rendezvous {
namespace {

constexpr int kSteps = 4;  // steps per time limit

// How many guesses at the PSNs a queue pair accepts without delay, and the minimum time between
// later ones. By then one in 4096 of the 2^24 values (proof.h) was tried, and trying the rest takes
// days.
constexpr uint32_t kQuickChallenges = 4096;
constexpr core::Nanoseconds kBetweenChallenges = 20 * core::kMillisecond;

// False when the socket does not take the message at once, which a fresh one does.
bool say(PendingPeer& peer, mpa::StartupFrame& reply, const HandshakeMessage& message) {
  reply.private_size = kHandshakeMessageSize;
  encode(reply.private_data, message);
  startup::Outbox outbox;
  outbox.set(reply);
  return outbox.flush(peer.stream()) == 0;
}

}  // namespace

core::Result<std::unique_ptr<PeerSearch>> PeerSearch::create(engine::Engine& engine,
                                                             session::QueuePair& queue_pair,
                                                             const PeerSearchParams& params) {
  std::unique_ptr<PeerSearch> search(new (std::nothrow) PeerSearch(engine, queue_pair, params));
  if (!search) return core::Errno{ENOMEM};
  if (const int error = search->make_ready()) return core::Errno{error};
  return search;
}

PeerSearch::~PeerSearch() {
  engine_.disarm(*this);
  if (listener_) listener_->stop_expecting(params_.own.qp_num);
  if (found_) queue_pair_.forget_observer();
  if (own_socket_ >= 0) core::sys::close(own_socket_);
}

int PeerSearch::make_ready() {
  if (!number_in_use(params_.own.qp_num)) {
    core::log(core::LogLevel::kWarn,
              "queue pair 0x%06x cannot be reached, it has no TCP port: widen UIWARP_PORTS or end "
              "what uses them",
              params_.own.qp_num);
    return EADDRNOTAVAIL;
  }
  if (params_.own == params_.peer) {
    core::Result<int> fd = transport::bind_tcp(
        core::socket_address_of(params_.own.gid, 0, params_.ifindex), {.reuse_address = false});
    if (fd) own_socket_ = *fd;
    return fd.error();
  }
  if (params_.own > params_.peer) {
    connector_.reset(new (std::nothrow)
                         PeerConnector(engine_, params_.own, params_.peer, psns_, params_.ifindex,
                                       params_.ird, params_.service, *this));
    return connector_ ? 0 : ENOMEM;
  }
  core::Result<QpnListener*> listener = open_listener(engine_, params_.own, params_.ifindex);
  if (!listener) {
    core::log(core::LogLevel::kWarn, "queue pair 0x%06x cannot be reached at %s, TCP port %u: %s",
              params_.own.qp_num, core::text_of(params_.own.gid).text,
              unsigned{port_of(params_.own.qp_num)}, strerrordesc_np(listener.error()));
    return listener.error();
  }
  listener_ = *listener;
  return 0;
}

void PeerSearch::begin() {
  if (core::log_enabled(core::LogLevel::kDebug))
    core::log(core::LogLevel::kDebug,
              "queue pair 0x%06x: %s its peer, queue pair 0x%06x at %s (TCP port %u)",
              params_.own.qp_num, connector_ ? "connects to" : "waits for a connection from",
              params_.peer.qp_num, core::text_of(params_.peer.gid).text,
              unsigned{port_of(connector_ ? params_.peer.qp_num : params_.own.qp_num)});
  if (listener_) listener_->expect(params_.own.qp_num, *this);
  if (connector_) connector_->begin();
  if (own_socket_ < 0) return;
  // A TCP socket that connects to its own address is connected to itself.
  sockaddr_storage self{};
  socklen_t size = sizeof self;
  core::sys::getsockname(own_socket_, reinterpret_cast<sockaddr*>(&self), &size);
  to_self_ = transport::Connector::start(
      engine_, own_socket_,
      transport::Connector::begin(own_socket_, self, true, transport::Connector::Itself::kMeant),
      core::settings().connect_timeout_ms * core::kMillisecond, *this);
  if (to_self_) own_socket_ = -1;
}

void PeerSearch::enter_rts(uint32_t sq_psn, core::Nanoseconds time_limit) {
  psns_.send = sq_psn;
  if (connector_ && !found_) connector_->set_send_psn(sq_psn);
  // Peers that wait may be challenged now.
  if (listener_ && !found_) listener_->expect(params_.own.qp_num, *this);
  step_ = time_limit / kSteps;
  if (step_ > 0 && !found_) engine_.arm(*this, step_);
}

void PeerSearch::expire() {
  if (found_) return;
  const session::PeerWanted wanted = queue_pair_.peer_wanted();
  if (wanted == session::PeerWanted::kNow && steps_waited_++ == kSteps) {
    give_up();
  } else if (wanted == session::PeerWanted::kNoMore) {
    connector_.reset();
  } else {
    engine_.arm(*this, step_);
  }
}

void PeerSearch::give_up() {
  const Name &own = params_.own, &peer = params_.peer;
  if (wrong_proofs_ > 0) {
    core::log(core::LogLevel::kWarn,
              "queue pair 0x%06x at %s, in %s: its peer, queue pair 0x%06x at %s, did not come; "
              "who came by that name did "
              "not know the PSNs, %u times",
              own.qp_num, core::text_of(own.gid).text, text_of(psns_.stage()), peer.qp_num,
              core::text_of(peer.gid).text, wrong_proofs_);
  } else if (listener_) {
    core::log(core::LogLevel::kWarn,
              "queue pair 0x%06x at %s: its peer, queue pair 0x%06x at %s, did not connect to TCP "
              "port %u here. Does it know "
              "this number and GID, and does a firewall let it in?",
              own.qp_num, core::text_of(own.gid).text, peer.qp_num, core::text_of(peer.gid).text,
              unsigned{port_of(own.qp_num)});
  } else {
    core::log(core::LogLevel::kWarn,
              "queue pair 0x%06x at %s: its peer, queue pair 0x%06x at %s, is not reached on TCP "
              "port %u: %s. Are number and "
              "GID right, and has it been told ours?",
              own.qp_num, core::text_of(own.gid).text, peer.qp_num, core::text_of(peer.gid).text,
              unsigned{port_of(peer.qp_num)},
              connector_ ? connector_->problem() : "no TCP connection");
  }
  queue_pair_.give_up_peer();
  // With unreliable service nothing has failed, and the peer may still connect.
  if (params_.service == core::Service::kReliable) connector_.reset();
}

bool PeerSearch::may_challenge() {
  const core::Nanoseconds now = engine_.now();
  if (challenges_ >= kQuickChallenges && now - last_challenge_ < kBetweenChallenges) return false;
  ++challenges_;
  last_challenge_ = now;
  return true;
}

bool PeerSearch::on_hello(PendingPeer& peer) {
  const HandshakeMessage& hello = peer.hello();
  if (found_ || hello.from != params_.peer || hello.to != params_.own) {
    core::log(core::LogLevel::kInfo, "queue pair 0x%06x refuses queue pair 0x%06x at %s: %s",
              params_.own.qp_num, hello.from.qp_num, core::text_of(hello.from.gid).text,
              found_ ? "its peer is there already" : "it was told another peer");
    return false;
  }
  if (!is_of_our_type(hello)) return false;
  const std::optional<uint64_t> secret = secret_of_responder(psns_, hello.stage);
  if (!secret) return true;  // both in RTR: it waits for our RTS, or connects again after its own
  core::SipKey opening;
  if (!may_challenge() || !make_random(opening)) return false;
  const Transcript said{hello.from, hello.to, hello.stage, psns_.stage(), hello.value.first};
  const uint64_t commitment = commitment_of(said, *secret, opening);
  mpa::StartupFrame reply =
      mpa::make_reject(wishes(peer.stream().peer_is_local(), params_.ird), peer.request());
  if (!say(peer, reply,
           {MessageType::kChallenge,
            said.responder_stage,
            said.responder,
            said.initiator,
            {commitment, 0},
            params_.service}))
    return false;
  peer.challenged(proof_of(said, *secret, commitment), opening, said.responder_stage);
  return true;
}

// RFC 5044 7.1.2: the responder's side.
void PeerSearch::on_proof(PendingPeer& peer) {
  if (found_) return;
  if (!peer.proof_is_right()) {
    tell_of_wrong_proof(peer.hello());
    return;
  }
  mpa::Agreement agreement;
  mpa::StartupFrame reply = mpa::make_reply(wishes(peer.stream().peer_is_local(), params_.ird),
                                            peer.request(), agreement);
  if (say(peer, reply,
          {MessageType::kOpening, peer.challenged_in(), params_.own, params_.peer, peer.opening(),
           params_.service})) {
    agreement.request = mpa::head_of(peer.request());
    agreement.reply = mpa::head_of(reply);
    join(peer.take_stream(), agreement, {});
  }
}

// Logged once, as below.
bool PeerSearch::is_of_our_type(const HandshakeMessage& hello) {
  if (hello.service == params_.service) return true;
  if (wrong_types_++ == 0)
    core::log(core::LogLevel::kWarn,
              "queue pair 0x%06x at %s refuses its peer, queue pair 0x%06x at %s: that is %s, and "
              "this one is %s. Both ends "
              "must be created with the same qp_type",
              params_.own.qp_num, core::text_of(params_.own.gid).text, hello.from.qp_num,
              core::text_of(hello.from.gid).text, core::text_of(hello.service),
              core::text_of(params_.service));
  return false;
}

// Logs this only once, so that an attacker cannot fill the log.
void PeerSearch::tell_of_wrong_proof(const HandshakeMessage& hello) {
  if (wrong_proofs_++ > 0) return;
  core::log(
      core::LogLevel::kWarn,
      "queue pair 0x%06x at %s, in %s: who comes as its peer, queue pair 0x%06x at %s, in %s, does "
      "not know the PSNs. "
      "Either the two programs do not have as rq_psn what the other has as sq_psn, or it is a "
      "stranger",
      params_.own.qp_num, core::text_of(params_.own.gid).text, text_of(psns_.stage()),
      hello.from.qp_num, core::text_of(hello.from.gid).text, text_of(hello.stage));
}

void PeerSearch::on_peer_connected(transport::StreamPtr stream, const mpa::Agreement& agreement,
                                   core::Bytes leftover) {
  join(std::move(stream), agreement, leftover);
}

void PeerSearch::on_connected(int fd) {
  transport::StreamPtr stream =
      transport::TcpStream::adopt(engine_, fd, transport::TcpStream::Origin::kOurs);
  if (!stream) {
    transport::close_connection(fd);
    return;
  }
  // There is no peer to negotiate with.
  mpa::Agreement agreement;
  agreement.initiator = true;
  agreement.crc = core::settings().crc == core::CrcPolicy::kOn;
  agreement.ird = agreement.ord = std::max<uint16_t>(params_.ird, 1);
  join(std::move(stream), agreement, {});
}

void PeerSearch::on_connect_failed(int error) {
  core::log(core::LogLevel::kWarn, "queue pair 0x%06x cannot be connected to itself: errno %d",
            params_.own.qp_num, error);
}

void PeerSearch::join(transport::StreamPtr stream, const mpa::Agreement& agreement,
                      core::Bytes leftover) {
  const int error = queue_pair_.attach(std::move(stream), agreement, leftover, this);
  if (error != 0) {
    core::log(core::LogLevel::kInfo,
              "queue pair 0x%06x found its peer when it was in no state to be connected",
              params_.own.qp_num);
    return;
  }
  found_ = true;
  engine_.disarm(*this);
}

}  // namespace uiw::rendezvous
