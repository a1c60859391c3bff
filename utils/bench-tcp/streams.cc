// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Several streams between two threads. Each has a buffer of its own at either end, as the queue
// pairs of perftest do.
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "connection.h"
#include "shapes.h"

namespace uiw::bench {
namespace {

// One end of a stream. `left` octets of it are to come, or to go.
struct End {
  int fd;
  size_t left;
  std::vector<char> buffer;
};

class Ends {
 public:
  // `events`: what an end waits for.
  Ends(const Load& load, uint32_t events) : load_(load), events_(events) {}

  void add(int fd) {
    const int i = static_cast<int>(ends_.size());
    const int mine =
        load_.iterations / load_.connections + (i < load_.iterations % load_.connections ? 1 : 0);
    ends_.push_back(
        {fd, load_.size * static_cast<size_t>(mine), std::vector<char>(load_.size, 'u')});
  }

  // `move(end)` moves what it can without waiting; the octets, or what the call says. Until all
  // ends are done, in turns.
  template <typename Move>
  void run(Move move) {
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) die("epoll_create1");
    size_t open = 0;
    for (End& end : ends_) {
      epoll_event event = {.events = events_, .data = {.ptr = &end}};
      if (end.left > 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, end.fd, &event) != 0) die("epoll_ctl");
      open += end.left > 0;
    }
    std::vector<epoll_event> ready(ends_.size());
    while (open > 0) {
      const int count = epoll_wait(epoll, ready.data(), static_cast<int>(ready.size()),
                                   load_.wait == Wait::kSpin ? 0 : -1);
      for (int i = 0; i < count; i++) {
        End& end = *static_cast<End*>(ready[static_cast<size_t>(i)].data.ptr);
        const ssize_t moved = move(end);
        if (moved == 0) {
          errno = ECONNRESET;
          die("peer ended early");
        }
        if (moved < 0 && errno != EAGAIN && errno != EINTR) die("moving octets");
        if (moved > 0 && (end.left -= static_cast<size_t>(moved)) == 0) {
          epoll_ctl(epoll, EPOLL_CTL_DEL, end.fd, nullptr);
          open--;
        }
      }
    }
    close(epoll);
  }

  void close_all() {
    for (const End& end : ends_) close(end.fd);
  }

 private:
  const Load& load_;
  const uint32_t events_;
  std::vector<End> ends_;
};

}  // namespace

void streams_serve(int listener, const Load& load) {
  Ends ends(load, EPOLLIN);
  int first = -1;
  for (int i = 0; i < load.connections; i++) {
    const int fd = accept_one(listener);
    if (i == 0) first = fd;
    ends.add(fd);
  }
  ends.run([](End& end) {
    return recv(end.fd, end.buffer.data(), std::min(end.left, end.buffer.size()), MSG_DONTWAIT);
  });
  acknowledge(first);
}

double streams_measure(const sockaddr_in& server, const Load& load) {
  Ends ends(load, EPOLLOUT);
  int first = -1;
  for (int i = 0; i < load.connections; i++) {
    const int fd = connect_to(server);
    if (i == 0) first = fd;
    ends.add(fd);
  }
  const int64_t start = now_ns();
  ends.run([&load](End& end) {
    return send_some_copies(end.fd, end.buffer.data(), end.buffer.size(),
                            std::min(end.left, load.size * static_cast<size_t>(load.batch)),
                            MSG_DONTWAIT);
  });
  await_acknowledgement(first);
  const int64_t ns = now_ns() - start;
  ends.close_all();
  return mib_per_second(load, ns);
}

}  // namespace uiw::bench
