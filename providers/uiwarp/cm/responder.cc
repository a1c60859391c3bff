// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/responder.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "cm/acceptor.h"
#include "cm/link.h"
#include "cm/manager.h"
#include "cm/startup_closer.h"
#include "core/gid.h"
#include "core/instrumented.h"
#include "core/log.h"
#include "transport/addresses.h"
#include "transport/close_connection.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::cm {
namespace {

// How long a request that an instrument wants unanswered is kept, in reply time-outs: peers usually
// have the same time-out.
constexpr core::Nanoseconds kIgnoredTimes = 2;

}  // namespace

void Responder::log_stage(const char* what) const {
  if (!core::log_enabled(core::LogLevel::kDebug) || stream_ == nullptr) return;
  core::log(core::LogLevel::kDebug, "connection from %s to %s: %s",
            core::text_of(transport::without_v4_mapping(stream_->peer_address())).text,
            core::text_of(transport::without_v4_mapping(stream_->local_address())).text, what);
}

Responder::Responder(Acceptor& acceptor, Manager& manager, engine::Engine& engine, StreamPtr stream)
    : Endpoint(manager, engine),
      acceptor_(&acceptor),
      came_at_(engine.now()),
      stream_(std::move(stream)) {
  acceptor.join(*this);
}

Responder::~Responder() {
  leave_acceptor();
}

void Responder::leave_acceptor() {
  if (acceptor_ != nullptr) std::exchange(acceptor_, nullptr)->leave(*this);
}

void Responder::start(Acceptor& acceptor, Manager& manager, engine::Engine& engine, int fd,
                      const device::Device* device) {
  StreamPtr stream = transport::TcpStream::adopt(engine, fd, transport::TcpStream::Origin::kOurs);
  if (stream == nullptr) {
    transport::close_connection(fd);
    return;
  }
  // A wildcard listener accepts at every address of the host, but only addresses of a device are
  // ours.
  if (device == nullptr) {
    const sockaddr_storage local = transport::without_v4_mapping(stream->local_address());
    device = device::find_by_address(local);
    if (device == nullptr) {  // the address may be too new to be known
      device::refresh();
      device = device::find_by_address(local);
    }
  }
  if (device == nullptr) return;
  auto* responder = new (std::nothrow) Responder(acceptor, manager, engine, std::move(stream));
  if (responder == nullptr) return;
  responder->device_ = device;
  responder->log_stage("TCP has accepted it, the MPA Request is to come");
  // RFC 5044 7.1.2(10): one time limit for the whole Request; single bytes do not extend it.
  engine.arm(responder->deadline_, manager.settings().request_timeout_ms * core::kMillisecond);
  // On loopback the Request has usually arrived already, and trying costs less than an operation of
  // the engine. An end of the stream is still reported afterwards.
  uint8_t octets[mpa::kMaxStartupFrame + 1];
  const long got = responder->stream_->receive_now(octets, sizeof octets);
  responder->stream_->set_handler(responder);
  if (got > 0) responder->on_octets({octets, static_cast<size_t>(got)});
}

void Responder::close() {
  leave_acceptor();
  finish();
}

void Responder::on_octets(core::Bytes octets) {
  if (phase_ != Phase::kReading) {
    // RFC 5044 7.1.2(2): the initiator has to wait for the Reply.
    lose_peer();
    return;
  }
  const mpa::ParseStatus status = collector_.feed(octets, mpa::FrameKind::kRequest, request_);
  if (status == mpa::ParseStatus::kNeedMore) return;
  if (status != mpa::ParseStatus::kComplete) {
    // RFC 5044 8(4): an invalid start-up frame is reported here, not to the peer.
    core::log(core::LogLevel::kInfo, "incoming connection closed: %s", mpa::describe(status));
    close();
    return;
  }
  if (!octets.empty()) {
    core::log(core::LogLevel::kInfo,
              "incoming connection closed: octets behind the MPA Request before the Reply");
    close();
    return;
  }
  engine_.disarm(deadline_);
  log_stage(request_.revision >= 2 ? "an MPA Request of revision 2 came"
                                   : "an MPA Request of revision 1 came");
  phase_ = Phase::kComplete;
  acceptor_->request_came();
}

