// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "connection.h"
#include "core/clock.h"
#include "median.h"
#include "server_process.h"
#include "shapes.h"

namespace uiw::bench {
namespace {

constexpr size_t kRequest = 28;  // octets of an RDMAP Read Request header

int messages_of(const Load& load) {
  return load.iterations + kWarmUp;
}

void take(int fd, const Load& load, std::vector<char>& buffer, size_t size) {
  if (load.wait != Wait::kBlock)
    spin_receive(fd, buffer.data(), size);
  else if (!receive(fd, buffer.data(), size))
    die("peer ended early");
}

// What a target of RDMA Writes has to be whose program calls nothing: a thread receives and the
// program sees it in its memory. The thread runs on the processor where its packets are, from which
// it is woken soonest.
class Deliveries {
 public:
  Deliveries(int fd, size_t size, int messages)
      : thread_([this, fd, size, messages] { receive_all(fd, size, messages); }) {}
  ~Deliveries() { thread_.join(); }
  Deliveries(const Deliveries&) = delete;
  Deliveries& operator=(const Deliveries&) = delete;

  // Spins until message `number`, from 0 on, is there.
  void await(int number) const {
    while (delivered_.load(std::memory_order_acquire) <= number) {
    }
  }

 private:
  static constexpr int kFollow = 16;  // messages after which the thread looks where its packets are

  void receive_all(int fd, size_t size, int messages) {
    std::vector<char> buffer(size);
    for (int i = 0; i < messages; i++) {
      if (!receive(fd, buffer.data(), size)) die("peer ended early");
      delivered_.store(i + 1, std::memory_order_release);
      if (i % kFollow == 0) follow(fd);
    }
  }

  // Where that fails it is slower, no more.
  static void follow(int fd) {
    int cpu = -1;
    socklen_t size = sizeof cpu;
    if (getsockopt(fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, &size) != 0) return;
    if (cpu < 0 || cpu >= CPU_SETSIZE || cpu == sched_getcpu()) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
  }

  alignas(64) std::atomic<int> delivered_{0};
  std::thread thread_;
};

// Every `await(number)` is answered by `size` octets at `data`.
template <typename Await>
void answer(int fd, const Load& load, const char* data, size_t size, Await await) {
  for (int i = 0; i < messages_of(load); i++) {
    await(i);
    send_all(fd, data, size);
  }
}

template <typename Await>
double ask(int fd, const Load& load, const char* data, size_t size, Await await) {
  std::vector<int64_t> samples;
  samples.reserve(static_cast<size_t>(load.iterations));
  for (int i = 0; i < messages_of(load); i++) {
    const int64_t start = core::now();
    send_all(fd, data, size);
    await(i);
    if (i >= kWarmUp) samples.push_back(core::now() - start);
  }
  return median_us(samples);
}

void serve(int listener, const Load& load, size_t request, size_t response) {
  const int fd = accept_one(listener);
  std::vector<char> buffer(std::max(request, response));
  if (load.wait == Wait::kMemory) {
    const Deliveries requests(fd, request, messages_of(load));
    answer(fd, load, buffer.data(), response, [&](int i) { requests.await(i); });
  } else {
    answer(fd, load, buffer.data(), response, [&](int) { take(fd, load, buffer, request); });
  }
}

double measure(const sockaddr_in& server, const Load& load, size_t request, size_t response) {
  const int fd = connect_to(server);
  std::vector<char> buffer(std::max(request, response));
  double round_trip;
  if (load.wait == Wait::kMemory) {
    const Deliveries responses(fd, response, messages_of(load));
    round_trip = ask(fd, load, buffer.data(), request, [&](int i) { responses.await(i); });
  } else {
    round_trip =
        ask(fd, load, buffer.data(), request, [&](int) { take(fd, load, buffer, response); });
  }
  close(fd);
  return round_trip;
}

}  // namespace

void ping_pong_serve(int listener, const Load& load) {
  serve(listener, load, load.size, load.size);
}
double ping_pong_measure(const sockaddr_in& server, const Load& load) {
  return measure(server, load, load.size, load.size);
}
void read_serve(int listener, const Load& load) {
  serve(listener, load, kRequest, load.size);
}
double read_measure(const sockaddr_in& server, const Load& load) {
  return measure(server, load, kRequest, load.size);
}

}  // namespace uiw::bench
