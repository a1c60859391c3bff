// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/initiator.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cm/link.h"
#include "cm/manager.h"
#include "cm/refusals.h"
#include "cm/resolution.h"
#include "cm/startup_closer.h"
#include "core/explain.h"
#include "core/gid.h"
#include "core/log.h"
#include "transport/addresses.h"
#include "transport/close_connection.h"

namespace uiw::cm {
namespace {

// An attempt that was refused is repeated for this long. An adapter's request takes milliseconds to
// be refused, a SYN over loopback microseconds, and programs rely on the former: perftest's client
// connects a second time while its server is about to listen again.
constexpr core::Nanoseconds kListenerComesWithin = 100 * core::kMillisecond;
constexpr core::Nanoseconds kConnectAgainAfter = 5 * core::kMillisecond;

// A listener for datagrams refuses a connection by this status.
bool is_another_service(const mpa::StartupFrame& reply) {
  ResolutionAnswer answer;
  return parse_resolution_answer(reply, answer) && answer.status == ResolutionStatus::kNotSupported;
}

// The event for a failed attempt: conformance 4.1, as the kernel maps it.
struct Failure {
  EventType event;
  int status;
};
Failure failure_for(int error, const ServiceRules& rules) {
  switch (error) {
    case ECONNREFUSED:
      return {rules.refused, rules.nobody_listens};
    case ECONNRESET:
      return {rules.refused, rules.closed};
    case ETIMEDOUT:
      return {EventType::kUnreachable, -error};
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
      return {rules.no_way, -error};
    default:
      return {rules.failed, -error};
  }
}

}  // namespace

Initiator::Initiator(Manager& manager, engine::Engine& engine, ConnectAttempt attempt,
                     uint64_t turn, const sockaddr_storage& source,
                     const sockaddr_storage& destination, bool explicit_port, int tos,
                     Service service, const ConnParam& param)
    : Endpoint(manager, engine),
      turn_(turn),
      attempt_(std::move(attempt)),
      source_(source),
      destination_(destination),
      explicit_port_(explicit_port),
      tos_(tos),
      service_(service),
      param_(param),
      holder_(holder_of(manager, param.qp_num)) {
  // The refusal is usually known at once. Join now, so that an attempt that begins before the
  // engine runs has to follow this one.
  if (attempt_.error == ECONNREFUSED) manager_.refused_attempts().join(*this);
}

Initiator::~Initiator() {
  leave_refused();
  if (attempt_.fd >= 0) transport::close_connection(attempt_.fd);
}

void Initiator::carry_out(uint32_t orders) {
  // By iWARP's rules the program can say so only before the answer.
  if ((orders & kDisconnect) && manager_.rules().mover == Mover::kConnection) {
    disconnecting_ = true;
    orders &= ~kDisconnect;
  }
  if (orders & kStart) {
    log_stage("connecting");
    await_connection();
  }
  // The program does not want the answer any more.
  if ((orders & kDisconnect) && !(orders & kEstablish)) return finish();
  if (orders & kEstablish) establish((orders & kDisconnect) != 0);
}

void Initiator::log_stage(const char* what, const char* why) const {
  if (!core::log_enabled(core::LogLevel::kDebug)) return;
  core::log(core::LogLevel::kDebug, "connection to %s: %s%s%s", core::text_of(destination_).text,
            what, *why ? ": " : "", why);
}

void Initiator::warn(const char* why, const char* hint) const {
  const std::lock_guard hold(manager_.lock());
  if (owner == nullptr) return;
  core::explain(owner->told, "connection to %s given up: %s%s", core::text_of(destination_).text,
                why, hint);
}

void Initiator::await_connection() {
  if (attempt_.fate != UIWARP_CONNECT_GOES_ON) return meet(attempt_.fate);
  if (attempt_.connected) {
    on_connected(std::exchange(attempt_.fd, -1));
    return;
  }
  connector_ = transport::Connector::start(
      engine_, attempt_.fd, attempt_.error,
      manager_.settings().connect_timeout_ms * core::kMillisecond, *this);
  if (connector_ == nullptr) {
    fail(ENOMEM);
    return;
  }
  attempt_.fd = -1;
}

// Acts as if the peer or the network had done it: an instrument has chosen this fate.
void Initiator::meet(uiwarp_connect_fate fate) {
  const ServiceRules& rules = manager_.rules().of(service_);
  switch (fate) {
    case UIWARP_CONNECT_GOES_ON:
      return;
    case UIWARP_CONNECT_REJECTED:
      return finish_with(rules.refused, rules.rejected);
    case UIWARP_CONNECT_UNANSWERED:
      return engine_.arm(deadline_, manager_.settings().connect_timeout_ms * core::kMillisecond);
    case UIWARP_CONNECT_UNREACHABLE:
      return fail(EHOSTUNREACH);
  }
}

void Initiator::on_connect_failed(int error) {
  if (error == ECONNREFUSED && !fell_back_ && await_listener()) return;
  // The peer closed on revision 2 and refuses revision 1: report that it has closed.
  if (fell_back_ && error == ECONNREFUSED) error = ECONNRESET;
  fail(error);
}

// False: it has waited long enough.
bool Initiator::await_listener() {
  if (give_up_at_ == 0) {
    give_up_at_ = engine_.now() + kListenerComesWithin;
    log_stage("refused, and tried again for a tenth of a second");
  }
  if (engine_.now() >= give_up_at_) return false;
  {
    const std::lock_guard hold(manager_.lock());
    manager_.refused_attempts().join(*this);
  }
  connector_.reset();
  engine_.arm(again_, kConnectAgainAfter);
  return true;
}

// Whether an earlier attempt still waits for the same listener. False once this one has waited as
// long as it would by itself.
bool Initiator::must_follow() {
  if (give_up_at_ != 0 && engine_.now() >= give_up_at_) return false;
  const std::lock_guard hold(manager_.lock());
  return manager_.refused_attempts().any_before(*this);
}

void Initiator::leave_refused() {
  const std::lock_guard hold(manager_.lock());
  manager_.refused_attempts().leave(*this);
}

// There is a listener: the attempts that waited behind this one start at once.
void Initiator::have_others_follow() {
  const std::lock_guard hold(manager_.lock());
  if (!is_refused) return;
  manager_.refused_attempts().leave(*this);
  while (Initiator* const next = manager_.refused_attempts().take(destination_))
    if (next->give_up_at_ != 0) engine_.arm(next->again_, 0);  // else its kStart is still to come
}

void Initiator::connect_again() {
  if (must_follow()) {
    engine_.arm(again_, kConnectAgainAfter);
  } else if (!begin_anew(attempt_.wishes.revision)) {
    fail(attempt_.error);
  }
}

// Connects on a new socket. With an explicit port, the previous socket must have closed without
// TIME_WAIT. False: no socket; attempt_.error says why.
bool Initiator::begin_anew(uint8_t revision) {
  sockaddr_storage from = source_;
  if (!explicit_port_) transport::set_port(from, 0);
  attempt_ = ConnectAttempt::begin(manager_.settings(), -1, from, destination_, tos_, service_,
                                   param_, revision, ConnectAttempt::Begin::kNow);
  if (attempt_.fd < 0) return false;
  await_connection();
  return true;
}

void Initiator::fail(int error) {
  log_stage("failed", strerrordesc_np(error));
  const Failure failure = failure_for(error, manager_.rules().of(service_));
  finish_with(failure.event, failure.status);
}

void Initiator::on_connected(int fd) {
  if (!attempt_.connected && must_follow() && await_listener()) {
    transport::close_connection(
        fd, explicit_port_ ? transport::CloseBy::kReset : transport::CloseBy::kFin);
    return;
  }
  have_others_follow();
  stream_ = transport::TcpStream::adopt(engine_, fd, transport::TcpStream::Origin::kOurs);
  if (stream_ == nullptr) {
    transport::close_connection(fd);
    fail(ENOMEM);
    return;
  }
  {
    std::lock_guard hold(manager_.lock());
    if (owner != nullptr) owner->source = stream_->local_address();
  }
  // RFC 5044 7.1.2(10): a time limit, as the remote application decides when it answers.
  engine_.arm(deadline_, manager_.settings().reply_timeout_ms * core::kMillisecond);
  stream_->set_handler(this);
  log_stage(attempt_.request.revision >= 2 ? "TCP stands, an MPA Request of revision 2 is sent"
                                           : "TCP stands, an MPA Request of revision 1 is sent");
  send_request();
}

void Initiator::send_request() {
  const int error = attempt_.outbox.flush(*stream_);
  if (error == EAGAIN) {
    stream_->want_writable();
  } else if (error == EPIPE || error == ECONNRESET) {
    closed_without_reply();
  } else if (error != 0) {
    fail(error);
  }
}

void Initiator::on_writable() {
  send_request();
}

void Initiator::reply_overdue() {
  log_stage("given up, no MPA Reply came in time (UIWARP_REPLY_TIMEOUT_MS)");
  finish_with(EventType::kUnreachable, -ETIMEDOUT);
}

void Initiator::on_end_of_stream() {
  closed_without_reply();
}

void Initiator::on_error(int error) {
  if (answered_ || error == ECONNRESET || error == EPIPE) {
    closed_without_reply();
  } else {
    fail(error);
  }
}

// RFC 6581 10: an end that knows only revision 1 closes on revision 2. That is not the reason if
// part of an answer has arrived.
void Initiator::closed_without_reply() {
  if (answered_) return peer_left();
  if (collector_.empty() && fall_back()) return;
  fail(ECONNRESET);
}

// Tries again with revision 1, on a new TCP connection. False: it does not apply, or failed.
bool Initiator::fall_back() {
  if (fell_back_ || !manager_.settings().mpa_fallback || attempt_.request.revision < 2)
    return false;
  fell_back_ = true;
  log_stage("the peer does not take revision 2, tried again with revision 1");
  collector_ = {};
  engine_.disarm(deadline_);
  // With a FIN the port, which is needed again, would stay in TIME_WAIT.
  if (explicit_port_) stream_->cut();
  stream_.reset();
  connector_.reset();
  return begin_anew(1);
}

void Initiator::on_octets(core::Bytes octets) {
  if (answered_) return keep(octets);
  mpa::StartupFrame reply;
  const mpa::ParseStatus status = collector_.feed(octets, mpa::FrameKind::kReply, reply);
  if (status == mpa::ParseStatus::kNeedMore) return;
  if (status != mpa::ParseStatus::kComplete) {
    // RFC 5044 8(4): an invalid start-up frame closes the connection without a message to the peer.
    warn(mpa::describe(status), "; is the port that of a program without RDMA?");
    fail(EPROTO);
    return;
  }
  if (service_ == Service::kDatagrams) return judge_resolution(reply);
  judge(reply, octets);
}

// A peer that does not know resolutions takes ours for a connection request; closing tells it that
// there is no connection.
void Initiator::judge_resolution(const mpa::StartupFrame& reply) {
  ResolutionAnswer answer{.status = ResolutionStatus::kNotSupported};
  ConnParam told;
  if (const auto private_data = parse_resolution_answer(reply, answer))
    copy_private_data(told, *private_data);
  if (answer.status != ResolutionStatus::kSuccess) {
    finish_with(manager_.rules().of(service_).refused, static_cast<int>(answer.status), &told);
    return;
  }
  told.qp_num = answer.qp_num;
  told.qkey = answer.qkey;
  {
    const std::lock_guard hold(manager_.lock());
    if (owner != nullptr) {
      owner->state = IdState::kConnected;
      manager_.push(*owner, EventType::kEstablished, 0, &told);
    }
  }
  finish();
}

// `leftover`: octets behind the Reply. A responder must not send any before our first FPDU, but siw
// does, and they must be processed.
void Initiator::judge(const mpa::StartupFrame& reply, core::Bytes leftover) {
  ConnParam answer;
  copy_private_data(answer, {reply.private_data, reply.private_size});
  mpa::Agreement agreement;
  core::TermCode code{};
  switch (mpa::judge_reply(attempt_.wishes, attempt_.request, reply, agreement, code)) {
    case mpa::ReplyVerdict::kAccepted:
      log_stage("the peer has accepted it");
      accepted(agreement, leftover, answer);
      return;
    case mpa::ReplyVerdict::kRejected:
      if (is_another_service(reply)) return fail(ECONNREFUSED);
      log_stage("the peer has rejected it");
      // RFC 5044 7.1.2(3): pass on the private data of the peer's application.
      if (reply.enhanced) {
        // RFC 6581 9.1: pass on the depths as well, seen from this end.
        answer.responder_resources =
            static_cast<uint8_t>(std::min<uint16_t>(reply.enhanced->ord, 255));
        answer.initiator_depth = static_cast<uint8_t>(std::min<uint16_t>(reply.enhanced->ird, 255));
      }
      finish_with(EventType::kRejected, manager_.rules().connection.rejected, &answer);
      return;
    case mpa::ReplyVerdict::kTerminate:
      warn(core::describe(code));
      send_terminate(engine_, std::move(stream_), code, attempt_.request.crc || reply.crc,
                     reply.markers, manager_.settings().close_timeout_ms * core::kMillisecond);
      finish_with(EventType::kConnectError, -EPROTO);
      return;
    case mpa::ReplyVerdict::kRevision1:
      if (fall_back()) return;
      [[fallthrough]];
    case mpa::ReplyVerdict::kMalformed:
      warn("the peer's MPA Reply does not fit our Request");
      finish_with(EventType::kConnectError, -EPROTO);
      return;
  }
}

void Initiator::accepted(const mpa::Agreement& agreement, core::Bytes leftover, ConnParam& answer) {
  if (manager_.rules().mover == Mover::kProgram) return tell_answer(agreement, leftover, answer);
  if (disconnecting_) order_again(kDisconnect);
  const int error = Link::establish(*this, manager_, engine_, std::move(stream_), agreement,
                                    leftover, holder_, param_.qp_num, answer);
  if (error == 0) return finish();
  if (error == EINVAL) {
    const std::lock_guard hold(manager_.lock());
    if (owner != nullptr)
      refuse_queue_pair(*owner, "rdma_connect", param_.qp_num,
                        manager_.queue_pairs().exists(param_.qp_num));
  }
  send_local_error(agreement);
  finish_with(EventType::kConnectError, -error);
}

// RFC 6581 9.3: a local error after the peer has entered RDMA mode.
void Initiator::send_local_error(const mpa::Agreement& agreement) {
  send_terminate(engine_, std::move(stream_), core::TermCode::kMpaLocalCatastrophic, agreement.crc,
                 agreement.tx_markers, manager_.settings().close_timeout_ms * core::kMillisecond);
}

// There is no time limit for the program: a peer that does not want to wait closes.
void Initiator::tell_answer(const mpa::Agreement& agreement, core::Bytes leftover,
                            ConnParam& answer) {
  engine_.disarm(deadline_);
  answered_ = true;
  agreement_ = agreement;
  if (!leftover.empty()) keep(leftover);
  // The values with which the peer's program has accepted, as in a REP.
  answer.responder_resources = static_cast<uint8_t>(std::min<uint16_t>(agreement.used_ird, 255));
  answer.initiator_depth = static_cast<uint8_t>(std::min<uint16_t>(agreement.ord, 255));
  complete_offer(manager_.rules(), answer);
  std::lock_guard hold(manager_.lock());
  if (owner == nullptr) return;
  owner->state = IdState::kAnswered;
  owner->terms.responder_resources = answer.responder_resources;
  owner->terms.initiator_depth = answer.initiator_depth;
  manager_.push(*owner, EventType::kConnectResponse, 0, &answer);
}

// Keeps octets of a peer that does not wait for our first FPDU (siw). TCP keeps the others.
void Initiator::keep(core::Bytes octets) {
  leftover_.insert(leftover_.end(), octets.begin(), octets.end());
  stream_->pause_receive();
}

// The peer has gone after its Reply. A program that has said that it is ready must see the end of a
// connection.
void Initiator::peer_left() {
  {
    const std::lock_guard hold(manager_.lock());
    if (owner != nullptr) {
      const bool ready = std::exchange(owner->state, IdState::kEnded) == IdState::kConnected;
      if (ready)
        manager_.push(*owner, EventType::kDisconnected, 0);
      else
        manager_.push(*owner, EventType::kRejected, manager_.rules().connection.closed);
    }
  }
  finish();
}

// For the program the connection exists already, so a failure is reported as DISCONNECTED.
void Initiator::establish(bool disconnect) {
  if (!leftover_.empty()) stream_->resume_receive();
  if (disconnect) order_again(kDisconnect);
  const int error = Link::establish(*this, manager_, engine_, std::move(stream_), agreement_,
                                    leftover_, holder_, param_.qp_num, {});
  if (error == 0) return finish();
  send_local_error(agreement_);
  finish_with(EventType::kDisconnected, 0);
}

}  // namespace uiw::cm
