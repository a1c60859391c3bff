// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A queue pair on an engine of its own, with what it needs around it and a record of what it tells;
// and sockets to attach it to.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "session/queue_pair.h"
#include "support/machine.h"
#include "support/stranger.h"

namespace uiw::test {

// Far beyond what anything takes: for a test that would hang.
inline bool wait_until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    sched_yield();
  }
  return true;
}

// Two ends of a TCP connection over loopback. Both non-blocking when `ours` and `theirs` are to be
// taken over by streams; a raw peer makes its own blocking again.
struct SocketEnds {
  int ours = -1, theirs = -1;
};
// `mss` of both; 0 for what loopback has, about 64 KiB.
inline SocketEnds connect_sockets(int mss = 0) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (mss) setsockopt(listener, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof mss);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener, 1), 0);
  EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  SocketEnds ends;
  ends.theirs = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (mss) setsockopt(ends.theirs, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof mss);
  EXPECT_EQ(connect(ends.theirs, reinterpret_cast<sockaddr*>(&address), size), 0)
      << strerror(errno);
  ends.ours = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  EXPECT_GE(ends.ours, 0);
  fcntl(ends.theirs, F_SETFL, O_NONBLOCK);
  close(listener);
  return ends;
}

struct HostOptions {
  bool initiator = false;
  bool crc = true;
  bool tx_markers = false, rx_markers = false;
  mpa::Rtr rtr = mpa::Rtr::kNone;
  uint16_t ird = 4, ord = 4;
  uint32_t depth = 64, receives = 64;
  queue::CompletionEvents* cq_events = nullptr;  // of both queues
  progress::BusyPoller* busy_poller = nullptr;
  queue::ReceiveQueue* srq = nullptr;  // null: one of its own
  core::Service service = core::Service::kReliable;
};

// The peer behind `fd` has read nothing, and both sockets are full.
inline bool wait_until_nothing_moves(int fd) {
  int before = -1, now = 0, calm = 0;
  return wait_until([&] {
    EXPECT_EQ(ioctl(fd, FIONREAD, &now), 0);
    calm = now > 0 && now == std::exchange(before, now) ? calm + 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return calm == 25;
  });
}

class Host final : public session::ConnectionObserver, public queue::QueuePairEvents {
 public:
  explicit Host(engine::Engine& its_engine, const HostOptions& wanted = {})
      : engine(its_engine),
        options(wanted),
        send_cq(queue::CompletionQueue::create(4096, wanted.cq_events)),
        recv_cq(queue::CompletionQueue::create(4096, wanted.cq_events)) {
    session::QueuePairOptions o;
    o.qp_num = 42;
    o.service = wanted.service;
    o.pd = kPd;
    o.memory = &memory;
    o.send_cq = send_cq.get();
    o.recv_cq = recv_cq.get();
    o.events = this;
    o.busy_poller = wanted.busy_poller;
    o.srq = wanted.srq;
    o.srq_pd = kPd;
    o.cap = {.max_send_wr = wanted.depth,
             .max_recv_wr = wanted.receives,
             .max_send_sge = 4,
             .max_recv_sge = 4,
             .max_inline_data = 64};
    qp = session::QueuePair::create(engine, o);
  }
  ~Host() { destroy(); }

  // Takes the socket over.
  int attach(int fd, core::Bytes leftover = {}) {
    return attach(transport::TcpStream::adopt(engine, fd), leftover);
  }
  int attach(transport::StreamPtr stream, core::Bytes leftover = {}) {
    mpa::Agreement agreement;
    agreement.initiator = options.initiator;
    agreement.crc = options.crc;
    agreement.tx_markers = options.tx_markers;
    agreement.rx_markers = options.rx_markers;
    agreement.rtr = options.rtr;
    agreement.ird = options.ird;
    agreement.ord = options.ord;
    int result = -1;
    engine.run_sync([&] {
      transport::StreamPtr refused_ends_here = std::move(stream);
      result = qp->attach(std::move(refused_ends_here), agreement, leftover, this);
    });
    return result;
  }
  void destroy() {
    if (qp) engine.run_sync([&] { qp->forget_observer(); });
    qp.reset();
  }

