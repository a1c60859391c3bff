// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the tests of connection management stand on: queue pairs that are nothing but a stream, a
// channel whose events can be waited for, and a peer that speaks TCP by hand.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cm/manager.h"
#include "cm/startup_io.h"
#include "transport/addresses.h"

namespace uiw::cm::test {

using Octets = std::vector<uint8_t>;

inline sockaddr_storage ip(const char* text, uint16_t port) {
  sockaddr_storage address{};
  if (std::strchr(text, ':') != nullptr) {
    address.ss_family = AF_INET6;
    EXPECT_EQ(1, inet_pton(AF_INET6, text, &reinterpret_cast<sockaddr_in6&>(address).sin6_addr));
  } else {
    address.ss_family = AF_INET;
    EXPECT_EQ(1, inet_pton(AF_INET, text, &reinterpret_cast<sockaddr_in&>(address).sin_addr));
  }
  transport::set_port(address, port);
  return address;
}

// A queue pair without RDMA: says its first octet when it is the initiator and an RTR was agreed,
// reports the peer's first octets and its end.
class FakeQueuePair final : private transport::StreamHandler, private engine::Task {
 public:
  explicit FakeQueuePair(bool mute) : mute_(mute) {}

  int attach(StreamPtr&& stream, const mpa::Agreement& agreement, core::Bytes leftover,
             session::ConnectionObserver* observer) {
    if (attached) return EINVAL;
    attached = true;
    agreed = agreement;
    octets_behind_reply.assign(leftover.begin(), leftover.end());
    stream_ = std::move(stream);
    observer_ = observer;
    // One that sends no RTR frame still notices that the connection ends.
    stream_->set_handler(mute_ ? this : nullptr);
    if (agreement.initiator && agreement.rtr != mpa::Rtr::kNone && !mute_) {
      const iovec piece{const_cast<char*>("r"), 1};
      stream_->send(&piece, 1);
      owner_engine_->post(*this);  // the observer is told in a later turn
    }
    return 0;
  }
  void receive() {
    if (stream_ != nullptr) stream_->set_handler(this);
  }
  void disconnect() {
    ++disconnects;
    if (stream_ != nullptr) stream_->shutdown_write();
  }
  void forget_observer() { observer_ = nullptr; }
  // Since attach(), those behind the Reply first.
  Octets all_octets() const {
    Octets all = octets_behind_reply;
    all.insert(all.end(), received_.begin(), received_.end());
    return all;
  }
  void cut() { end(ECONNABORTED); }  // as ibv_destroy_qp

  engine::Engine* owner_engine_ = nullptr;
  bool attached = false;
  int disconnects = 0;
  mpa::Agreement agreed;
  Octets octets_behind_reply;

 private:
  void run() override { tell_first(); }
  void tell_first() {
    if (std::exchange(told_, true) || observer_ == nullptr) return;
    observer_->on_first_fpdu();
  }
  void on_octets(core::Bytes octets) override {
    received_.insert(received_.end(), octets.begin(), octets.end());
    if (!agreed.initiator) tell_first();
  }
  void on_end_of_stream() override { end(0); }
  void on_error(int error) override { end(error); }
  void on_writable() override {}
  void end(int error) {
    stream_.reset();
    if (auto* told = std::exchange(observer_, nullptr)) told->on_connection_ended(error);
  }

  const bool mute_;
  bool told_ = false;
  Octets received_;
  StreamPtr stream_;
  session::ConnectionObserver* observer_ = nullptr;
};

// Numbers 1 to 99 exist. Thread: engine, except before any connection and claim().
class FakeQueuePairs final : public QueuePairs {
 public:
  bool exists(uint32_t qp_num) override { return qp_num >= 1 && qp_num < 100 && qp_num != gone; }
  int claim(uint32_t qp_num) override {
    if (qp_num < 1 || qp_num >= 100) return EINVAL;
    const std::lock_guard hold(claims_->mutex);
    return claims_->numbers.insert(qp_num).second ? 0 : EINVAL;
  }
  void abandon(uint32_t qp_num) override { abandoned.push_back(qp_num); }
  int attach(uint32_t qp_num, StreamPtr&& stream, const mpa::Agreement& agreement,
             core::Bytes leftover, session::ConnectionObserver* observer) override {
    if (!exists(qp_num)) return EINVAL;
    FakeQueuePair& qp = at(qp_num);
    qp.owner_engine_ = engine;
    return qp.attach(std::move(stream), agreement, leftover, observer);
  }
  void receive(uint32_t qp_num) override {
    if (exists(qp_num)) at(qp_num).receive();
  }
  void set_ack_timeout(uint32_t, uint8_t timeout) override { ack_timeout = timeout; }
  void await_receives(uint32_t, bool for_ever) override { awaits_receives = for_ever; }
  void disconnect(uint32_t qp_num) override {
    if (exists(qp_num)) at(qp_num).disconnect();
  }
  bool forget_observer(uint32_t qp_num) override {
    if (!exists(qp_num)) return false;
    at(qp_num).forget_observer();
    return true;
  }
  FakeQueuePair& at(uint32_t qp_num) {
    auto& qp = queue_pairs_[qp_num];
    if (qp == nullptr) qp = std::make_unique<FakeQueuePair>(mute);
    return *qp;
  }

