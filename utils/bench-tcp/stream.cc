// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "connection.h"
#include "core/clock.h"
#include "server_process.h"
#include "shapes.h"

namespace uiw::bench {

double mib_per_second(const Load& load, int64_t ns) {
  const double octets = static_cast<double>(load.size) * load.iterations;
  return octets / (1 << 20) / (static_cast<double>(ns) / 1e9);
}

void stream_serve(int listener, const Load& load) {
  const int fd = accept_one(listener);
  std::vector<char> buffer(load.size);
  for (int i = 0; i < load.iterations; i++) {
    if (load.wait == Wait::kSpin)
      spin_receive(fd, buffer.data(), load.size);
    else if (!receive(fd, buffer.data(), load.size))
      die("peer ended early");
  }
  acknowledge(fd);
}

double stream_measure(const sockaddr_in& server, const Load& load) {
  const int fd = connect_to(server);
  const std::vector<char> buffer(load.size, 'u');
  const int64_t start = core::now();
  for (int sent = 0; sent < load.iterations; sent += load.batch)
    send_copies(fd, buffer.data(), load.size, std::min(load.batch, load.iterations - sent));
  await_acknowledgement(fd);
  const int64_t ns = core::now() - start;
  close(fd);
  return mib_per_second(load, ns);
}

void read_stream_serve(int listener, const Load& load) {
  const int fd = accept_one(listener);
  const std::vector<char> buffer(load.size, 'u');
  char request;
  while (receive(fd, &request, 1)) send_all(fd, buffer.data(), load.size);
}

double read_stream_measure(const sockaddr_in& server, const Load& load) {
  const int fd = connect_to(server);
  std::vector<char> buffer(load.size);
  const char request = 1;
  int asked = 0;
  const int64_t start = core::now();
  for (int i = 0; i < load.iterations; i++) {
    for (; asked < load.iterations && asked < i + load.outstanding; asked++)
      send_all(fd, &request, 1);
    if (!receive(fd, buffer.data(), load.size)) die("peer ended early");
  }
  const int64_t ns = core::now() - start;
  close(fd);
  return mib_per_second(load, ns);
}

}  // namespace uiw::bench
