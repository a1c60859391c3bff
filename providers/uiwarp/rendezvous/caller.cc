// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/caller.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/log.h"
#include "core/raw_sys.h"
#include "core/settings.h"
#include "rendezvous/wishes.h"
#include "transport/addresses.h"
#include "transport/socket_options.h"

namespace uiw::rendezvous {
namespace {

// Between two attempts. Both ends change state within a round trip of each other, as a rule.
constexpr core::Nanoseconds kFirstPause = 1 * core::kMillisecond,
                            kLongestPause = 250 * core::kMillisecond;

constexpr char kNoAnswer[] = "no answer, the host is down or a firewall drops TCP";
constexpr char kNotReady[] = "the program is there, its queue pair is not in RTR";
constexpr char kSentOff[] = "who listens there does not expect this queue pair";
constexpr char kStranger[] = "who listens there is no uiwarp, or not the peer";

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

Caller::Caller(engine::Engine& engine, const Greeting& greeting, unsigned ifindex, uint16_t ird,
               Answered& answered)
    : engine_(engine),
      greeting_(greeting),
      ifindex_(ifindex),
      ird_(ird),
      answered_(answered),
      pause_(kFirstPause),
      trouble_(kNoAnswer) {}

Caller::~Caller() {
  engine_.disarm(*this);
}

void Caller::dial() {
  // From the address that is our GID: the peer expects us from there.
  const sockaddr_storage source = address_of(greeting_.from.gid, 0, ifindex_);
  const sockaddr_storage peer =
      address_of(greeting_.to.gid, port_of(greeting_.to.qp_num), ifindex_);
  core::Result<int> fd = transport::open_connect_socket(source, -1);
  if (fd) {
    connector_ = transport::Connector::start(
        engine_, *fd,
        transport::Connector::begin(*fd, peer, transport::is_local_peer(peer, source)),
        core::settings().connect_timeout_ms * core::kMillisecond, *this);
    if (connector_) return;
    core::sys::close(*fd);
  }
  call_again_after(describe(fd ? ENOMEM : fd.error()));
}

void Caller::on_connect_failed(int error) {
  core::log(core::LogLevel::kDebug, "QP %u cannot reach QP %u yet: errno %d", greeting_.from.qp_num,
            greeting_.to.qp_num, error);
  call_again_after(describe(error));
}

void Caller::on_connected(int fd) {
  stream_ = transport::TcpStream::adopt(engine_, fd, transport::TcpStream::Origin::kOurs);
  if (!stream_) {
    core::sys::close(fd);
    call_again_after(describe(ENOMEM));
    return;
  }
  trouble_ = kNotReady;
  wishes_ = wishes(stream_->peer_is_local(), ird_);
  request_ = mpa::make_request(wishes_);
  request_.private_size = kGreetingSize;
  encode(request_.private_data, greeting_);
  outbox_.set(request_);
  collector_ = {};
  // RFC 5044 7.1.2(10); the peer may keep us waiting until its queue pair expects us. Longer than
  // its door lets us (guest.cc), so that no answer crosses our leaving.
  engine_.arm(*this, 2 * core::settings().reply_timeout_ms * core::kMillisecond);
  stream_->set_handler(this);
  send_request();
}

void Caller::send_request() {
  const int error = outbox_.flush(*stream_);
  if (error == EAGAIN) {
    stream_->want_writable();
  } else if (error != 0) {
    call_again_after(kSentOff);
  }
}

void Caller::on_writable() {
  send_request();
}

void Caller::on_octets(core::Bytes octets) {
  mpa::StartupFrame reply;
  const mpa::ParseStatus status = collector_.feed(octets, mpa::FrameKind::kReply, reply);
  if (status == mpa::ParseStatus::kNeedMore) return;
  mpa::Agreement agreement;
  core::TermCode code{};
  // The same two names the other way round: anybody else who listens there is not whom we mean.
  if (status != mpa::ParseStatus::kComplete ||
      mpa::judge_reply(wishes_, request_, reply, agreement, code) != mpa::ReplyVerdict::kAccepted ||
      decode_greeting({reply.private_data, reply.private_size}) !=
          Greeting{greeting_.to, greeting_.from}) {
    core::log(core::LogLevel::kInfo, "TCP port %u answers, but not as QP %u would",
              unsigned{port_of(greeting_.to.qp_num)}, greeting_.to.qp_num);
    call_again_after(kStranger);
    return;
  }
  engine_.disarm(*this);
  answered_.on_answer(std::move(stream_), agreement, octets);
}

void Caller::on_end_of_stream() {
  call_again_after(kSentOff);
}

void Caller::on_error(int) {
  call_again_after(kSentOff);
}

void Caller::expire() {
  if (std::exchange(pausing_, false)) {
    dial();
  } else {
    call_again();  // no Reply
  }
}

void Caller::call_again_after(const char* trouble) {
  trouble_ = trouble;
  call_again();
}

void Caller::call_again() {
  stream_.reset();
  connector_.reset();
  pausing_ = true;
  engine_.arm(*this, pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
}

}  // namespace uiw::rendezvous