  engine::Engine* engine = nullptr;
  bool mute = false;  // initiators that never send their RTR
  uint32_t gone = 0;  // a number that cannot be found any more
  std::vector<uint32_t> abandoned;
  int ack_timeout = -1;                 // of the last set_ack_timeout()
  std::optional<bool> awaits_receives;  // likewise, of await_receives()

 private:
  struct Claims {
    std::mutex mutex;
    std::set<uint32_t> numbers;
  };
  std::unique_ptr<Claims> claims_ = std::make_unique<Claims>();
  std::map<uint32_t, std::unique_ptr<FakeQueuePair>> queue_pairs_;
};

// An event channel with the application's side of it.
class TestChannel final : private EventSink {
 public:
  explicit TestChannel(Manager& manager) : manager_(manager) {
    manager_.open_channel(channel, *this);
  }
  ~TestChannel() { close(); }
  void close() {
    if (std::exchange(open_, false)) manager_.close_channel(channel);
  }

  // Waits for the next event.
  Event next() {
    for (;;) {
      Event event;
      if (manager_.next_event(channel, event) == 0) return event;
      std::unique_lock hold(mutex_);
      changed_.wait(hold, [this] { return told_; });
    }
  }
  Event expect(EventType type, int status = 0) {
    Event event = next();
    EXPECT_EQ(static_cast<uint32_t>(type), static_cast<uint32_t>(event.type));
    EXPECT_EQ(status, event.status);
    return event;
  }
  int queued() {
    std::lock_guard hold(manager_.lock());
    return static_cast<int>(channel.events.size());
  }

  Channel channel;
  // Called just before the descriptor becomes readable. Set it before anything can happen.
  std::function<void()> on_notify;

 private:
  void notify() override {
    if (on_notify) on_notify();
    std::lock_guard hold(mutex_);
    told_ = true;
    changed_.notify_all();
  }
  bool clear() override {
    std::lock_guard hold(mutex_);
    return std::exchange(told_, false);
  }

