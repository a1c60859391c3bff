// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

#include "server_process.h"

namespace uiw::bench {
namespace {

constexpr size_t kCopies = 16;  // in one call of sendmsg

bool within_host(const sockaddr_in& peer) {
  return ntohl(peer.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

// No delay; on loopback large buffers and reno too: a host's default of bbr would pace that to
// half. These are wishes: where the host refuses them, raw TCP is what the host makes of it.
void tune(int fd, const sockaddr_in& peer) {
  const int one = 1, buffer = 1536 << 10;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (!within_host(peer)) return;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

}  // namespace

int new_socket(const sockaddr_in& peer) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  tune(fd, peer);
  return fd;
}

int listen_at(sockaddr_in& address) {
  const int fd = new_socket(address);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) die("bind");
  if (listen(fd, SOMAXCONN) != 0) die("listen");
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) die("getsockname");
  return fd;
}

int accept_one(int listener) {
  sockaddr_in peer = {};
  socklen_t size = sizeof peer;
  const int fd = accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC);
  if (fd < 0) die("accept");
  tune(fd, peer);
  return fd;
}

int connect_to(const sockaddr_in& address) {
  const int fd = new_socket(address);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) die("connect");
  return fd;
}

void spin_receive(int fd, void* buffer, size_t size) {
  char* at = static_cast<char*>(buffer);
  while (size > 0) {
    const ssize_t got = recv(fd, at, size, MSG_DONTWAIT);
    if (got > 0) {
      at += got;
      size -= static_cast<size_t>(got);
    } else if (got == 0) {
      errno = ECONNRESET;
      die("peer ended early");
    } else if (errno != EAGAIN && errno != EINTR) {
      die("recv");
    }
  }
}

bool receive(int fd, void* buffer, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t got = recv(fd, static_cast<char*>(buffer) + done, size - done, 0);
    if (got > 0)
      done += static_cast<size_t>(got);
    else if (got == 0 && done == 0)
      return false;
    else if (got == 0 || errno != EINTR)
      die("recv");
  }
  return true;
}

void send_all(int fd, const void* buffer, size_t size) {
  send_copies(fd, buffer, size, 1);
}

void acknowledge(int fd) {
  const char done = 1;
  send_all(fd, &done, 1);
}

void await_acknowledgement(int fd) {
  char done;
  if (!receive(fd, &done, 1)) die("peer ended early");
}

ssize_t send_some_copies(int fd, const void* buffer, size_t size, size_t left, int flags) {
  // The next octet to go is this far into a copy.
  const size_t done = (size - left % size) % size;
  iovec parts[kCopies];
  size_t planned = 0, count = 0;
  for (; count < kCopies && planned < left; count++) {
    const size_t skip = count == 0 ? done : 0;
    parts[count] = {const_cast<char*>(static_cast<const char*>(buffer)) + skip, size - skip};
    planned += size - skip;
  }
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  return sendmsg(fd, &message, MSG_NOSIGNAL | flags);
}

void send_copies(int fd, const void* buffer, size_t size, int copies) {
  size_t left = size * static_cast<size_t>(copies);
  while (left > 0) {
    const ssize_t sent = send_some_copies(fd, buffer, size, left, 0);
    if (sent > 0)
      left -= static_cast<size_t>(sent);
    else if (errno != EINTR)
      die("send");
  }
}

}  // namespace uiw::bench
