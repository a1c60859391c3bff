// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/qpn_listener.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "core/descriptor_shares.h"
#include "core/gid.h"
#include "core/log.h"
#include "core/raw_sys.h"
#include "device/gid_table.h"
#include "rendezvous/ports.h"
#include "transport/addresses.h"
#include "transport/close_connection.h"

namespace uiw::rendezvous {
namespace {

constexpr int kBacklog = 1024;

}  // namespace

const QpnListener::Socket* QpnListener::find(const sockaddr_storage& address) const {
  const Socket* socket = sockets_.get();
  while (socket && !transport::same_host(socket->address, address)) socket = socket->next.get();
  return socket;
}

// If a port always has queue pairs, many addresses may come and go: close the sockets at which no
// queue pair expects its peer.
void QpnListener::close_unused() {
  for (std::unique_ptr<Socket>* link = &sockets_; *link;) {
    if (std::ranges::find(socket_of_, link->get()) != std::end(socket_of_)) {
      link = &(*link)->next;
    } else {
      *link = std::move((*link)->next);
    }
  }
}

// Does not listen at every address: when the peers of a program are on this host, other hosts must
// not reach it.
int QpnListener::listen(uint32_t qp_num, const sockaddr_storage& address, int reserved) {
  const Socket*& own = socket_of_[index_of(qp_num)];
  own = find(address);
  if (own) return 0;
  close_unused();
  std::unique_ptr<Socket> socket(new (std::nothrow) Socket);
  if (!socket) return ENOMEM;
  transport::share_port(reserved, true);
  // SO_REUSEADDR is needed because of connections in TIME_WAIT that were accepted here before;
  // those accepted from now on have it, too. It lets nobody bind beside a socket that listens.
  core::Result<int> fd = transport::bind_tcp(address, {.reuse_address = true, .share_port = true});
  int error = fd.error();
  if (fd) {
    auto listener = transport::Listener::start(engine_, *fd, kBacklog, *this);
    error = listener.error();
    if (listener) {
      // It listens now: no other socket may share the port from here on.
      transport::share_port(*fd, false);
      socket->address = address;
      socket->listener = std::move(*listener);
      socket->next = std::exchange(sockets_, nullptr);
      sockets_ = std::move(socket);
      own = sockets_.get();
    } else {
      core::sys::close(*fd);
    }
  }
  transport::share_port(reserved, false);
  return error;
}

QpnListener::~QpnListener() {
  sockets_.reset();
  while (PendingPeer* peer = pending_.first()) remove(*peer);
}

void QpnListener::on_accept(int fd, const sockaddr_storage&) {
  transport::StreamPtr stream =
      transport::TcpStream::adopt(engine_, fd, transport::TcpStream::Origin::kOurs);
  if (!stream) {
    transport::close_connection(fd);
    return;
  }
  if (all_pending_.size() >= core::number_of_descriptors(core::kPendingPeers)) make_room();
  PendingPeer::receive(*this, engine_, std::move(stream));
}

// Closes an old pending peer to make room for a new one. A legitimate peer sends its hello at once,
// and connects again when it was closed, but not after it was challenged (peer_connector.cc). So
// challenged ones are closed only when they are more than half: then an attacker collects
// challenges.
void QpnListener::make_room() {
  const auto oldest = [&](bool challenged) {
    PendingPeer* peer = all_pending_.first();
    while (peer && (peer->step() == PendingPeer::Step::kChallenged) != challenged)
      peer = AllPendingPeers::next(*peer);
    return peer;
  };
  size_t challenged = 0;
  for (PendingPeer* peer = all_pending_.first(); peer; peer = AllPendingPeers::next(*peer))
    challenged += peer->step() == PendingPeer::Step::kChallenged;
  PendingPeer& closing = *oldest(challenged > all_pending_.size() / 2);
  closing.listener().refuse(closing,
                            "had not said in time which queue pair it wants, and others wait");
}

void QpnListener::on_accept_error(int error) {
  core::log(core::LogLevel::kError, "queue pairs cannot be reached on TCP port %u any more: %s",
            unsigned{port_}, std::strerror(error));
}

void QpnListener::expect(uint32_t qp_num, PendingPeerHandler& handler) {
  handlers_[index_of(qp_num)] = &handler;
  for (PendingPeer* peer = pending_.first(); peer;) {
    PendingPeer& asking = *std::exchange(peer, PendingPeerList::next(*peer));
    if (asking.step() == PendingPeer::Step::kWaiting && asking.hello().to.qp_num == qp_num)
      hello_received(asking);
  }
}

// The socket stays open for the next queue pair at this address.
void QpnListener::stop_expecting(uint32_t qp_num) {
  handlers_[index_of(qp_num)] = nullptr;
  socket_of_[index_of(qp_num)] = nullptr;
  // Remove peers that this queue pair has challenged: the next queue pair with this number may
  // expect another peer.
  for (PendingPeer* peer = pending_.first(); peer;) {
    PendingPeer& challenged = *std::exchange(peer, PendingPeerList::next(*peer));
    if (challenged.step() == PendingPeer::Step::kChallenged &&
        challenged.hello().to.qp_num == qp_num)
      remove(challenged);
  }
}

void QpnListener::add(PendingPeer& peer) {
  pending_.append(peer);
  all_pending_.append(peer);
}

void QpnListener::hello_received(PendingPeer& peer) {
  const uint32_t qp_num = peer.hello().to.qp_num;
  if (port_of(qp_num) != port_ || !number_in_use(qp_num)) {
    refuse(peer, "asks for a queue pair that is not here");
    return;
  }
  PendingPeerHandler* handler = handlers_[index_of(qp_num)];
  if (!handler) return;  // it waits, as the queue pair does not expect it yet
  if (!handler->on_hello(peer)) remove(peer);
}

void QpnListener::proof_received(PendingPeer& peer) {
  // This handler is the one that challenged the peer: see stop_expecting().
  handlers_[index_of(peer.hello().to.qp_num)]->on_proof(peer);
  remove(peer);
}

void QpnListener::refuse(PendingPeer& peer, const char* why) {
  core::log(core::LogLevel::kInfo,
            "TCP port %u of queue pairs: a connection from %s is closed, it %s", unsigned{port_},
            core::text_of(core::gid_of(peer.stream().peer_address())).text, why);
  remove(peer);
}

void QpnListener::remove(PendingPeer& peer) {
  pending_.remove(peer);
  all_pending_.remove(peer);
  delete &peer;
}

}  // namespace uiw::rendezvous