  Manager& manager_;
  bool open_ = true;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool told_ = false;
};

// A TCP endpoint operated by hand; blocking.
class RawPeer {
 public:
  RawPeer() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  explicit RawPeer(int fd) : fd_(fd) {}
  RawPeer(RawPeer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawPeer& operator=(RawPeer&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~RawPeer() { close(); }

  void connect(const sockaddr_storage& to) {
    ASSERT_EQ(0, ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), transport::length_of(to)))
        << strerror(errno);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  // Listens; returns the address.
  sockaddr_storage listen(sockaddr_storage address = ip("127.0.0.1", 0)) {
    socklen_t size = sizeof address;
    const int on = 1;
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    EXPECT_EQ(0, bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(sockaddr_in)));
    EXPECT_EQ(0, ::listen(fd_, 16));
    EXPECT_EQ(0, getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size));
    return address;
  }
  RawPeer accept() { return RawPeer(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)); }

  void send(const Octets& octets) {
    EXPECT_EQ(static_cast<ssize_t>(octets.size()),
              ::send(fd_, octets.data(), octets.size(), MSG_NOSIGNAL));
  }
  void send(const mpa::StartupFrame& frame) { send(encoded(frame)); }
  // False: the other end has closed it already.
  bool try_send(const mpa::StartupFrame& frame) {
    const Octets octets = encoded(frame);
    return ::send(fd_, octets.data(), octets.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(octets.size());
  }
  static Octets encoded(const mpa::StartupFrame& frame) {
    Octets octets(mpa::kMaxStartupFrame);
    octets.resize(mpa::encode(octets.data(), frame));
    return octets;
  }
  // TCP_ESTABLISHED, ...
  int state() const {
    tcp_info info{};
    socklen_t size = sizeof info;
    EXPECT_EQ(0, getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size));
    return info.tcpi_state;
  }
  // Exactly that many octets, or what came before the end.
  Octets receive(size_t size) {
    Octets octets(size);
    size_t have = 0;
    while (have < size) {
      const ssize_t got = recv(fd_, octets.data() + have, size - have, 0);
      if (got <= 0) break;
      have += static_cast<size_t>(got);
    }
    octets.resize(have);
    return octets;
  }
  // Whether something has come, or the other end has closed it.
  bool is_answered() const {
    char next;
    return ::recv(fd_, &next, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
  }
  mpa::StartupFrame receive_frame(mpa::FrameKind kind) {
    Octets octets = receive(mpa::kStartupHeaderSize);
    mpa::StartupFrame frame;
    if (octets.size() < mpa::kStartupHeaderSize) {
      ADD_FAILURE() << "the connection ended before a frame came";
      return frame;
    }
    const Octets rest = receive(static_cast<size_t>(octets[18] << 8 | octets[19]));
    octets.insert(octets.end(), rest.begin(), rest.end());
    uint32_t consumed = 0;
    EXPECT_EQ(mpa::ParseStatus::kComplete, mpa::parse(octets, kind, frame, consumed));
    return frame;
  }
  // Waits for the end of the connection and returns whatever came before it.
  Octets receive_all() {
    Octets all;
    uint8_t piece[256];
    ssize_t got;
    while ((got = recv(fd_, piece, sizeof piece, 0)) > 0) all.insert(all.end(), piece, piece + got);
    return all;
  }
  void finish_sending() { shutdown(fd_, SHUT_WR); }
  void reset() {
    const linger at_once{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

inline mpa::StartupFrame request_frame(uint8_t revision = 2) {
  mpa::Wishes wishes;
  wishes.revision = revision;
  wishes.ird = 4;
  wishes.ord = 3;
  return mpa::make_request(wishes);
}

inline ConnParam conn_param(uint32_t qp_num, const std::string& data = "", uint8_t ird = 4,
                            uint8_t ord = 4) {
  ConnParam param;
  param.qp_num = qp_num;
  param.responder_resources = ird;
  param.initiator_depth = ord;
  param.private_data_len = static_cast<uint8_t>(data.size());
  std::memcpy(param.private_data, data.data(), data.size());
  return param;
}

inline std::string data_of(const ConnParam& param) {
  return {reinterpret_cast<const char*>(param.private_data), param.private_data_len};
}

class ConnectionTest : public ::testing::Test {
 protected:
  explicit ConnectionTest(device::CmRules rules = device::CmRules::kIwarp)
      : manager_(qps_, settings_, rules_of(rules)) {}
  // After changing settings_, before the first connection.
  void SetUp() override {
    auto acquired = engine::EngineRef::acquire();
    ASSERT_TRUE(acquired.has_value()) << strerror(acquired.error());
    engine_ = std::move(*acquired);
    qps_.engine = &*engine_;
    settings_.close_timeout_ms = 2000;
  }
  void TearDown() override {
    channel_.close();
    // The fakes' streams belong to the engine thread.
    engine_->run_sync([this] { qps_ = {}; });
  }

  uint32_t new_id(uint64_t uid, TestChannel* channel = nullptr) {
    uint32_t id = 0;
    EXPECT_EQ(0, manager_.create_id((channel ? channel : &channel_)->channel, uid, space_,
                                    Service::kConnection, id));
    return id;
  }
  // Listens on `host`; the address to connect to is listen_address_.
  uint32_t new_listener(uint64_t uid, uint32_t backlog = 0, const char* host = "127.0.0.1") {
    const uint32_t id = new_id(uid);
    EXPECT_EQ(0, manager_.bind(channel_.channel, id, ip(host, 0)));
    EXPECT_EQ(0, manager_.listen(channel_.channel, id, backlog));
    Route route;
    EXPECT_EQ(0, manager_.query(channel_.channel, id, route));
    EXPECT_NE(0, transport::port_of(route.source));
    listen_address_ = route.source;
    return id;
  }
  // An id that is ready for connect().
  uint32_t new_resolved(uint64_t uid, const sockaddr_storage& to) {
    const uint32_t id = new_id(uid);
    EXPECT_EQ(0, manager_.resolve_address(channel_.channel, id, {}, to));
    EXPECT_EQ(uid, channel_.expect(EventType::kAddrResolved).uid);
    EXPECT_EQ(0, manager_.resolve_route(channel_.channel, id));
    EXPECT_EQ(uid, channel_.expect(EventType::kRouteResolved).uid);
    return id;
  }
  // Of the listener, by hand.
  RawPeer dial() {
    RawPeer peer;
    peer.connect(listen_address_);
    return peer;
  }
  Event request(RawPeer& peer, const mpa::StartupFrame& frame) {
    peer.send(frame);
    return channel_.expect(EventType::kConnectRequest);
  }
  int connect(uint32_t id, const ConnParam& param) {
    return manager_.connect(channel_.channel, id, param);
  }
  int accept(uint32_t id, uint64_t uid, const ConnParam& param) {
    return manager_.accept(channel_.channel, id, uid, param);
  }
  int disconnect(uint32_t id) { return manager_.disconnect(channel_.channel, id); }
  // Returns events_reported.
  uint32_t destroy(uint32_t id) {
    uint32_t reported = 0;
    EXPECT_EQ(0, manager_.destroy_id(channel_.channel, id, reported));
    return reported;
  }
  // Runs behind everything the engine has been told so far.
  void settle() {
    engine_->run_sync([] {});
  }

  core::Settings settings_;
  PortSpace space_ = PortSpace::kTcp;  // of new ids
  engine::EngineRef engine_;
  FakeQueuePairs qps_;
  Manager manager_;
  TestChannel channel_{manager_};
  sockaddr_storage listen_address_{};
};

}  // namespace uiw::cm::test
