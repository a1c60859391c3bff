// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the tests of the engine and of what runs on it share.
#pragma once

#include <arpa/inet.h>
#include <dirent.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/engine.h"

namespace uiw::test {

// A value that one thread changes and another waits for.
template <class T>
class Watched {
 public:
  explicit Watched(T value = {}) : value_(std::move(value)) {}
  void set(T value) {
    change([&](T& old) { old = std::move(value); });
  }
  template <class Change>
  void change(Change&& change) {
    std::lock_guard guard(mutex_);
    change(value_);
    changed_.notify_all();
  }
  T get() {
    std::lock_guard guard(mutex_);
    return value_;
  }
  // Returns the value that made `condition` true. There is no limit: ctest ends a test that hangs.
  template <class Condition>
  T wait(Condition&& condition) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return condition(value_); });
    return value_;
  }
  T wait_for(const T& value) {
    return wait([&](const T& now) { return now == value; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  T value_;
};

// Waits for something that only the kernel knows.
template <class Condition>
void poll_until(Condition&& condition) {
  while (!condition()) sched_yield();
}

inline int entries_of(const char* folder) {
  DIR* directory = opendir(folder);
  int count = 0;
  while (readdir(directory)) ++count;
  closedir(directory);
  return count - 2 - (strcmp(folder, "/proc/self/fd") == 0 ? 1 : 0);
}
inline int open_descriptors() {
  return entries_of("/proc/self/fd");
}
inline int threads() {
  return entries_of("/proc/self/task");
}

inline std::unique_ptr<engine::Engine> start_engine() {
  auto started = engine::Engine::start();
  EXPECT_TRUE(started) << strerror(started.error());
  return started ? std::move(*started) : nullptr;
}

inline sockaddr_storage loopback(uint16_t port = 0) {
  sockaddr_storage address{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  v4.sin_port = htons(port);
  return address;
}
inline sockaddr_storage loopback6(uint16_t port = 0) {
  sockaddr_storage address{};
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_loopback;
  v6.sin6_port = htons(port);
  return address;
}
inline sockaddr* raw(sockaddr_storage& address) {
  return reinterpret_cast<sockaddr*>(&address);
}
inline const sockaddr* raw(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}
inline socklen_t size_of(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}
inline sockaddr_storage name_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  EXPECT_EQ(getsockname(fd, raw(address), &size), 0);
  return address;
}

// A blocking TCP listener of the test itself, closed at the end.
class PlainListener {
 public:
  explicit PlainListener(int backlog = 64, sockaddr_storage address = loopback())
      : fd_(socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    EXPECT_EQ(bind(fd_, raw(address), size_of(address)), 0) << strerror(errno);
    EXPECT_EQ(listen(fd_, backlog), 0);
  }
  ~PlainListener() { ::close(fd_); }
  int fd() const { return fd_; }
  sockaddr_storage address() const { return name_of(fd_); }

 private:
  int fd_;
};

// Two connected TCP sockets: `ours` is non-blocking and for the code under test to take over,
// `theirs` is blocking and the test's.
struct SocketPair {
  int ours = -1;
  int theirs = -1;
};
inline SocketPair connected_pair(sockaddr_storage address = loopback()) {
  PlainListener listener(1, address);
  SocketPair pair;
  pair.theirs = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_storage to = listener.address();
  EXPECT_EQ(connect(pair.theirs, raw(to), size_of(to)), 0) << strerror(errno);
  pair.ours = accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  EXPECT_GE(pair.ours, 0) << strerror(errno);
  return pair;
}

}  // namespace uiw::test
