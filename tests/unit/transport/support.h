// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A stream's handler that remembers what it was told, and a connection to try it on.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <string>
#include <utility>

#include "transport/tcp_stream.h"
#include "unit/engine/support.h"

namespace uiw::test {

struct Heard {
  std::string octets;
  int pieces = 0;
  int ends = 0;
  int error = 0;
  int writable = 0;
};

// Its stream lives as long as it does, unless end() or a hook ended it before.
class Recorder final : public transport::StreamHandler {
 public:
  explicit Recorder(engine::Engine& engine) : engine_(engine) {}
  ~Recorder() { end(); }
  Recorder(const Recorder&) = delete;

  // Takes `fd` over and starts to listen.
  void adopt(int fd) {
    engine_.run_sync([&] {
      stream = transport::TcpStream::adopt(engine_, fd);
      stream->set_handler(this);
    });
  }
  void end() {
    engine_.run_sync([&] { stream.reset(); });
  }

  void on_octets(core::Bytes octets) override {
    heard.change([&](Heard& h) {
      h.octets.append(reinterpret_cast<const char*>(octets.data()), octets.size());
      ++h.pieces;
    });
    if (then) then(octets);
  }
  void on_end_of_stream() override {
    heard.change([](Heard& h) { ++h.ends; });
    if (then_end) then_end();
  }
  void on_error(int error) override {
    heard.change([&](Heard& h) { h.error = error; });
    if (then_end) then_end();
  }
  void on_writable() override {
    heard.change([](Heard& h) { ++h.writable; });
    if (then_writable) then_writable();
  }

  long send(const std::string& text) {
    const iovec piece{const_cast<char*>(text.data()), text.size()};
    return stream->send(&piece, 1);
  }

  Heard wait_octets(size_t count) {
    return heard.wait([&](const Heard& h) { return h.octets.size() >= count; });
  }

  transport::StreamPtr stream;  // thread: engine, once adopted
  Watched<Heard> heard;
  // Called on the engine thread after the event was noted. Set them before adopt().
  std::function<void(core::Bytes)> then;
  std::function<void()> then_end;
  std::function<void()> then_writable;

 private:
  engine::Engine& engine_;
};

// An engine, and two connected sockets: ours is for a stream.
struct ConnectedPair : testing::Test {
  ~ConnectedPair() override {
    if (pair.theirs >= 0) close(pair.theirs);
  }
  void close_theirs() { close(std::exchange(pair.theirs, -1)); }
  // Makes the peer's next close a reset.
  void reset_theirs() {
    const linger now{1, 0};
    setsockopt(pair.theirs, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close_theirs();
  }

  int descriptors_before = open_descriptors();
  std::unique_ptr<engine::Engine> engine = start_engine();
  SocketPair pair = connected_pair();
};

// The name of its congestion control.
inline std::string algorithm_of(int fd) {
  char name[16] = {};
  socklen_t size = sizeof name;
  EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
  return name;
}

// SO_SNDBUF or SO_RCVBUF, as the kernel says it.
inline int buffer_of(int fd, int option) {
  int octets = 0;
  socklen_t size = sizeof octets;
  getsockopt(fd, SOL_SOCKET, option, &octets, &size);
  return octets;
}

inline void write_all(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const long n = ::send(fd, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    ASSERT_GT(n, 0) << strerror(errno);
    done += static_cast<size_t>(n);
  }
}
inline std::string read_exactly(int fd, size_t count) {
  std::string text(count, '\0');
  size_t done = 0;
  while (done < count) {
    const long n = ::read(fd, text.data() + done, count - done);
    if (n <= 0) {
      ADD_FAILURE() << (n == 0 ? "end of stream" : strerror(errno)) << " after " << done;
      break;
    }
    done += static_cast<size_t>(n);
  }
  text.resize(done);
  return text;
}

// Octets that differ everywhere, so that a swap or a gap shows.
inline std::string pattern(size_t count, unsigned seed = 0) {
  std::string text(count, '\0');
  uint32_t state = seed * 2654435761u + 1;
  for (char& octet : text) {
    state = state * 1664525 + 1013904223;
    octet = static_cast<char>(state >> 24);
  }
  return text;
}

}  // namespace uiw::test
