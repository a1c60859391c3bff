// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/meeting.h"

#include <algorithm>
#include <cerrno>
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
  if (door_) door_->dismiss(appointment_.own.qp_num);
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
    core::Result<int> fd =
        transport::bind_tcp(address_of(appointment_.own.gid, 0, appointment_.ifindex), {});
    if (fd) own_socket_ = *fd;
    return fd.error();
  }
  if (appointment_.own > appointment_.peer) {
    caller_.reset(new (std::nothrow) Caller(engine_, {appointment_.own, appointment_.peer},
                                            appointment_.ifindex, appointment_.ird, *this));
    return caller_ ? 0 : ENOMEM;
  }
  core::Result<Door*> door = open_door(engine_, appointment_.own.qp_num);
  if (!door) return door.error();
  door_ = *door;
  return 0;
}

void Meeting::begin() {
  if (door_) door_->expect(appointment_.own.qp_num, *this);
  if (caller_) caller_->begin();
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

void Meeting::hurry(core::Nanoseconds patience) {
  step_ = patience / kSteps;
  if (step_ > 0 && !met_) engine_.arm(*this, step_);
}

void Meeting::expire() {
  if (met_) return;
  const session::PeerWanted wanted = queue_pair_.peer_wanted();
  if (wanted == session::PeerWanted::kNow && steps_waited_++ == kSteps) {
    give_up();
  } else if (wanted == session::PeerWanted::kNoMore) {
    caller_.reset();
  } else {
    engine_.arm(*this, step_);
  }
}

void Meeting::give_up() {
  const auto& [own, peer, ifindex, ird] = appointment_;
  if (door_) {
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
        unsigned{port_of(peer.qp_num)}, caller_ ? caller_->trouble() : "no TCP connection");
  }
  queue_pair_.give_up_peer();
  caller_.reset();
}

// RFC 5044 7.1.2: the responder's side.
void Meeting::welcome(Guest& guest) {
  if (met_ || guest.greeting() != Greeting{appointment_.peer, appointment_.own}) {
    core::log(core::LogLevel::kInfo, "QP %u sends QP %u at %s off: %s", appointment_.own.qp_num,
              guest.greeting().from.qp_num, text_of(guest.greeting().from.gid).text,
              met_ ? "its peer is there already" : "it was told another peer");
    return;
  }
  mpa::Agreement agreement;
  mpa::StartupFrame reply = mpa::make_reply(
      wishes(guest.stream().peer_is_local(), appointment_.ird), guest.request(), agreement);
  reply.private_size = kGreetingSize;
  encode(reply.private_data, {appointment_.own, appointment_.peer});
  startup::Outbox outbox;
  outbox.set(reply);
  // A fresh socket takes that much at once; one that does not is no loss: he calls again.
  if (outbox.flush(guest.stream()) == 0) join(guest.take_stream(), agreement, {});
}

void Meeting::on_answer(transport::StreamPtr stream, const mpa::Agreement& agreement,
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
