// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
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

void answer(int fd, const Load& load, size_t request, size_t response) {
  std::vector<char> buffer(std::max(request, response));
  for (int i = 0; i < load.iterations + kWarmUp; i++) {
    spin_receive(fd, buffer.data(), request);
    send_all(fd, buffer.data(), response);
  }
}

double ask(int fd, const Load& load, size_t request, size_t response) {
  std::vector<char> buffer(std::max(request, response));
  std::vector<int64_t> samples;
  samples.reserve(static_cast<size_t>(load.iterations));
  for (int i = 0; i < load.iterations + kWarmUp; i++) {
    const int64_t start = now_ns();
    send_all(fd, buffer.data(), request);
    spin_receive(fd, buffer.data(), response);
    if (i >= kWarmUp) samples.push_back(now_ns() - start);
  }
  return median_us(samples);
}

}  // namespace

void ping_pong_serve(int fd, const Load& load) { answer(fd, load, load.size, load.size); }
double ping_pong_measure(int fd, const Load& load) { return ask(fd, load, load.size, load.size); }
void read_serve(int fd, const Load& load) { answer(fd, load, kRequest, load.size); }
double read_measure(int fd, const Load& load) { return ask(fd, load, kRequest, load.size); }

}  // namespace uiw::bench
