// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The shapes of traffic. Each has a side that serves one client of a listener, and a side that
// measures.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>

namespace uiw::bench {

enum class Wait {
  kAsUsual,
  kSpin,
  kBlock,
  kMemory,  // ping-pong: the thread that sends looks at memory, another one blocks and receives
};

struct Load {
  size_t size = 64;            // octets of a message
  int iterations = 20000;      // messages, or connections
  int batch = 1;               // messages sent by one call
  Wait wait = Wait::kAsUsual;  // for data: latencies spin, everything else blocks
  int connections = 1;         // streams, both-ways: between the same two threads
  int outstanding = 16;        // read streams: requests in flight
  size_t fpdu = 65000;         // fpdus: octets of payload in one
  bool crc = false;            // fpdus: computed and verified
};

// Ping-pong. Median microseconds of a round trip.
void ping_pong_serve(int listener, const Load& load);
double ping_pong_measure(const sockaddr_in& server, const Load& load);

// A small request answered by `size` octets. Median microseconds of a round trip.
void read_serve(int listener, const Load& load);
double read_measure(const sockaddr_in& server, const Load& load);

// A ping-pong of datagrams, over UDP. Median microseconds of a round trip.
void datagrams_serve(int listener, const Load& load);
double datagrams_measure(const sockaddr_in& server, const Load& load);

// One way: messages of `size` octets, the last one acknowledged. MiB per second.
void stream_serve(int listener, const Load& load);
double stream_measure(const sockaddr_in& server, const Load& load);

// The same over several connections, in turns. MiB per second in all.
void streams_serve(int listener, const Load& load);
double streams_measure(const sockaddr_in& server, const Load& load);

// As many the other way meanwhile. MiB per second, one way.
void both_ways_serve(int listener, const Load& load);
double both_ways_measure(const sockaddr_in& server, const Load& load);

// One stream in FPDUs, received to where the payload belongs.
void fpdus_serve(int listener, const Load& load);
double fpdus_measure(const sockaddr_in& server, const Load& load);

// Requests answered by `size` octets each, `outstanding` in flight. MiB per second.
void read_stream_serve(int listener, const Load& load);
double read_stream_measure(const sockaddr_in& server, const Load& load);

// One way: small messages laid out one behind the other, received as they come. Million messages
// per second.
void rate_serve(int listener, const Load& load);
double rate_measure(const sockaddr_in& server, const Load& load);

// `iterations` connections at once: connect, accept, `size` octets there and back on each.
// Connections per second.
void connect_serve(int listener, const Load& load);
double connect_measure(const sockaddr_in& server, const Load& load);

// Of all messages of `load`.
double mib_per_second(const Load& load, int64_t ns);

}  // namespace uiw::bench
