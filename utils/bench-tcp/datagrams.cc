// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A ping-pong of UDP datagrams, each of one message. The two sockets tell each other their ports by
// a TCP connection. A datagram that is lost is not sent again: the client says so and gives up.
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "connection.h"
#include "core/clock.h"
#include "median.h"
#include "server_process.h"
#include "shapes.h"

namespace uiw::bench {
namespace {

// Without a datagram for so long one was lost; on loopback it takes microseconds.
constexpr int64_t kLostAfter = 5'000'000'000;  // ns

int datagram_socket(const sockaddr_in& address) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in any_port = address;
  any_port.sin_port = 0;
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&any_port), sizeof any_port) != 0)
    die("socket for datagrams");
  return fd;
}

// The other end's, by the stream between both.
void connect_to_peer(int fd, int stream, sockaddr_in peer) {
  sockaddr_in own = {};
  socklen_t size = sizeof own;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) die("getsockname");
  send_all(stream, &own.sin_port, sizeof own.sin_port);
  if (!receive(stream, &peer.sin_port, sizeof peer.sin_port)) die("peer ended early");
  if (connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) die("connect");
}

sockaddr_in end_of(int stream, int (*name)(int, sockaddr*, socklen_t*)) {
  sockaddr_in address = {};
  socklen_t size = sizeof address;
  if (name(stream, reinterpret_cast<sockaddr*>(&address), &size) != 0) die("name of a socket");
  return address;
}

int make_socket(int stream) {
  const int fd = datagram_socket(end_of(stream, getsockname));
  connect_to_peer(fd, stream, end_of(stream, getpeername));
  return fd;
}

void send_one(int fd, const std::vector<char>& message) {
  if (send(fd, message.data(), message.size(), 0) < 0) die("send");
}

void await_one(int fd, std::vector<char>& buffer) {
  for (int64_t since = core::now(); recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT) < 0;) {
    if (errno != EAGAIN && errno != EINTR) die("recv");
    if (core::now() - since < kLostAfter) continue;
    errno = ETIMEDOUT;
    die("a datagram was lost");
  }
}

}  // namespace

void datagrams_serve(int listener, const Load& load) {
  const int stream = accept_one(listener), fd = make_socket(stream);
  std::vector<char> buffer(load.size);
  for (int i = 0; i < load.iterations + kWarmUp; i++) {
    await_one(fd, buffer);
    send_one(fd, buffer);
  }
}

double datagrams_measure(const sockaddr_in& server, const Load& load) {
  const int stream = connect_to(server), fd = make_socket(stream);
  std::vector<char> buffer(load.size);
  std::vector<int64_t> samples;
  samples.reserve(static_cast<size_t>(load.iterations));
  for (int i = 0; i < load.iterations + kWarmUp; i++) {
    const int64_t start = core::now();
    send_one(fd, buffer);
    await_one(fd, buffer);
    if (i >= kWarmUp) samples.push_back(core::now() - start);
  }
  close(fd);
  close(stream);
  return median_us(samples);
}

}  // namespace uiw::bench
