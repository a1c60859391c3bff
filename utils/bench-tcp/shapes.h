// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The shapes of traffic. Each has a side that serves until the peer ends, and a side that measures.
#pragma once

#include <cstddef>

namespace uiw::bench {

struct Load {
  size_t size = 64;         // octets of a message
  int iterations = 20000;
  int outstanding = 16;     // read streams: requests in flight
};

// Ping-pong, both ends spinning on non-blocking recv. Median microseconds of a round trip.
void ping_pong_serve(int fd, const Load& load);
double ping_pong_measure(int fd, const Load& load);

// A small request answered by `size` octets, both ends spinning. Median microseconds of a round trip.
void read_serve(int fd, const Load& load);
double read_measure(int fd, const Load& load);

// One way: messages of `size` octets, the last one acknowledged. MiB per second.
void stream_serve(int fd, const Load& load);
double stream_measure(int fd, const Load& load);

// Requests answered by `size` octets each, `outstanding` in flight. MiB per second.
void read_stream_serve(int fd, const Load& load);
double read_stream_measure(int fd, const Load& load);

}  // namespace uiw::bench
