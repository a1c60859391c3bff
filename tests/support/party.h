// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A whole end: connection management and a queue pair over real TCP, for peers that speak by hand
// from the first octet of MPA start-up on.
#pragma once

#include "support/host.h"
#include "unit/cm/rig.h"

namespace uiw::test {

// What start-up of this end is like. Everything is asked for explicitly.
inline core::Settings party_settings(bool crc = true, uint32_t revision = 2,
                                     bool peer_to_peer = true) {
  core::Settings settings = core::settings();  // time limits
  settings.crc = crc ? core::CrcPolicy::kOn : core::CrcPolicy::kOff;
  settings.mpa_revision = revision;
  settings.mpa_fallback = false;
  settings.peer_to_peer = peer_to_peer;
  return settings;
}

class Party final : public cm::QueuePairs, private session::ConnectionObserver {
 public:
  explicit Party(const core::Settings& its_settings) : settings(its_settings) {}
  ~Party() {
    channel.close();  // before the queue pair: its ids still know it
    host.destroy();
  }

  // --- what an application does ---
  cm::ConnParam param(std::string_view data = {}) const {
    cm::ConnParam out;
    out.qp_num = host.qp->qp_num();
    out.responder_resources = ird;
    out.initiator_depth = ord;
    out.private_data_len = static_cast<uint8_t>(data.size());
    std::copy(data.begin(), data.end(), out.private_data);
    return out;
  }
  sockaddr_storage listen() {
    const uint32_t id = new_id();
    cm::Route route;
    EXPECT_EQ(manager.bind(channel.channel, id, cm::test::ip("127.0.0.1", 0)), 0);
    EXPECT_EQ(manager.listen(channel.channel, id, 0), 0);
    EXPECT_EQ(manager.query(channel.channel, id, route), 0);
    return route.source;
  }
  void connect(const sockaddr_storage& to, std::string_view data = {}) {
    const uint32_t id = new_id();
    EXPECT_EQ(manager.resolve_address(channel.channel, id, {}, to), 0);
    expect(cm::EventType::kAddrResolved);
    EXPECT_EQ(manager.resolve_route(channel.channel, id), 0);
    expect(cm::EventType::kRouteResolved);
    EXPECT_EQ(manager.connect(channel.channel, id, param(data)), 0);
  }
  int accept(uint32_t id, std::string_view data = {}) {
    return manager.accept(channel.channel, id, 2, param(data));
  }
  int reject(uint32_t id, std::string_view data) {
    const Octets octets = of_text(data);
    return manager.reject(channel.channel, id, octets);
  }
  cm::Event expect(cm::EventType type, int status = 0) { return channel.expect(type, status); }

  // --- cm::QueuePairs; thread: engine, for claim() any ---
  bool exists(uint32_t) override { return true; }
  int claim(uint32_t number) override { return exists(number) ? host.qp->claim() : EINVAL; }
  void abandon(uint32_t) override { host.qp->abandon(); }
  bool exists(uint32_t number) const { return number == host.qp->qp_num(); }
  int attach(uint32_t, transport::StreamPtr&& stream, const mpa::Agreement& agreed,
             core::Bytes leftover, session::ConnectionObserver* observer) override {
    link_ = observer;
    return host.qp->attach(std::move(stream), agreed, leftover, this,
                           session::QueuePair::Receiving::kLater);
  }
  void receive(uint32_t) override { host.qp->receive(); }
  void set_ack_timeout(uint32_t, uint8_t) override {}
  void await_receives(uint32_t, bool) override {}
  void disconnect(uint32_t) override { host.qp->disconnect(); }
  bool forget_observer(uint32_t) override {
    link_ = nullptr;
    return true;
  }

  const core::Settings settings;
  engine::EngineRef engine{std::move(*engine::EngineRef::acquire())};
  uint8_t ird = 4, ord = 4;
  Host host{*engine};
  cm::Manager manager{*this, settings};
  cm::test::TestChannel channel{manager};

 private:
  uint32_t new_id() {
    uint32_t id = 0;
    EXPECT_EQ(
        manager.create_id(channel.channel, 1, cm::PortSpace::kTcp, cm::Service::kConnection, id),
        0);
    return id;
  }
  void on_first_fpdu() override {
    host.on_first_fpdu();
    if (link_) link_->on_first_fpdu();
  }
  void on_connection_ended(int error) override {
    host.on_connection_ended(error);
    if (auto* told = std::exchange(link_, nullptr)) told->on_connection_ended(error);
  }
  session::ConnectionObserver* link_ = nullptr;
};

// Peers by hand, as either side of the TCP connection.
inline std::unique_ptr<RawPeer> dial(const sockaddr_storage& to) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)), 0)
      << strerror(errno);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return std::make_unique<RawPeer>(fd);
}
class RawListener {
 public:
  RawListener()
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), address(cm::test::ip("127.0.0.1", 0)) {
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(sockaddr_in)), 0);
    EXPECT_EQ(::listen(fd_, 4), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
  }
  ~RawListener() { ::close(fd_); }
  std::unique_ptr<RawPeer> accept() {
    return std::make_unique<RawPeer>(accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC));
  }

 private:
  const int fd_;

 public:
  sockaddr_storage address;
};

// The Terminate that answers `ulpdu` (conformance 1.8): its DDP header with M and D, the Read
// Request's as well with R, nothing of it without.
inline Octets terminate_for(uint16_t code, uint8_t flags, std::span<const uint8_t> ulpdu) {
  Octets body;
  append_be16(body, code);
  body.push_back(flags);
  body.push_back(0);
  if (flags & 0xc0) {
    const size_t header = ulpdu[0] & 0x80 ? 14 : 18;
    append_be16(body, static_cast<uint16_t>(ulpdu.size()));
    body.insert(body.end(), ulpdu.begin(),
                ulpdu.begin() + static_cast<std::ptrdiff_t>(header + (flags & 0x20 ? 28 : 0)));
  }
  return untagged(7, 2, 1, 0, body);
}

}  // namespace uiw::test
