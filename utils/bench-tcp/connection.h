// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A TCP connection between two processes of this host, tuned as the best a program can get.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace uiw::bench {

// Listens on `address`; its port is chosen by the kernel and filled in.
int listen_at(sockaddr_in& address);
int accept_one(int listener);
int connect_to(const sockaddr_in& address);
// Not connected yet, for whoever connects without waiting.
int new_socket(const sockaddr_in& peer);

// Spin on a non-blocking recv until `size` octets are there, or the peer has gone.
void spin_receive(int fd, void* buffer, size_t size);
// Block until `size` octets are there; false at end of stream before the first.
bool receive(int fd, void* buffer, size_t size);
void send_all(int fd, const void* buffer, size_t size);
// The last octet has been received: so it is known when a stream was over.
void acknowledge(int fd);
void await_acknowledgement(int fd);
// One call of sendmsg with the last `left` octets of copies of `buffer`, which has `size` octets;
// what sendmsg says.
ssize_t send_some_copies(int fd, const void* buffer, size_t size, size_t left, int flags);
// `size` octets of `buffer`, `copies` times over, with as few calls as the kernel allows.
void send_copies(int fd, const void* buffer, size_t size, int copies);

}  // namespace uiw::bench