ConnParam Responder::offered_connection() const {
  const mpa::Wishes limits = wishes_for(manager_.settings(), stream_->peer_is_local(), {});
  const mpa::PeerDepths depths = mpa::offered_depths(request_, limits);
  ConnParam offered;
  copy_private_data(offered, {request_.private_data, request_.private_size});
  offered.responder_resources =
      static_cast<uint8_t>(std::min<uint16_t>(depths.responder_resources, 255));
  offered.initiator_depth = static_cast<uint8_t>(std::min<uint16_t>(depths.initiator_depth, 255));
  complete_offer(manager_.rules(), offered);
  return offered;
}

void Responder::offer() {
  ConnParam offered;
  if (const auto private_data = parse_resolution_request(request_)) {
    service_ = Service::kDatagrams;
    copy_private_data(offered, *private_data);
  } else {
    offered = offered_connection();
  }
  if (acceptor_->service() != service_) {
    leave_acceptor();
    phase_ = Phase::kOffered;
    return refuse_service();
  }
  const sockaddr_storage local = transport::without_v4_mapping(stream_->local_address());
  const sockaddr_storage peer = transport::without_v4_mapping(stream_->peer_address());
  if (meets(local, peer)) return;
  Id* child = nullptr;
  {
    std::lock_guard hold(manager_.lock());
    if (Id* listener = acceptor_->owner) {
      child = manager_.push_request(*listener, local, peer, *device_, offered);
      if (child != nullptr) {
        child->endpoint = this;
        owner = child;
      }
    }
  }
  leave_acceptor();
  phase_ = Phase::kOffered;
  if (child == nullptr) reject({});  // the application does not keep up, or no longer listens
}

// Whether an instrument hides the request from the application. May free this object.
bool Responder::meets(const sockaddr_storage& local, const sockaddr_storage& peer) {
  const uiwarp_verbs* const asked = core::instrumented.load(std::memory_order_acquire);
  const uiwarp_connect_fate fate =
      asked ? asked->cm_accepting(&local, &peer) : UIWARP_CONNECT_GOES_ON;
  if (fate == UIWARP_CONNECT_GOES_ON) return false;
  leave_acceptor();
  if (fate == UIWARP_CONNECT_REJECTED) {
    phase_ = Phase::kOffered;
    reject({});
  } else {
    phase_ = Phase::kIgnored;
    // If the peer waits longer, closing the socket tells it.
    engine_.arm(deadline_,
                kIgnoredTimes * manager_.settings().reply_timeout_ms * core::kMillisecond);
  }
  return true;
}

// The peer has gone. If the application has the request, accept() will fail, or its order is not
// carried out yet.
void Responder::lose_peer() {
  log_stage("the peer has gone, or broken the rules, before it stood");
  if (phase_ == Phase::kReading || phase_ == Phase::kComplete || phase_ == Phase::kIgnored) {
    close();
    return;
  }
  stream_.reset();
  if (std::exchange(phase_, Phase::kGone) == Phase::kReplying) {
    end_accepted(-ECONNRESET);
    return;
  }
  std::lock_guard hold(manager_.lock());
  peer_gone_ = true;
}

void Responder::on_end_of_stream() {
  lose_peer();
}
void Responder::on_error(int) {
  lose_peer();
}

size_t Responder::private_data_room() const {
  return service_ == Service::kConnection && request_.enhanced ? kMaxEnhancedPrivateData
                                                               : sizeof ConnParam::private_data;
}

int Responder::accept(const ConnParam& param) {
  if (service_ == Service::kConnection) {
    if (peer_gone_) return ECONNRESET;
    holder_ = holder_of(manager_, param.qp_num);
    if (holder_ == Holder::kQueuePair) {
      if (const int error = manager_.queue_pairs().claim(param.qp_num)) return error;
    }
  }
  accepted_ = true;
  param_ = param;
  order(kAccept);
  return 0;
}

void Responder::carry_out(uint32_t orders) {
  if (orders & kDisconnect) disconnecting_ = true;
  if (orders & kAccept) answer();
}

