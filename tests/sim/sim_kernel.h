// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The kernel of the simulator: virtual time and TCP connections that split, join and hold back
// bytes as a seed says. It is what core::sys and core::now() are linked to in the simulated suite,
// in place of the real ones, so that transport/, progress/ and session/ run as they are.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <utility>

#include "core/clock.h"

namespace uiw::test {

// One direction of a connection.
struct Pipe {
  std::deque<uint8_t> bytes;
  size_t window = 1;
  bool fin = false;    // follows the bytes
  bool reset = false;  // follows the bytes; nothing is taken any more
};

// One at a time. Thread: the test's.
class Kernel {
 public:
  explicit Kernel(uint32_t seed);
  ~Kernel();
  static Kernel& current();

  // A connection's two descriptors. `window`: bytes that either takes at least.
  std::pair<int, int> connect(size_t window = 0);
  // The connection breaks, as both ends see it.
  void reset(int fd);
  // FIN now, wherever the stream is. Nothing is taken behind it.
  void half_close(int fd);
  // Flips one bit of what is on its way to `fd`, should something be.
  void corrupt_incoming(int fd);

  // The calls of core::sys: the same results, -errno.
  long send(int fd, std::span<const iovec> pieces);
  long receive(int fd, std::span<const iovec> pieces);
  int close(int fd);
  int make_timer();
  void set_timer(int fd, core::Nanoseconds at);
  long read_timer(int fd);
  uint32_t emss();
  bool has_unread(int fd) const;
  uint8_t tcp_state(int fd) const;
  void make_abortive(int fd);

  size_t open_sockets() const { return sockets_.size(); }
  bool is_readable(int fd) const;
  bool is_writable(int fd) const;
  core::Nanoseconds next_timer() const;  // kNever: none is set
  static constexpr core::Nanoseconds kNever = INT64_MAX;
  static constexpr int kFirstFd = 1 << 20;

  uint32_t random() { return random_(); }
  bool by_chance(uint32_t one_in) { return random_() % one_in == 0; }
  core::Nanoseconds now() { return now_ += kReading; }
  void pass(core::Nanoseconds time) { now_ += time; }
  void advance_to(core::Nanoseconds time) { now_ = std::max(now_, time); }

  // How often bytes, FIN or RST went into or out of a connection.
  uint64_t events() const { return events_; }
  // Run by chance before and behind a call that moves bytes, as if another thread did it meanwhile.
  std::function<void()> meanwhile;
  // What the program does before each call that sends.
  std::function<void()> before_send;

 private:
  // Looking at the clock takes time, so that what happens one after the other does so in time too.
  static constexpr core::Nanoseconds kReading = 20;

  struct Socket {
    std::shared_ptr<Pipe> in, out;
    bool abortive = false;
    bool told_reset = false;
  };
  const Socket* find(int fd) const;
  Socket* find(int fd) { return const_cast<Socket*>(std::as_const(*this).find(fd)); }
  void let_others_run();
  size_t piece();

  std::mt19937 random_;
  core::Nanoseconds now_ = core::kSecond;
  uint64_t events_ = 0;
  int next_fd_ = kFirstFd;
  std::map<int, Socket> sockets_;
  std::map<int, core::Nanoseconds> timers_;
};

}  // namespace uiw::test
