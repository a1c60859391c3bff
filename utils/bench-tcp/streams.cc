// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Streams between two threads, several of them, or one each way. Each has a buffer of its own at
// either end, as the queue pairs of perftest do.
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

// One end of a connection: octets that are to go and to come, and where from and to.
struct End {
  int fd;
  size_t to_send, to_receive;
  std::vector<char> source, sink;
};

class Ends {
 public:
  // `open()` makes a connection. On all together go the messages of `load`, come as many, or both.
  template <typename Open>
  Ends(const Load& load, bool go, bool come, Open open) : load_(load) {
    const int each = load.iterations / load.connections, more = load.iterations % load.connections;
    for (int i = 0; i < load.connections; i++) {
      const size_t octets = load.size * static_cast<size_t>(each + (i < more ? 1 : 0));
      ends_.push_back({open(), go ? octets : 0, come ? octets : 0,
                       std::vector<char>(load.size, 'u'), std::vector<char>(load.size)});
    }
  }
  ~Ends() {
    for (const End& end : ends_) close(end.fd);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  // The one that tells of the end.
  int first() const { return ends_.front().fd; }

  // What can be moved without waiting, in turns, until all ends are done.
  void run() {
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) die("epoll_create1");
    size_t open = 0;
    for (End& end : ends_) open += watch(epoll, EPOLL_CTL_ADD, end);
    std::vector<epoll_event> ready(ends_.size());
    while (open > 0) {
      const int count = epoll_wait(epoll, ready.data(), static_cast<int>(ready.size()),
                                   load_.wait == Wait::kSpin ? 0 : -1);
      for (int i = 0; i < count; i++) {
        End& end = *static_cast<End*>(ready[static_cast<size_t>(i)].data.ptr);
        if (move(end) && !watch(epoll, EPOLL_CTL_MOD, end)) open--;
      }
    }
    close(epoll);
  }

 private:
  // False: there is nothing to wait for.
  static bool watch(int epoll, int how, End& end) {
    epoll_event event = {.events = 0, .data = {.ptr = &end}};
    if (end.to_send > 0) event.events |= EPOLLOUT;
    if (end.to_receive > 0) event.events |= EPOLLIN;
    if (event.events == 0) how = how == EPOLL_CTL_ADD ? 0 : EPOLL_CTL_DEL;
    if (how != 0 && epoll_ctl(epoll, how, end.fd, &event) != 0) die("epoll_ctl");
    return event.events != 0;
  }

  // True: one direction is done.
  bool move(End& end) const {
    bool done = false;
    if (end.to_receive > 0) {
      end.to_receive -= moved(
          recv(end.fd, end.sink.data(), std::min(end.to_receive, end.sink.size()), MSG_DONTWAIT));
      done = end.to_receive == 0;
    }
    if (end.to_send > 0) {
      const size_t most = load_.size * static_cast<size_t>(load_.batch);
      end.to_send -= moved(send_some_copies(end.fd, end.source.data(), end.source.size(),
                                            std::min(end.to_send, most), MSG_DONTWAIT));
      done = done || end.to_send == 0;
    }
    return done;
  }

  static size_t moved(ssize_t said) {
    if (said > 0) return static_cast<size_t>(said);
    if (said == 0) errno = ECONNRESET;
    if (errno != EAGAIN && errno != EINTR) die("moving octets");
    return 0;
  }

  const Load& load_;
  std::vector<End> ends_;
};

void serve(int listener, const Load& load, bool go) {
  Ends ends(load, go, true, [listener] { return accept_one(listener); });
  ends.run();
  acknowledge(ends.first());
}

double measure(const sockaddr_in& server, const Load& load, bool come) {
  Ends ends(load, true, come, [&server] { return connect_to(server); });
  const int64_t start = core::now();
  ends.run();
  await_acknowledgement(ends.first());
  return mib_per_second(load, core::now() - start);
}

}  // namespace

void streams_serve(int listener, const Load& load) {
  serve(listener, load, false);
}

double streams_measure(const sockaddr_in& server, const Load& load) {
  return measure(server, load, false);
}

void both_ways_serve(int listener, const Load& load) {
  serve(listener, load, true);
}

double both_ways_measure(const sockaddr_in& server, const Load& load) {
  return measure(server, load, true);
}

}  // namespace uiw::bench
