// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What programs that measure between two processes of this host have in common.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <functional>

namespace uiw::bench {

// Ends the process with a sentence and errno: a measurement that failed has no result.
[[noreturn]] void die(const char* what);

// The server beside us, in a process of its own. It goes when we do: a client that fails leaves
// nobody behind.
class ServerProcess {
 public:
  using Tell = std::function<void(in_port_t)>;
  // Forks. In the child `serve(tell)` runs, which calls tell() with its port, in network order, as
  // soon as it listens. The child ends well when it returns.
  explicit ServerProcess(const std::function<void(const Tell&)>& serve);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // As it was told. 0: the server failed, and said why.
  in_port_t port() const { return port_; }
  // Waits for its end. Whether it ended well.
  bool ended_well() const;

 private:
  pid_t pid_ = -1;
  in_port_t port_ = 0;
};

}  // namespace uiw::bench
