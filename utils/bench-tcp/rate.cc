// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <errno.h>
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

constexpr size_t kReceive = 256 << 10;  // octets that one call takes, as many messages as there are

}  // namespace

void rate_serve(int listener, const Load& load) {
  const int fd = accept_one(listener);
  std::vector<char> buffer(kReceive);
  size_t left = load.size * static_cast<size_t>(load.iterations);
  while (left > 0) {
    const ssize_t got =
        recv(fd, buffer.data(), buffer.size(), load.wait == Wait::kSpin ? MSG_DONTWAIT : 0);
    if (got > 0)
      left -= std::min(left, static_cast<size_t>(got));
    else if (got == 0 || (errno != EINTR && errno != EAGAIN))
      die("recv");
  }
  acknowledge(fd);
}

double rate_measure(const sockaddr_in& server, const Load& load) {
  const int fd = connect_to(server);
  const std::vector<char> messages(load.size * static_cast<size_t>(load.batch), 'u');
  const int64_t start = core::now();
  for (int sent = 0; sent < load.iterations; sent += load.batch)
    send_all(fd, messages.data(),
             load.size * static_cast<size_t>(std::min(load.batch, load.iterations - sent)));
  await_acknowledgement(fd);
  const int64_t ns = core::now() - start;
  close(fd);
  return load.iterations / (static_cast<double>(ns) / 1000.0);
}

}  // namespace uiw::bench
