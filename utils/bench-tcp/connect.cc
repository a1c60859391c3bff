// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Many connections at once, as cmtime makes them: one thread on either side, epoll.
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "connection.h"
#include "core/clock.h"
#include "server_process.h"
#include "shapes.h"

namespace uiw::bench {
namespace {

constexpr int kEvents = 256;

void allow_many_descriptors() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void watch(int epoll, int operation, int fd, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll, operation, fd, &event) != 0) die("epoll_ctl");
}

int new_epoll() {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) die("epoll_create1");
  return epoll;
}

int wait_for(int epoll, epoll_event* events) {
  const int count = epoll_wait(epoll, events, kEvents, -1);
  if (count < 0 && errno != EINTR) die("epoll_wait");
  return count;
}

}  // namespace

void connect_serve(int listener, const Load& load) {
  allow_many_descriptors();
  fcntl(listener, F_SETFL, O_NONBLOCK);
  const int epoll = new_epoll();
  watch(epoll, EPOLL_CTL_ADD, listener, EPOLLIN);
  std::vector<char> buffer(load.size);
  std::vector<int> accepted;
  epoll_event events[kEvents];
  for (int answered = 0; answered < load.iterations;) {
    const int count = wait_for(epoll, events);
    for (int i = 0; i < count; i++) {
      if (events[i].data.fd == listener) {
        accepted.push_back(accept_one(listener));
        watch(epoll, EPOLL_CTL_ADD, accepted.back(), EPOLLIN);
      } else {
        if (!receive(events[i].data.fd, buffer.data(), load.size)) die("peer ended early");
        send_all(events[i].data.fd, buffer.data(), load.size);
        watch(epoll, EPOLL_CTL_DEL, events[i].data.fd, 0);
        answered++;
      }
    }
  }
  for (const int fd : accepted) {  // the client closes first
    char end;
    recv(fd, &end, 1, 0);
  }
}

double connect_measure(const sockaddr_in& server, const Load& load) {
  allow_many_descriptors();
  const int epoll = new_epoll();
  std::vector<char> buffer(load.size);
  std::vector<int> made;
  const int64_t start = core::now();
  for (int i = 0; i < load.iterations; i++) {
    const int fd = new_socket(server);
    made.push_back(fd);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&server), sizeof server) != 0 &&
        errno != EINPROGRESS)
      die("connect");
    watch(epoll, EPOLL_CTL_ADD, fd, EPOLLOUT);
  }
  epoll_event events[kEvents];
  for (int answered = 0; answered < load.iterations;) {
    const int count = wait_for(epoll, events);
    for (int i = 0; i < count; i++) {
      const int fd = events[i].data.fd;
      if (events[i].events & EPOLLERR) die("connect");
      if (events[i].events & EPOLLOUT) {
        send_all(fd, buffer.data(), load.size);
        fcntl(fd, F_SETFL, 0);
        watch(epoll, EPOLL_CTL_MOD, fd, EPOLLIN);
      } else {
        if (!receive(fd, buffer.data(), load.size)) die("peer ended early");
        watch(epoll, EPOLL_CTL_DEL, fd, 0);
        answered++;
      }
    }
  }
  const int64_t ns = core::now() - start;
  for (const int fd : made) close(fd);
  return load.iterations / (static_cast<double>(ns) / 1e9);
}

}  // namespace uiw::bench
