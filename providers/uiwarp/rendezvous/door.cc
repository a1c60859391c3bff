// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/door.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "core/log.h"
#include "core/raw_sys.h"
#include "core/strangers.h"
#include "rendezvous/ports.h"
#include "transport/addresses.h"

namespace uiw::rendezvous {
namespace {

constexpr int kBacklog = 1024;

}  // namespace

const Door::Entrance* Door::find(const sockaddr_storage& address) const {
  const Entrance* entrance = entrances_.get();
  while (entrance && !transport::same_host(entrance->address, address))
    entrance = entrance->next.get();
  return entrance;
}

// A port whose queue pairs never all go sees addresses come and go: no more are kept than there are
// queue pairs to be met.
void Door::close_unused() {
  for (std::unique_ptr<Entrance>* link = &entrances_; *link;) {
    if (std::ranges::find(met_at_, link->get()) != std::end(met_at_)) {
      link = &(*link)->next;
    } else {
      *link = std::move((*link)->next);
    }
  }
}

// Not at every address: a program whose peers are on this host is not to be reached from others.
int Door::open(uint32_t qp_num, const sockaddr_storage& address, int reserved) {
  const Entrance*& met_at = met_at_[index_of(qp_num)];
  met_at = find(address);
  if (met_at) return 0;
  close_unused();
  std::unique_ptr<Entrance> entrance(new (std::nothrow) Entrance);
  if (!entrance) return ENOMEM;
  transport::share_port(reserved, true);
  core::Result<int> fd = transport::bind_tcp(address, {.reuse_address = false, .share_port = true});
  int error = fd.error();
  if (fd) {
    auto listener = transport::Listener::start(engine_, *fd, kBacklog, *this);
    error = listener.error();
    if (listener) {
      // It listens: from here the port is shared with nobody else.
      transport::share_port(*fd, false);
      entrance->address = address;
      entrance->listener = std::move(*listener);
      entrance->next = std::exchange(entrances_, nullptr);
      entrances_ = std::move(entrance);
      met_at = entrances_.get();
    } else {
      core::sys::close(*fd);
    }
  }
  transport::share_port(reserved, false);
  return error;
}

Door::~Door() {
  entrances_.reset();
  while (PendingPeer* peer = pending_.first()) leave(*peer);
}

void Door::on_accept(int fd, const sockaddr_storage&) {
  transport::StreamPtr stream =
      transport::TcpStream::adopt(engine_, fd, transport::TcpStream::Origin::kOurs);
  if (!stream) {
    core::sys::close(fd);
    return;
  }
  if (all_pending_.size() >= core::number_of_descriptors(core::kPendingPeers)) make_room();
  PendingPeer::receive(*this, engine_, std::move(stream));
}

// Closes the oldest in favour of the newest. A legitimate peer sends its hello at once, and
// connects again when it was closed; but not when it was closed after its challenge (caller.cc). So
// challenged ones go only when they are more than half: then somebody collects challenges.
void Door::make_room() {
  const auto oldest = [&](bool challenged) {
    PendingPeer* peer = all_pending_.first();
    while (peer && (peer->step() == PendingPeer::Step::kChallenged) != challenged)
      peer = AllPendingPeers::next(*peer);
    return peer;
  };
  size_t challenged = 0;
  for (PendingPeer* peer = all_pending_.first(); peer; peer = AllPendingPeers::next(*peer))
    challenged += peer->step() == PendingPeer::Step::kChallenged;
  PendingPeer& leaving = *oldest(challenged > all_pending_.size() / 2);
  leaving.door().send_off(leaving, "makes room for others");
}

void Door::on_accept_error(int error) {
  core::log(core::LogLevel::kError, "queue pairs cannot be reached on TCP port %u any more: %s",
            unsigned{port_}, std::strerror(error));
}

void Door::expect(uint32_t qp_num, Resident& resident) {
  residents_[index_of(qp_num)] = &resident;
  for (PendingPeer* peer = pending_.first(); peer;) {
    PendingPeer& asking = *std::exchange(peer, PendingPeerList::next(*peer));
    if (asking.step() == PendingPeer::Step::kWaiting && asking.hello().to.qp_num == qp_num)
      introduce(asking);
  }
}

// Where it was met stays open for the next one there.
void Door::dismiss(uint32_t qp_num) {
  residents_[index_of(qp_num)] = nullptr;
  met_at_[index_of(qp_num)] = nullptr;
  // Their challenges are void: another queue pair may expect a peer at this number next.
  for (PendingPeer* peer = pending_.first(); peer;) {
    PendingPeer& challenged = *std::exchange(peer, PendingPeerList::next(*peer));
    if (challenged.step() == PendingPeer::Step::kChallenged &&
        challenged.hello().to.qp_num == qp_num)
      leave(challenged);
  }
}

void Door::enter(PendingPeer& peer) {
  pending_.append(peer);
  all_pending_.append(peer);
}

void Door::introduce(PendingPeer& peer) {
  const uint32_t qp_num = peer.hello().to.qp_num;
  if (port_of(qp_num) != port_ || !number_in_use(qp_num)) {
    send_off(peer, "asks for a queue pair that is not here");
    return;
  }
  Resident* resident = residents_[index_of(qp_num)];
  if (!resident) return;  // it waits: the queue pair does not expect it yet
  if (!resident->welcome(peer)) leave(peer);
}

void Door::judge(PendingPeer& peer) {
  // It is the one that challenged this peer: see dismiss().
  residents_[index_of(peer.hello().to.qp_num)]->judge(peer);
  leave(peer);
}

void Door::send_off(PendingPeer& peer, const char* why) {
  core::log(core::LogLevel::kInfo, "TCP port %u of queue pairs: who came from %s %s",
            unsigned{port_}, text_of(gid_of(peer.stream().peer_address())).text, why);
  leave(peer);
}

void Door::leave(PendingPeer& peer) {
  pending_.remove(peer);
  all_pending_.remove(peer);
  delete &peer;
}

}  // namespace uiw::rendezvous
