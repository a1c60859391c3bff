// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Several streams between two threads. Each has a buffer of its own at either end, as the queue
// pairs of perftest do.
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "connection.h"
#include "core/clock.h"
#include "server_process.h"
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
  // `open()` makes a connection; `events`: what an end waits for.
  template <typename Open>
  Ends(const Load& load, uint32_t events, Open open) : load_(load), events_(events) {
    const int each = load.iterations / load.connections, more = load.iterations % load.connections;
    for (int i = 0; i < load.connections; i++) {
      const size_t messages = static_cast<size_t>(each + (i < more ? 1 : 0));
      ends_.push_back({open(), load.size * messages, std::vector<char>(load.size, 'u')});
    }
  }
  ~Ends() {
    for (const End& end : ends_) close(end.fd);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  // The one that tells of the end.
  int first() const { return ends_.front().fd; }

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
        end.left -= moved(move(end));
        if (end.left > 0) continue;
        epoll_ctl(epoll, EPOLL_CTL_DEL, end.fd, nullptr);
        open--;
      }
    }
    close(epoll);
  }

 private:
  static size_t moved(ssize_t said) {
    if (said > 0) return static_cast<size_t>(said);
    if (said == 0) errno = ECONNRESET;
    if (errno != EAGAIN && errno != EINTR) die("moving octets");
    return 0;
  }

  const Load& load_;
  const uint32_t events_;
  std::vector<End> ends_;
};

}  // namespace

void streams_serve(int listener, const Load& load) {
  Ends ends(load, EPOLLIN, [listener] { return accept_one(listener); });
  ends.run([](End& end) {
    return recv(end.fd, end.buffer.data(), std::min(end.left, end.buffer.size()), MSG_DONTWAIT);
  });
  acknowledge(ends.first());
}

double streams_measure(const sockaddr_in& server, const Load& load) {
  Ends ends(load, EPOLLOUT, [&server] { return connect_to(server); });
  const int64_t start = core::now();
  ends.run([&load](End& end) {
    return send_some_copies(end.fd, end.buffer.data(), end.buffer.size(),
                            std::min(end.left, load.size * static_cast<size_t>(load.batch)),
                            MSG_DONTWAIT);
  });
  await_acknowledgement(ends.first());
  return mib_per_second(load, core::now() - start);
}

}  // namespace uiw::bench
