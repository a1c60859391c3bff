// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "connection.h"
#include "shapes.h"

namespace uiw::bench {
namespace {

constexpr size_t kRequest = 28;  // octets of an RDMAP Read Request header
constexpr int kWarmUp = 200;     // round trips before the clock starts

double median_us(std::vector<int64_t>& samples) {
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  return static_cast<double>(samples[samples.size() / 2]) / 1000.0;
}

void take(int fd, const Load& load, std::vector<char>& buffer, size_t size) {
  if (load.wait != Wait::kBlock)
    spin_receive(fd, buffer.data(), size);
  else if (!receive(fd, buffer.data(), size))
    die("peer ended early");
}

void answer(int listener, const Load& load, size_t request, size_t response) {
  const int fd = accept_one(listener);
  std::vector<char> buffer(std::max(request, response));
  for (int i = 0; i < load.iterations + kWarmUp; i++) {
    take(fd, load, buffer, request);
    send_all(fd, buffer.data(), response);
  }
}

double ask(const sockaddr_in& server, const Load& load, size_t request, size_t response) {
  const int fd = connect_to(server);
  std::vector<char> buffer(std::max(request, response));
  std::vector<int64_t> samples;
  samples.reserve(static_cast<size_t>(load.iterations));
  for (int i = 0; i < load.iterations + kWarmUp; i++) {
    const int64_t start = now_ns();
    send_all(fd, buffer.data(), request);
    take(fd, load, buffer, response);
    if (i >= kWarmUp) samples.push_back(now_ns() - start);
  }
  close(fd);
  return median_us(samples);
}

}  // namespace

void ping_pong_serve(int listener, const Load& load) {
  answer(listener, load, load.size, load.size);
}
double ping_pong_measure(const sockaddr_in& server, const Load& load) {
  return ask(server, load, load.size, load.size);
}
void read_serve(int listener, const Load& load) {
  answer(listener, load, kRequest, load.size);
}
double read_measure(const sockaddr_in& server, const Load& load) {
  return ask(server, load, kRequest, load.size);
}

}  // namespace uiw::bench
