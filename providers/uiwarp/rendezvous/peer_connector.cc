// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/peer_connector.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/gid.h"
#include "core/log.h"
#include "core/raw_sys.h"
#include "core/settings.h"
#include "device/gid_table.h"
#include "rendezvous/wishes.h"
#include "transport/addresses.h"
#include "transport/close_connection.h"
#include "transport/socket_options.h"

namespace uiw::rendezvous {
namespace {

// The pause between two attempts. Usually both ends change state within a round trip of each other.
constexpr core::Nanoseconds kFirstPause = 1 * core::kMillisecond,
                            kLongestPause = 250 * core::kMillisecond;

constexpr char kNoAnswer[] = "no answer, the host is down or a firewall drops TCP";
constexpr char kNotReady[] =
    "the program is there, its queue pair is not in RTR, or both are not in RTS";
constexpr char kRefused[] =
    "the listener there does not expect this queue pair, or one of another type (RC, UC), or is "
    "another version of uiwarp";
constexpr char kNotThePeer[] = "the listener there is no uiwarp, or not the peer";
constexpr char kOtherPsns[] = "the listener there does not know the PSNs";

const char* describe(int error) {
  switch (error) {
    case ECONNREFUSED:
      return "nobody listens there";
    case ETIMEDOUT:
      return kNoAnswer;
    default:
      return strerrordesc_np(error);
  }
}

}  // namespace

PeerConnector::PeerConnector(engine::Engine& engine, const Name& own, const Name& peer,
                             const Psns& psns, unsigned ifindex, uint16_t ird,
                             core::Service service, PeerConnectHandler& handler)
    : engine_(engine),
      own_(own),
      peer_(peer),
      psns_(psns),
      ifindex_(ifindex),
      ird_(ird),
      service_(service),
      handler_(handler),
      pause_(kFirstPause),
      problem_(kNoAnswer) {}

PeerConnector::~PeerConnector() {
  engine_.disarm(*this);
}

void PeerConnector::set_send_psn(uint32_t psn) {
  if (std::exchange(psns_.send, psn)) return;
  // Begin again: if the peer is in RTR, too, there was no shared secret until now.
  if (step_ != Step::kPausing && step_ != Step::kHelloSent) return;
  stream_.reset();
  connect();
}

void PeerConnector::connect() {
  engine_.disarm(*this);
  step_ = Step::kConnecting;
  // Connect from the address that is our GID: the peer expects that.
  const sockaddr_storage source = core::socket_address_of(own_.gid, 0, ifindex_);
  const sockaddr_storage peer = core::socket_address_of(peer_.gid, port_of(peer_.qp_num), ifindex_);
  core::Result<int> fd = transport::open_connect_socket(source, -1);
  if (fd) {
    connector_ = transport::Connector::start(
        engine_, *fd,
        transport::Connector::begin(*fd, peer, transport::is_local_peer(peer, source)),
        core::settings().connect_timeout_ms * core::kMillisecond, *this);
    if (connector_) return;
    core::sys::close(*fd);
  }
  retry_because(describe(fd ? ENOMEM : fd.error()));
}

void PeerConnector::on_connect_failed(int error) {
  core::log(core::LogLevel::kDebug,
            "queue pair 0x%06x: queue pair 0x%06x cannot be reached yet: %s", own_.qp_num,
            peer_.qp_num, strerrordesc_np(error));
  retry_because(describe(error));
}

void PeerConnector::on_connected(int fd) {
  stream_ = transport::TcpStream::adopt(engine_, fd, transport::TcpStream::Origin::kOurs);
  core::SipKey random;
  if (!stream_ || !make_random(random)) {
    if (!stream_) transport::close_connection(fd);
    retry_because(describe(ENOMEM));
    return;
  }
  problem_ = kNotReady;
  wishes_ = wishes(stream_->peer_is_local(), ird_);
  step_ = Step::kHelloSent;
  own_stage_ = psns_.stage();
  nonce_ = random.first;
  stream_->set_handler(this);
  request(MessageType::kHello, {nonce_, 0});
}

void PeerConnector::request(MessageType type, const core::SipKey& value) {
  request_ = mpa::make_request(wishes_);
  request_.private_size = kHandshakeMessageSize;
  encode(request_.private_data, {type, own_stage_, own_, peer_, value, service_});
  outbox_.set(request_);
  collector_ = {};
  // RFC 5044 7.1.2(10). The peer may let this end wait until its queue pair expects this one, but
  // its listener closes the connection long before this timer expires (pending_peer.cc).
  engine_.arm(*this, core::settings().reply_timeout_ms * core::kMillisecond);
  send_request();
}

void PeerConnector::send_request() {
  const int error = outbox_.flush(*stream_);
  if (error == EAGAIN) {
    stream_->want_writable();
  } else if (error != 0) {
    retry_because(kRefused);
  }
}

void PeerConnector::on_writable() {
  send_request();
}

void PeerConnector::on_octets(core::Bytes octets) {
  mpa::StartupFrame reply;
  const mpa::ParseStatus status = collector_.feed(octets, mpa::FrameKind::kReply, reply);
  if (status == mpa::ParseStatus::kNeedMore) return;
  if (status != mpa::ParseStatus::kComplete) {
    retry_because(kNotThePeer);
  } else if (step_ == Step::kHelloSent) {
    prove(reply, octets);
  } else {
    finish(reply, octets);
  }
}

// The peer sends the same two names the other way round; a listener that does not is not the peer.
std::optional<HandshakeMessage> PeerConnector::message_from_peer(const mpa::StartupFrame& reply,
                                                                 MessageType type) const {
  std::optional<HandshakeMessage> said =
      decode_handshake_message({reply.private_data, reply.private_size});
  if (said &&
      (said->type != type || said->from != peer_ || said->to != own_ || said->service != service_))
    said.reset();
  return said;
}

Transcript PeerConnector::transcript() const {
  return {own_, peer_, own_stage_, peer_stage_, nonce_};
}

void PeerConnector::prove(const mpa::StartupFrame& reply, core::Bytes behind) {
  const std::optional<HandshakeMessage> challenge =
      message_from_peer(reply, MessageType::kChallenge);
  std::optional<uint64_t> secret;
  if (challenge && reply.reject && behind.empty()) {
    // The PSNs known when the hello was sent: the peer uses the stage in the hello.
    const Psns known{psns_.receive, own_stage_ == Stage::kRts ? psns_.send : std::nullopt};
    secret = secret_of_initiator(known, challenge->stage);
  }
  if (!secret) {
    retry_because(kNotThePeer);
    return;
  }
  peer_stage_ = challenge->stage;
  secret_ = *secret;
  commitment_ = challenge->value.first;
  step_ = Step::kProofSent;
  request(MessageType::kProof, {proof_of(transcript(), secret_, commitment_), 0});
}

void PeerConnector::finish(const mpa::StartupFrame& reply, core::Bytes behind) {
  const std::optional<HandshakeMessage> opening = message_from_peer(reply, MessageType::kOpening);
  mpa::Agreement agreement;
  core::TermCode code{};
  if (!opening || opening->stage != peer_stage_ ||
      commitment_of(transcript(), secret_, opening->value) != commitment_ ||
      mpa::judge_reply(wishes_, request_, reply, agreement, code) != mpa::ReplyVerdict::kAccepted) {
    retry_because(kNotThePeer);
    return;
  }
  engine_.disarm(*this);
  handler_.on_peer_connected(std::move(stream_), agreement, behind);
}

void PeerConnector::on_end_of_stream() {
  retry_because(kRefused);
}

void PeerConnector::on_error(int) {
  retry_because(kRefused);
}

void PeerConnector::expire() {
  if (step_ == Step::kPausing) {
    connect();
  } else {
    retry();  // no Reply
  }
}

void PeerConnector::retry_because(const char* problem) {
  problem_ = problem;
  retry();
}

void PeerConnector::retry() {
  stream_.reset();
  connector_.reset();
  if (step_ == Step::kProofSent) {
    stop();
    return;
  }
  step_ = Step::kPausing;
  engine_.arm(*this, pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
}

// A responder that has our proof can compute the PSNs from it, so what it sends later proves
// nothing.
void PeerConnector::stop() {
  engine_.disarm(*this);
  step_ = Step::kStopped;
  problem_ = kOtherPsns;
  core::log(
      core::LogLevel::kWarn,
      "queue pair 0x%06x at %s, in %s: who answers as its peer, queue pair 0x%06x at %s, in %s, "
      "does not know the PSNs, "
      "or closed when it was asked. It is not connected to again. Is rq_psn at either end what the "
      "other has as sq_psn?",
      own_.qp_num, core::text_of(own_.gid).text, text_of(own_stage_), peer_.qp_num,
      core::text_of(peer_.gid).text, text_of(peer_stage_));
}

}  // namespace uiw::rendezvous
