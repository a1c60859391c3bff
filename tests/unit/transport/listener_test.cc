// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "transport/listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/ip.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "support/descriptor_limit.h"
#include "support/living_child.h"
#include "transport/socket_options.h"
#include "unit/transport/support.h"

namespace uiw::transport {
namespace {

using test::Watched;

struct Accepted final : AcceptHandler {
  ~Accepted() {
    for (int fd : fds.get()) close(fd);
  }
  void on_accept(int fd, const sockaddr_storage& peer) override {
    last_peer = peer;
    fds.change([&](auto& all) { all.push_back(fd); });
    if (then) then();
  }
  void on_accept_error(int error) override { errors.set(error); }
  std::vector<int> wait(size_t count) {
    return fds.wait([&](auto& all) { return all.size() >= count; });
  }
  Watched<std::vector<int>> fds;
  Watched<int> errors;
  sockaddr_storage last_peer{};
  std::function<void()> then;
};

struct Connected final : ConnectHandler {
  ~Connected() {
    if (fd.get() >= 0) close(fd.get());
  }
  void on_connected(int its_fd) override {
    fd.set(its_fd);
    told();
  }
  void on_connect_failed(int its_error) override {
    error.set(its_error);
    told();
  }
  void told() {
    if (then) then();
    calls.change([](int& n) { ++n; });
  }
  int wait() {
    return calls.wait([](int n) { return n > 0; });
  }
  Watched<int> fd{-1}, error{0}, calls{0};
  std::function<void()> then;
};

struct ListenerTest : testing::Test {
  int bound(const BindOptions& options = {}, sockaddr_storage at = test::loopback()) {
    auto fd = bind_tcp(at, options);
    EXPECT_TRUE(fd) << strerror(fd.error());
    address = test::name_of(*fd);
    return *fd;
  }
  void listen_on(int fd, int backlog = 64) {
    engine->run_sync([&] {
      auto started = Listener::start(*engine, fd, backlog, accepted);
      ASSERT_TRUE(started) << strerror(started.error());
      listener = std::move(*started);
    });
  }
  std::unique_ptr<Connector> start_connecting(int fd, const sockaddr_storage& to,
                                              core::Nanoseconds timeout, Connected& handler) {
    return Connector::start(*engine, fd, Connector::begin(fd, to, is_local_peer(to, {})), timeout,
                            handler);
  }
  void connect_to(const sockaddr_storage& to, core::Nanoseconds timeout = 30 * core::kSecond) {
    const int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    engine->run_sync([&] { connector = start_connecting(fd, to, timeout, connected); });
  }
  ~ListenerTest() override {
    engine->run_sync([&] {
      listener.reset();
      connector.reset();
    });
  }

  std::unique_ptr<engine::Engine> engine = test::start_engine();
  sockaddr_storage address{};
  Accepted accepted;
  Connected connected;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Connector> connector;
};

TEST_F(ListenerTest, AcceptsAndSaysWhoCame) {
  listen_on(bound());
  connect_to(address);
  connected.wait();
  const int ours = connected.fd.get();
  ASSERT_GE(ours, 0);
  const int theirs = accepted.wait(1)[0];
  const sockaddr_storage name = test::name_of(ours);
  EXPECT_EQ(memcmp(&accepted.last_peer, &name, sizeof(sockaddr_in)), 0);
  for (int fd : {ours, theirs}) {
    EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    EXPECT_TRUE(fcntl(fd, F_GETFL) & O_NONBLOCK);
  }
}

// Also at an address that says nothing of the peer.
TEST_F(ListenerTest, AcceptsConnectionsOfThisHostWithReno) {
  sockaddr_storage anywhere{};
  anywhere.ss_family = AF_INET;
  listen_on(bound({}, anywhere));
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  connect_to(address);
  EXPECT_EQ(test::algorithm_of(accepted.wait(1)[0]), "reno");
}

TEST_F(ListenerTest, AcceptsManyAtOnce) {
  constexpr int kClients = 100;
  listen_on(bound(), 128);
  std::vector<int> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(connect(clients.back(), test::raw(address), test::size_of(address)), 0);
  }
  accepted.wait(kClients);
  for (int fd : clients) close(fd);
}

TEST_F(ListenerTest, OverIpv6) {
  listen_on(bound({.v6_only = true}, test::loopback6()));
  connect_to(address);
  connected.wait();
  EXPECT_GE(connected.fd.get(), 0);
  accepted.wait(1);
  EXPECT_EQ(accepted.last_peer.ss_family, AF_INET6);
}

TEST_F(ListenerTest, V6OnlyDecidesAboutIpv4) {
  for (bool only : {false, true}) {
    sockaddr_storage any{};
    any.ss_family = AF_INET6;
    const int fd = bound({.v6_only = only}, any);
    ASSERT_EQ(::listen(fd, 1), 0);
    const auto port = ntohs(reinterpret_cast<sockaddr_in6&>(address).sin6_port);
    const sockaddr_storage v4 = test::loopback(port);
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(client, test::raw(v4), test::size_of(v4)) == 0, !only);
    close(client);
    close(fd);
  }
}

