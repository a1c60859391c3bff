// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Making and ending connections.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "cm/acceptor.h"
#include "cm/initiator.h"
#include "cm/manager.h"
#include "cm/refusals.h"
#include "cm/responder.h"
#include "core/gid.h"
#include "core/instrumented.h"
#include "core/log.h"
#include "transport/addresses.h"
#include "transport/close_connection.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::cm {
namespace {

constexpr uint32_t kMaxBacklog = 1024;  // as the kernel's rdma_ucm.max_backlog

// The fate that instruments choose for the attempt.
uiwarp_connect_fate fate_of(const sockaddr_storage& destination, const ConnParam& param) {
  const uiwarp_verbs* const asked = core::instrumented.load(std::memory_order_acquire);
  return asked ? asked->cm_connecting(transport::port_of(destination), param.qp_num)
               : UIWARP_CONNECT_GOES_ON;
}

}  // namespace

int Manager::connect(Channel& channel, uint32_t number, const ConnParam& param) {
  std::unique_lock hold(lock_);
  int error;
  Id* id = find(channel, number, error);
  if (id == nullptr) return error;
  const Service service = id->service;
  if (service == Service::kNone) return refuse_service(*id, "rdma_connect");
  size_t room = rules_.of(service).connect_room;
  if (service == Service::kConnection && settings_.mpa_revision >= 2)
    room = std::min<size_t>(room, kMaxEnhancedPrivateData);
  if (param.private_data_len > room)
    return refuse_private_data(*id, "rdma_connect", param.private_data_len, room);
  if (id->state != IdState::kRouteResolved)
    return refuse_by_state(*id, "rdma_connect", "once, after RDMA_CM_EVENT_ROUTE_RESOLVED");
  // Like Linux's iw_cm_connect(), looks it up before the peer is contacted.
  if (service == Service::kConnection && rules_.mover == Mover::kConnection &&
      !queue_pairs_.exists(param.qp_num))
    return refuse_queue_pair(*id, "rdma_connect", param.qp_num, false);
  if ((error = acquire_engine()) != 0) return error;
  const sockaddr_storage source = id->source, destination = id->destination;
  const int tos = id->tos, bound_fd = id->bound_socket.release();
  // Allows the next connection from this port while TCP still keeps this one.
  if (bound_fd >= 0) transport::let_reuse_address(bound_fd, true);
  const bool explicit_port = bound_fd >= 0 || transport::port_of(source) != 0;
  const uint64_t serial = id->serial, turn = ++last_turn_;
  const auto how = refused_attempts_.any_to(destination) ? ConnectAttempt::Begin::kAsRefused
                                                         : ConnectAttempt::Begin::kNow;
  id->state = IdState::kConnecting;
  id->terms = terms_of(param);

  // On loopback the peer's side of the handshake runs inside the call: the engine and threads that
  // want the lock must not wait for that.
  hold.unlock();
  const uiwarp_connect_fate fate = fate_of(destination, param);
  ConnectAttempt attempt =
      fate == UIWARP_CONNECT_GOES_ON
          ? ConnectAttempt::begin(settings_, bound_fd, source, destination, tos, service, param,
                                  static_cast<uint8_t>(settings_.mpa_revision), how)
          : ConnectAttempt::meet(fate, bound_fd);
  const bool begun = attempt.fd >= 0 || attempt.fate != UIWARP_CONNECT_GOES_ON;
  hold.lock();

  id = find_again(number, serial);
  Initiator* initiator = nullptr;
  if (begun && id != nullptr) {
    initiator = new (std::nothrow) Initiator(*this, *engine_, std::move(attempt), turn, source,
                                             destination, explicit_port, tos, service, param);
  }
  if (initiator == nullptr) {
    if (id != nullptr) id->state = IdState::kRouteResolved;
    if (attempt.fd >= 0) transport::close_connection(attempt.fd);
    if (id == nullptr) return channel.open ? ENOENT : EBADF;
    return begun ? ENOMEM : attempt.error;
  }
  id->endpoint = initiator;
  initiator->owner = id;
  initiator->order(Endpoint::kStart);
  return 0;
}