  int post(SendWr wr) {
    ibv_send_wr* bad = nullptr;
    return qp->post_send(&wr.get(), &bad);
  }
  int receive(RecvWr wr) {
    ibv_recv_wr* bad = nullptr;
    return qp->post_recv(&wr.get(), &bad);
  }
  int modify(ibv_qp_state state) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    return qp->modify(attr, IBV_QP_STATE);
  }
  // What ends a queue pair from this side.
  enum class Ending { kDestroy, kError, kReset, kDisconnect };
  static constexpr Ending kEndings[] = {Ending::kDestroy, Ending::kError, Ending::kReset,
                                        Ending::kDisconnect};
  void end_by(Ending how) {
    switch (how) {
      case Ending::kDestroy:
        destroy();
        break;
      case Ending::kError:
        EXPECT_EQ(modify(IBV_QPS_ERR), 0);
        break;
      case Ending::kReset:
        EXPECT_EQ(modify(IBV_QPS_RESET), 0);
        break;
      case Ending::kDisconnect:
        engine.run_sync([&] { qp->disconnect(); });
        break;
    }
  }
  // Whether the observer is told of it.
  static bool is_told(Ending how) { return how == Ending::kError || how == Ending::kDisconnect; }
  ibv_qp_state state() {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(qp->query(attr, IBV_QP_STATE, init), 0);
    return attr.qp_state;
  }
  std::vector<ibv_wc> sent() { return add(sent_, *send_cq); }
  std::vector<ibv_wc> received() { return add(received_, *recv_cq); }
  std::vector<ibv_event_type> events() {
    const std::lock_guard guard(mutex_);
    return events_;
  }
  std::optional<int> end_error() {
    const std::lock_guard guard(mutex_);
    return end_error_;
  }
  bool heard() {
    const std::lock_guard guard(mutex_);
    return heard_;
  }
  bool ended() { return end_error().has_value(); }
  bool wait_for_end() {
    return wait_until([&] { return ended(); });
  }

  void on_first_fpdu() override {
    const std::lock_guard guard(mutex_);
    heard_ = true;
  }
  void on_connection_ended(int error) override {
    const std::lock_guard guard(mutex_);
    end_error_ = error;
  }
  void on_async_event(ibv_event_type type) override {
    const std::lock_guard guard(mutex_);
    events_.push_back(type);
  }

  engine::Engine& engine;
  const HostOptions options;
  mem::Table memory;
  std::unique_ptr<queue::CompletionQueue> send_cq, recv_cq;
  std::unique_ptr<session::QueuePair> qp;

 private:
  static std::vector<ibv_wc> add(std::vector<ibv_wc>& all, queue::CompletionQueue& cq) {
    for (const ibv_wc& wc : drain(cq)) all.push_back(wc);
    return all;
  }
  std::vector<ibv_wc> sent_, received_;
  std::mutex mutex_;
  std::vector<ibv_event_type> events_;
  std::optional<int> end_error_;
  bool heard_ = false;
};

// Two threads that poll a completion queue in vain, or throw away what they find.
class Spinners {
 public:
  explicit Spinners(queue::CompletionQueue& cq) {
    const auto spin = [this, &cq] {
      ibv_wc wc;
      while (!over_) cq.poll(1, &wc);
    };
    one_ = std::thread(spin);
    two_ = std::thread(spin);
  }
  ~Spinners() {
    over_ = true;
    one_.join();
    two_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread one_, two_;
};

// A thread that polls a completion queue and always finds something.
class Finder {
 public:
  explicit Finder(queue::CompletionQueue& cq)
      : thread_([this, &cq] {
          Stranger stranger;
          ibv_wc taken;
          while (!over_) {
            cq.push(stranger.completion(), false);
            cq.poll(1, &taken);
          }
        }) {}
  ~Finder() {
    over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

// The other end of a connection: a socket that says what the test wants, wherever it wants.
class RawPeer {
 public:
  explicit RawPeer(int fd) : fd_(fd) { fcntl(fd, F_SETFL, 0); }
  RawPeer(RawPeer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~RawPeer() { close(); }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  // False when the other side takes no more.
  bool send(std::span<const uint8_t> octets) {
    while (!octets.empty()) {
      const ssize_t sent = ::send(fd_, octets.data(), octets.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      octets = octets.subspan(static_cast<size_t>(sent));
    }
    return true;
  }
  // Everything until FIN or RST; `reset` says which.
  Octets receive_all(bool* reset = nullptr) {
    Octets out;
    uint8_t buffer[65536];
    ssize_t size;
    while ((size = ::recv(fd_, buffer, sizeof buffer, 0)) > 0)
      out.insert(out.end(), buffer, buffer + size);
    if (reset) *reset = size < 0;
    return out;
  }
  Octets receive(size_t size) {
    Octets out(size);
    const ssize_t got = size ? ::recv(fd_, out.data(), size, MSG_WAITALL) : 0;
    out.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return out;
  }
  void finish() { ::shutdown(fd_, SHUT_WR); }
  void reset() {
    const linger at_once{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace uiw::test