TEST_F(ListenerTest, StoppingFreesThePortAtOnce) {
  for (int i = 0; i < 20; ++i) {
    const int fd = bound({.reuse_address = false});
    listen_on(fd);
    engine->run_sync([&] { listener.reset(); });
    auto again = bind_tcp(address, {.reuse_address = false});
    ASSERT_TRUE(again) << strerror(again.error());
    close(*again);
  }
}

TEST_F(ListenerTest, StoppingFreesThePortOfWhichALivingChildHasACopy) {
  for (bool v6 : {false, true}) {
    // A socket that was given its port by number keeps it when it listens no more.
    close(bound({.v6_only = v6}, v6 ? test::loopback6() : test::loopback()));
    listen_on(bound({.v6_only = v6}, address));
    const test::LivingChild child;
    engine->run_sync([&] { listener.reset(); });
    auto alone = bind_tcp(address, {.reuse_address = false, .v6_only = v6});
    EXPECT_TRUE(alone) << "the child keeps the port: " << strerror(alone.error());
    if (alone) close(*alone);
    const int client = socket(address.ss_family, SOCK_STREAM, 0);
    EXPECT_EQ(connect(client, test::raw(address), test::size_of(address)), -1);
    EXPECT_EQ(errno, ECONNREFUSED);
    close(client);
    // Who listens there next gets the connections.
    listen_on(bound({.v6_only = v6}, address));
    const int next = socket(address.ss_family, SOCK_STREAM, 0);
    EXPECT_EQ(connect(next, test::raw(address), test::size_of(address)), 0);
    accepted.wait(v6 ? 2 : 1);
    close(next);
    engine->run_sync([&] { listener.reset(); });
  }
}

TEST_F(ListenerTest, StoppingEndsWhoWaits) {
  const int fd = bound();
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  engine->run_sync([&] {
    // Nothing is accepted before this call ends.
    auto started = Listener::start(*engine, fd, 8, accepted);
    ASSERT_TRUE(started);
    ASSERT_EQ(connect(client, test::raw(address), test::size_of(address)), 0);
    started->reset();
  });
  char octet;
  EXPECT_LE(read(client, &octet, 1), 0);
  EXPECT_TRUE(accepted.fds.get().empty());
  close(client);
}

TEST_F(ListenerTest, MayBeDestroyedInsideOnAccept) {
  accepted.then = [&] { listener.reset(); };
  listen_on(bound());
  std::vector<int> clients;
  for (int i = 0; i < 3; ++i) {
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(client, test::raw(address), test::size_of(address));
    clients.push_back(client);
  }
  accepted.wait(1);
  engine->run_sync([&] { EXPECT_FALSE(listener); });
  EXPECT_EQ(accepted.fds.get().size(), 1u);
  for (int fd : clients) close(fd);
}