int Manager::listen(Channel& channel, uint32_t number, uint32_t backlog) {
  std::lock_guard hold(lock_);
  int error;
  Id* id = find(channel, number, error);
  if (id == nullptr) return error;
  if (id->service == Service::kNone) return refuse_service(*id, "rdma_listen");
  if (id->state == IdState::kIdle) {
    sockaddr_storage any{};
    any.ss_family = AF_INET;
    if ((error = bind_locked(*id, any)) != 0) return error;
  }
  if (id->state != IdState::kBound)
    return refuse_by_state(*id, "rdma_listen", "once, after rdma_bind_addr");
  // As with the kernel's rdma_cm, a listening id does not share its port.
  if (is_taken(*id, id->source, false))
    return refuse_address(*id, "rdma_listen", id->source, EADDRINUSE);
  if (!id->bound_socket.is_open() && (error = hold_port(*id, id->source)) != 0)
    return refuse_address(*id, "rdma_listen", id->source, error);
  if (transport::is_loopback(id->source)) {
    id->device = device::find_by_address(id->source);
    if (id->device == nullptr) return refuse_address(*id, "rdma_listen", id->source, ENODEV);
  }
  if ((error = acquire_engine()) != 0) return error;
  // Done here, not on the engine, so that EADDRINUSE and EMFILE are returned to the caller. The
  // engine empties TCP's own queue at once: the application's backlog counts requests, not
  // connections.
  core::Result<std::unique_ptr<transport::Listener>> listener =
      transport::Listener::open(id->bound_socket.get(), Acceptor::kTcpQueue);
  if (!listener) {
    transport::let_reuse_address(id->bound_socket.get(), id->asked_reuse);
    return refuse_address(*id, "rdma_listen", id->source, listener.error());
  }
  id->bound_socket.release();  // the listener owns it
  core::log(core::LogLevel::kDebug, "rdma_cm listens at %s", core::text_of(id->source).text);
  admission_.measure();
  auto* acceptor =
      new (std::nothrow) Acceptor(*this, *engine_, std::move(*listener), id->service, id->device);
  if (acceptor == nullptr) return ENOMEM;
  id->backlog = backlog == 0 || backlog > kMaxBacklog ? kMaxBacklog : backlog;
  id->state = IdState::kListening;
  id->endpoint = acceptor;
  acceptor->owner = id;
  acceptor->order(Endpoint::kStart);
  return 0;
}

int Manager::accept(Channel& channel, uint32_t number, uint64_t uid, const ConnParam& param) {
  if (uid == 0) return EINVAL;
  std::unique_lock hold(lock_);
  int error;
  Id* id = find(channel, number, error);
  if (id == nullptr) return error;
  if (id->state != IdState::kRequested)
    return refuse_by_state(*id, "rdma_accept",
                           "once, with the id of RDMA_CM_EVENT_CONNECT_REQUEST, not the listener");
  if ((error = answer_request(*id, param)) != 0) {
    // Like Linux's rdma_accept(), rejects: the peer must not wait for an application that probably
    // gives up now.
    reject_request(*id, hold, {});
    return error;
  }
  // For datagrams the answer is all.
  id->state = id->service == Service::kDatagrams ? IdState::kConnected : IdState::kAccepting;
  id->uid = uid;
  id->terms = terms_of(param);
  return 0;
}

// The engine sends the Reply, possibly after many others. The caller does not wait for that.
int Manager::answer_request(Id& id, const ConnParam& param) {
  auto* const responder = static_cast<Responder*>(id.endpoint);
  const size_t room =
      std::min<size_t>(rules_.of(id.service).accept_room, responder->private_data_room());
  if (param.private_data_len > room)
    return refuse_private_data(id, "rdma_accept", param.private_data_len, room);
  const int error = responder->accept(param);
  if (error == EINVAL)
    refuse_queue_pair(id, "rdma_accept", param.qp_num, queue_pairs_.exists(param.qp_num));
  return error;
}

