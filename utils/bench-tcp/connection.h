// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A TCP connection between two processes over loopback, tuned as the best a program can get.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uiw::bench {

// Ends the process with a sentence and errno: a measurement that failed has no result.
[[noreturn]] void die(const char* what);

int64_t now_ns();

// Listens on 127.0.0.1, port chosen by the kernel, returned in host order.
int listen_loopback(uint16_t& port);
int accept_one(int listener);
int connect_loopback(uint16_t port);

// Spin on a non-blocking recv until `size` octets are there, or the peer has gone.
void spin_receive(int fd, void* buffer, size_t size);
// Block until `size` octets are there; false at end of stream before the first.
bool receive(int fd, void* buffer, size_t size);
void send_all(int fd, const void* buffer, size_t size);

}  // namespace uiw::bench
