// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// uiwarp-bench-tcp SHAPE SIZE ITERATIONS: what raw TCP does between two processes of this host, in
// the shape of a perftest tool. Prints one number: microseconds, or MiB per second.
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "connection.h"
#include "shapes.h"

namespace {

using uiw::bench::Load;

struct Shape {
  const char* name;
  void (*serve)(int, const Load&);
  double (*measure)(int, const Load&);
  double scale;  // a ping-pong is reported one way
};

constexpr Shape kShapes[] = {
    {"latency", uiw::bench::ping_pong_serve, uiw::bench::ping_pong_measure, 0.5},
    {"read-latency", uiw::bench::read_serve, uiw::bench::read_measure, 1.0},
    {"stream", uiw::bench::stream_serve, uiw::bench::stream_measure, 1.0},
    {"read-stream", uiw::bench::read_stream_serve, uiw::bench::read_stream_measure, 1.0},
};

int usage() {
  fprintf(stderr, "usage: uiwarp-bench-tcp latency|read-latency|stream|read-stream SIZE ITERATIONS\n");
  return 2;
}

// A whole number from 1 to `limit`, or 0.
long positive(const char* text, long limit) {
  char* end = nullptr;
  errno = 0;
  const long value = strtol(text, &end, 10);
  return errno == 0 && *end == '\0' && end != text && value >= 1 && value <= limit ? value : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return usage();
  const Shape* shape = nullptr;
  for (const Shape& candidate : kShapes) {
    if (strcmp(argv[1], candidate.name) == 0) shape = &candidate;
  }
  Load load;
  load.size = static_cast<size_t>(positive(argv[2], 1 << 30));
  load.iterations = static_cast<int>(positive(argv[3], 100000000));
  if (!shape || load.size == 0 || load.iterations == 0) return usage();

  uint16_t port = 0;
  const int listener = uiw::bench::listen_loopback(port);
  const pid_t pid = fork();
  if (pid < 0) uiw::bench::die("fork");
  if (pid == 0) {
    shape->serve(uiw::bench::accept_one(listener), load);
    _exit(0);
  }
  close(listener);
  const int fd = uiw::bench::connect_loopback(port);
  const double value = shape->measure(fd, load) * shape->scale;
  close(fd);
  int status = 0;
  waitpid(pid, &status, 0);
  if (status != 0) return 1;
  printf("%.3f\n", value);
  return 0;
}