TEST_F(ListenerTest, StartFailsOnABadSocketAndLeavesItToTheCaller) {
  const int first = bound();
  listen_on(first);
  // Two bound to one address may not both listen.
  auto second = bind_tcp(address, {});
  const int fd = second ? *second : -1;
  engine->run_sync([&] {
    if (fd >= 0) {
      auto started = Listener::start(*engine, fd, 1, accepted);
      EXPECT_FALSE(started);
      EXPECT_EQ(started.error(), EADDRINUSE);
      EXPECT_EQ(close(fd), 0);
    }
    const int datagram = socket(AF_INET, SOCK_DGRAM, 0);
    auto started = Listener::start(*engine, datagram, 1, accepted);
    EXPECT_FALSE(started);
    EXPECT_EQ(started.error(), EOPNOTSUPP);
    EXPECT_EQ(close(datagram), 0);
  });
}

// A process out of descriptors cannot accept; as soon as it can again, it does.
TEST_F(ListenerTest, SurvivesAShortageOfDescriptors) {
  const int fd = bound();
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  std::optional<uiw::test::DescriptorLimit> none;
  listen_on(fd, 1);
  testing::internal::CaptureStderr();
  engine->run_sync([&] {
    none.emplace(0);
    ASSERT_EQ(connect(client, test::raw(address), test::size_of(address)), 0);
    engine->flush();  // learns of it, and tries to accept under the limit
  });
  engine->run_sync([] {});
  EXPECT_TRUE(accepted.fds.get().empty());
  none.reset();
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("cannot be accepted"), std::string::npos) << told;
  EXPECT_NE(told.find("ulimit -n"), std::string::npos) << told;
  accepted.wait(1);
  EXPECT_EQ(accepted.errors.get(), 0);
  close(client);
}

TEST_F(ListenerTest, BindReportsWhatIsWrong) {
  const int fd = bound({.reuse_address = false});
  ASSERT_EQ(::listen(fd, 1), 0);
  EXPECT_EQ(bind_tcp(address, {}).error(), EADDRINUSE);
  EXPECT_EQ(bind_tcp(address, {.reuse_address = false}).error(), EADDRINUSE);
  close(fd);

  sockaddr_storage foreign = test::loopback();
  reinterpret_cast<sockaddr_in&>(foreign).sin_addr.s_addr = htonl(0xc0000237);  // RFC 5737
  EXPECT_EQ(bind_tcp(foreign, {}).error(), EADDRNOTAVAIL);
  EXPECT_EQ(bind_tcp(sockaddr_storage{}, {}).error(), EAFNOSUPPORT);
}

