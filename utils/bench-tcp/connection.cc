// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace uiw::bench {
namespace {

// No delay, large buffers, and reno: a host's default of bbr would pace loopback to half. Both are
// wishes: where the host refuses them, raw TCP is what the host makes of it.
void tune(int fd) {
  const int one = 1, buffer = 4 << 20;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

int new_socket() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  tune(fd);
  return fd;
}

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

void die(const char* what) {
  fprintf(stderr, "uiwarp-bench-tcp: %s: %s\n", what, strerror(errno));
  exit(1);
}

int64_t now_ns() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return ts.tv_sec * int64_t{1000000000} + ts.tv_nsec;
}

int listen_loopback(uint16_t& port) {
  const int fd = new_socket();
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) die("bind");
  if (listen(fd, 1) != 0) die("listen");
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) die("getsockname");
  port = ntohs(address.sin_port);
  return fd;
}

int accept_one(int listener) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) die("accept");
  tune(fd);
  return fd;
}

int connect_loopback(uint16_t port) {
  const int fd = new_socket();
  const sockaddr_in address = loopback(port);
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
  const char* at = static_cast<const char*>(buffer);
  while (size > 0) {
    const ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
    if (sent > 0) {
      at += sent;
      size -= static_cast<size_t>(sent);
    } else if (errno != EINTR) {
      die("send");
    }
  }
}

}  // namespace uiw::bench
