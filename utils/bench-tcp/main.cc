// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// uiwarp-bench-tcp [OPTIONS] SHAPE SIZE ITERATIONS: what raw TCP, or UDP, does between two
// processes of this host, in the shape of a perftest tool. Prints one number, in the unit of the
// shape.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "connection.h"
#include "server_process.h"
#include "shapes.h"

namespace {

using uiw::bench::die;
using uiw::bench::Load;
using uiw::bench::ServerProcess;
using uiw::bench::Wait;

struct Shape {
  const char* name;
  void (*serve)(int, const Load&);
  double (*measure)(const sockaddr_in&, const Load&);
  double scale;  // a ping-pong is reported one way, both ways in total
};

constexpr Shape kShapes[] = {
    {"latency", uiw::bench::ping_pong_serve, uiw::bench::ping_pong_measure, 0.5},
    {"read-latency", uiw::bench::read_serve, uiw::bench::read_measure, 1.0},
    {"datagrams", uiw::bench::datagrams_serve, uiw::bench::datagrams_measure, 0.5},
    {"stream", uiw::bench::stream_serve, uiw::bench::stream_measure, 1.0},
    {"streams", uiw::bench::streams_serve, uiw::bench::streams_measure, 1.0},
    {"both-ways", uiw::bench::both_ways_serve, uiw::bench::both_ways_measure, 2.0},
    {"fpdus", uiw::bench::fpdus_serve, uiw::bench::fpdus_measure, 1.0},
    {"read-stream", uiw::bench::read_stream_serve, uiw::bench::read_stream_measure, 1.0},
    {"rate", uiw::bench::rate_serve, uiw::bench::rate_measure, 1.0},
    {"connect", uiw::bench::connect_serve, uiw::bench::connect_measure, 1.0},
};

struct Request {
  const Shape* shape = nullptr;
  Load load;
  sockaddr_in address = {};
  const char* name_space =
      nullptr;  // the server's, as `ip netns` knows it; the client is where we are
};

int usage() {
  fprintf(stderr,
          "usage: uiwarp-bench-tcp [-b BATCH] [-q CONNECTIONS] [-w spin|block|memory]\n"
          "                        [-f OCTETS] [-c] [-a ADDRESS] [-n NAMESPACE] SHAPE SIZE "
          "ITERATIONS\n"
          "  SHAPE  latency, read-latency, datagrams (microseconds), stream, streams,\n"
          "         both-ways, fpdus, read-stream (MiB/s), rate (million messages/s), connect "
          "(connections/s)\n"
          "  -b     stream, streams, both-ways, fpdus, rate: messages sent by one call\n"
          "  -q     streams, both-ways: connections between the two threads\n"
          "  -f     fpdus: payload of each (default 65000)\n"
          "  -c     fpdus: with a CRC\n"
          "  -w     how to wait for data: latencies spin unless told, the others block. memory\n"
          "         (latency): the program looks at memory, and another thread receives\n"
          "  -a     the server's IPv4 address (default 127.0.0.1)\n"
          "  -n     network namespace of the server\n");
  return 2;
}

// A whole number from 1 to `limit`, or 0.
long positive(const char* text, long limit) {
  char* end = nullptr;
  errno = 0;
  const long value = strtol(text, &end, 10);
  return errno == 0 && *end == '\0' && end != text && value >= 1 && value <= limit ? value : 0;
}

bool parse_wait(const char* text, Wait& wait) {
  constexpr struct {
    const char* name;
    Wait wait;
  } kWaits[] = {{"spin", Wait::kSpin}, {"block", Wait::kBlock}, {"memory", Wait::kMemory}};
  for (const auto& candidate : kWaits) {
    if (strcmp(text, candidate.name) != 0) continue;
    wait = candidate.wait;
    return true;
  }
  return false;
}

bool parse(int argc, char** argv, Request& request) {
  request.address.sin_family = AF_INET;
  request.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int option; (option = getopt(argc, argv, "b:q:w:f:ca:n:")) != -1;) {
    switch (option) {
      case 'b':
        request.load.batch = static_cast<int>(positive(optarg, 1 << 16));
        break;
      case 'q':
        request.load.connections = static_cast<int>(positive(optarg, 1024));
        break;
      case 'w':
        if (!parse_wait(optarg, request.load.wait)) return false;
        break;
      case 'f':
        request.load.fpdu = static_cast<size_t>(positive(optarg, 65000));
        break;
      case 'c':
        request.load.crc = true;
        break;
      case 'a':
        if (inet_pton(AF_INET, optarg, &request.address.sin_addr) != 1) return false;
        break;
      case 'n':
        request.name_space = optarg;
        break;
      default:
        return false;
    }
  }
  if (argc - optind != 3) return false;
  for (const Shape& candidate : kShapes) {
    if (strcmp(argv[optind], candidate.name) == 0) request.shape = &candidate;
  }
  const bool memory = request.load.wait == Wait::kMemory;
  if (memory && strcmp(argv[optind], "latency") != 0) return false;
  request.load.size = static_cast<size_t>(positive(argv[optind + 1], 1 << 30));
  request.load.iterations = static_cast<int>(positive(argv[optind + 2], 100000000));
  return request.shape && request.load.size > 0 && request.load.iterations > 0 &&
         request.load.batch > 0 && request.load.connections > 0 && request.load.fpdu > 0;
}

// Where `ip netns add` puts them.
void enter(const char* name_space) {
  const int fd = open(("/run/netns/" + std::string(name_space)).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) die(name_space);
  close(fd);
}

void serve(Request& request, const ServerProcess::Tell& tell) {
  if (request.name_space) enter(request.name_space);
  const int listener = uiw::bench::listen_at(request.address);
  tell(request.address.sin_port);
  request.shape->serve(listener, request.load);
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  if (!parse(argc, argv, request)) return usage();
  const ServerProcess server([&](const ServerProcess::Tell& tell) { serve(request, tell); });
  request.address.sin_port = server.port();
  if (request.address.sin_port == 0) return 1;

  const double value = request.shape->measure(request.address, request.load) * request.shape->scale;
  if (!server.ended_well()) return 1;
  printf("%.6g\n", value);  // a rate on a machine that stands still is small, and no zero
  return 0;
}