TEST_F(ListenerTest, BindLeavesNoDescriptorBehindWhenItFails) {
  sockaddr_storage foreign = test::loopback();
  reinterpret_cast<sockaddr_in&>(foreign).sin_addr.s_addr = htonl(0xc0000237);
  bind_tcp(foreign, {}).error();
  const int before = test::open_descriptors();
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(bind_tcp(foreign, {}));
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST_F(ListenerTest, BindSetsTheTypeOfService) {
  int value = 0;
  socklen_t size = sizeof value;
  const int v4 = bound({.tos = 0x28});
  getsockopt(v4, IPPROTO_IP, IP_TOS, &value, &size);
  EXPECT_EQ(value, 0x28);
  const int v6 = bound({.tos = 0x48}, test::loopback6());
  getsockopt(v6, IPPROTO_IPV6, IPV6_TCLASS, &value, &size);
  EXPECT_EQ(value, 0x48);
  close(v4);
  close(v6);
}

TEST_F(ListenerTest, ConnectRefused) {
  close(bound());
  connect_to(address);
  connected.wait();
  EXPECT_EQ(connected.error.get(), ECONNREFUSED);
  EXPECT_EQ(connected.fd.get(), -1);
}

// As one that chose the port of a listener that has gone.
TEST_F(ListenerTest, ConnectToItselfIsRefused) {
  for (const sockaddr_storage& at : {test::loopback(), test::loopback6()}) {
    const int fd = bound({}, at);
    EXPECT_EQ(Connector::begin(fd, address, true), ECONNREFUSED);
    EXPECT_EQ(send(fd, "", 1, MSG_NOSIGNAL), -1);
    close(fd);
  }
}

TEST_F(ListenerTest, ConnectFromABoundSocketKeepsItsAddress) {
  listen_on(bound());
  const sockaddr_storage to = address;
  const int fd = bound();
  const sockaddr_storage from = address;
  engine->run_sync([&] { connector = start_connecting(fd, to, core::kSecond, connected); });
  connected.wait();
  const sockaddr_storage name = test::name_of(connected.fd.get());
  EXPECT_EQ(memcmp(&from, &name, sizeof(sockaddr_in)), 0);
}

// A listener whose queue is full does not answer: the only thing that ends the attempt is the time.
struct FullQueue {
  FullQueue() : listener(0) {
    const sockaddr_storage to = listener.address();
    // One more than the backlog fits; further ones wait for an answer that does not come.
    for (int i = 0; i < 4; ++i) {
      fds.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      connect(fds.back(), test::raw(to), test::size_of(to));
    }
  }
  ~FullQueue() {
    for (int fd : fds) close(fd);
  }
  test::PlainListener listener;
  std::vector<int> fds;
};

TEST_F(ListenerTest, ConnectTimesOut) {
  FullQueue silent;
  const int before = test::open_descriptors();
  connect_to(silent.listener.address(), 20 * core::kMillisecond);
  connected.wait();
  EXPECT_EQ(connected.error.get(), ETIMEDOUT);
  engine->run_sync([&] { connector.reset(); });
  EXPECT_EQ(test::open_descriptors(), before);
  EXPECT_EQ(connected.calls.get(), 1);
}

TEST_F(ListenerTest, ConnectorMayBeDestroyedInsideTheTimeout) {
  FullQueue silent;
  connected.then = [&] { connector.reset(); };
  connect_to(silent.listener.address(), core::kMillisecond);
  connected.wait();
  EXPECT_EQ(connected.error.get(), ETIMEDOUT);
  engine->run_sync([&] { EXPECT_FALSE(connector); });
}

TEST_F(ListenerTest, DestroyedConnectorSaysNothingAndFreesItsPort) {
  FullQueue silent;
  const int fd = bound({.reuse_address = false});
  const sockaddr_storage from = address;
  engine->run_sync([&] {
    connector = start_connecting(fd, silent.listener.address(), core::kSecond, connected);
  });
  engine->run_sync([&] { connector.reset(); });
  auto again = bind_tcp(from, {.reuse_address = false});
  ASSERT_TRUE(again) << strerror(again.error());
  close(*again);
  engine->run_sync([] {});
  EXPECT_EQ(connected.calls.get(), 0);
}

TEST_F(ListenerTest, ConnectorMayBeDestroyedInsideItsCalls) {
  listen_on(bound());
  connected.then = [&] { connector.reset(); };
  connect_to(address);
  connected.wait();
  EXPECT_GE(connected.fd.get(), 0);
  Connected second;
  engine->run_sync([&] { listener.reset(); });
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  second.then = [&] { connector.reset(); };
  engine->run_sync([&] { connector = start_connecting(fd, address, core::kSecond, second); });
  second.wait();
  EXPECT_EQ(second.error.get(), ECONNREFUSED);
}

TEST_F(ListenerTest, ConnectUnreachableFamilyFails) {
  sockaddr_storage to = test::loopback6(9);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  engine->run_sync([&] { connector = start_connecting(fd, to, core::kSecond, connected); });
  connected.wait();
  EXPECT_EQ(connected.error.get(), EAFNOSUPPORT);
}

}  // namespace
}  // namespace uiw::transport