void Responder::answer() {
  if (service_ == Service::kDatagrams) return resolve();
  if (phase_ == Phase::kGone) {
    end_accepted(-ECONNRESET);
    return;
  }
  mpa::Wishes wishes = wishes_for(manager_.settings(), stream_->peer_is_local(), param_);
  wishes.keeps_ird = manager_.rules().mover == Mover::kProgram;
  mpa::StartupFrame reply = mpa::make_reply(wishes, request_, agreement_);
  set_private_data(reply, {param_.private_data, param_.private_data_len});
  agreement_.request = mpa::head_of(request_);
  agreement_.reply = mpa::head_of(reply);
  outbox_.set(reply);
  log_stage("the program accepts it, the MPA Reply is sent");
  phase_ = Phase::kReplying;
  go_on_replying();
}

// The application is not told whether the peer has gone, nor whether it got the answer.
void Responder::resolve() {
  const ResolutionAnswer answer{ResolutionStatus::kSuccess, param_.qp_num, kDatagramQkey};
  send_and_finish(make_resolution_answer(answer, {param_.private_data, param_.private_data_len}));
}

void Responder::go_on_replying() {
  const int error = outbox_.flush(*stream_);
  if (error == EAGAIN) {
    // RFC 5044 7.1.2(10): no part of start-up may last forever.
    engine_.arm(deadline_, manager_.settings().request_timeout_ms * core::kMillisecond);
    stream_->want_writable();
  } else if (error != 0) {
    lose_peer();
  } else {
    enter_rdma_mode();
  }
}

void Responder::on_writable() {
  go_on_replying();
}

// RFC 5044 7.1: the queue pair must be ready for the first FPDU. Nothing was read since the Reply
// was sent, because only this thread reads.
void Responder::enter_rdma_mode() {
  if (disconnecting_) order_again(kDisconnect);
  const int error = Link::establish(*this, manager_, engine_, std::move(stream_), agreement_, {},
                                    holder_, param_.qp_num, ConnParam{});
  if (error == 0) {
    accepted_ = false;
    finish();
    return;
  }
  // RFC 6581 9.3: either end reports a local error.
  send_terminate(engine_, std::move(stream_), core::TermCode::kMpaLocalCatastrophic, agreement_.crc,
                 agreement_.tx_markers, manager_.settings().close_timeout_ms * core::kMillisecond);
  phase_ = Phase::kGone;
  end_accepted(-error);
}

// The queue pair is flushed before the event; only requests that a thread posts at this moment may
// be flushed after it.
void Responder::end_accepted(int status) {
  let_go_of_queue_pair();
  finish_with(EventType::kConnectError, status);
}

void Responder::let_go_of_queue_pair() {
  if (std::exchange(accepted_, false) && holder_ == Holder::kQueuePair)
    manager_.queue_pairs().abandon(param_.qp_num);
}

void Responder::reject(core::Bytes private_data) {
  if (service_ == Service::kDatagrams)
    return send_and_finish(make_resolution_answer({ResolutionStatus::kRejected}, private_data));
  mpa::StartupFrame reply = mpa::make_reject(
      wishes_for(manager_.settings(), stream_ != nullptr && stream_->peer_is_local(), {}),
      request_);
  set_private_data(reply, private_data);
  send_and_finish(reply);
}

// A request for a connection gets a Reply of its own form, whose private data also says "not
// supported".
void Responder::refuse_service() {
  mpa::StartupFrame answer = make_resolution_answer({ResolutionStatus::kNotSupported}, {});
  if (service_ == Service::kConnection) {
    mpa::StartupFrame reply =
        mpa::make_reject(wishes_for(manager_.settings(), stream_->peer_is_local(), {}), request_);
    set_private_data(reply, {answer.private_data, answer.private_size});
    answer = reply;
  }
  send_and_finish(answer);
}

void Responder::send_and_finish(const mpa::StartupFrame& reply) {
  log_stage(service_ == Service::kDatagrams ? "answered, there is to be no connection"
                                            : "rejected");
  if (stream_ != nullptr)
    send_reject(engine_, std::move(stream_), reply,
                manager_.settings().close_timeout_ms * core::kMillisecond);
  finish();
}

// For rdma_destroy_id(). A request that was accepted is answered and then disconnected, even if the
// engine has not carried out the order yet.
void Responder::drop() {
  if (phase_ != Phase::kOffered) {
    let_go_of_queue_pair();
    finish();
  } else if (accepted_) {
    answer();
  } else {
    reject({});
  }
}

}  // namespace uiw::cm