int Manager::establish(Channel& channel, uint32_t number) {
  std::lock_guard hold(lock_);
  int error;
  Id* id = find(channel, number, error);
  if (id == nullptr) return error;
  if (rules_.mover == Mover::kConnection) return 0;
  if (id->state != IdState::kAnswered)
    return refuse_by_state(*id, "rdma_establish", "once, after RDMA_CM_EVENT_CONNECT_RESPONSE");
  id->state = IdState::kConnected;
  id->endpoint->order(Endpoint::kEstablish);
  return 0;
}

int Manager::reject(Channel& channel, uint32_t number, core::Bytes private_data) {
  std::unique_lock hold(lock_);
  int error;
  Id* id = find(channel, number, error);
  if (id == nullptr) return error;
  const size_t room = rules_.of(id->service).reject_room;
  if (private_data.size() > room)
    return refuse_private_data(*id, "rdma_reject", private_data.size(), room);
  if (id->state == IdState::kAnswered) {
    // MPA has no message for this: the connection is just closed.
    id->state = IdState::kEnded;
    id->endpoint->order(Endpoint::kDisconnect);
    return 0;
  }
  if (id->state != IdState::kRequested)
    return refuse_by_state(*id, "rdma_reject",
                           "once, with the id of RDMA_CM_EVENT_CONNECT_REQUEST, instead of "
                           "rdma_accept");
  return reject_request(*id, hold, private_data);
}

// Rejects on the engine thread and waits: a program may exit right after it has rejected, and the
// peer must have been told by then.
int Manager::reject_request(Id& id, std::unique_lock<std::mutex>& hold, core::Bytes private_data) {
  core::Result<engine::EngineRef> engine = engine::EngineRef::acquire();
  if (!engine) return engine.error();
  id.state = IdState::kEnded;
  const uint32_t number = id.number;
  const uint64_t serial = id.serial;
  hold.unlock();
  int result = ENOENT;
  (*engine)->run_sync([&] {
    Responder* responder = nullptr;
    {
      std::lock_guard hold_again(lock_);
      Id* rejected = find_again(number, serial);
      if (rejected == nullptr) return;
      responder = static_cast<Responder*>(rejected->endpoint);
    }
    // It stays valid without the lock: only this thread frees endpoints.
    responder->reject(private_data);
    result = 0;
  });
  return result;
}

int Manager::disconnect(Channel& channel, uint32_t number) {
  std::lock_guard hold(lock_);
  int error;
  Id* id = find(channel, number, error);
  if (id == nullptr) return error;
  switch (id->state) {
    case IdState::kAccepting:
    case IdState::kConnected:
    // Perhaps ended by the peer: then TIMEWAIT_EXIT follows (cm/link.cc). If there is nothing to
    // end any more, this is no error, as in Linux's iw_cm_disconnect(): programs answer
    // DISCONNECTED with this call. One with a synchronous id then waits for an event that does not
    // come, there as here.
    case IdState::kEnded:
      if (id->endpoint != nullptr) id->endpoint->order(Endpoint::kDisconnect);
      return 0;
    case IdState::kRequested:  // as in iw_cm: nothing to end yet, and no error
    case IdState::kAnswered:   // as in ib_cm
      return 0;
    case IdState::kConnecting:
      if (rules_.mover == Mover::kProgram) return 0;  // as in ib_cm
      // Linux's iw_cm waits for the peer's answer and then ends the connection. Here the order
      // waits, not the caller.
      if (id->endpoint == nullptr) break;  // another thread is in rdma_connect()
      id->endpoint->order(Endpoint::kDisconnect);
      return 0;
    default:
      break;
  }
  return refuse_by_state(*id, "rdma_disconnect", "when it is connected");
}

}  // namespace uiw::cm
