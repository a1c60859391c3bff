// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "probe.h"

namespace uiw::probe {
namespace {

constexpr size_t kSize = 64;
constexpr unsigned kLimitSeconds = 10;  // SIGALRM ends a side that waits for ever

struct Buffers {
  uint8_t out[kSize];
  uint8_t in[kSize];
  ibv_mr* out_mr = nullptr;
  ibv_mr* in_mr = nullptr;
};

void fill(uint8_t* octets, uint8_t first) {
  for (size_t i = 0; i < kSize; i++) octets[i] = static_cast<uint8_t>(first + i * 7);
}

int failed(const char* side, const char* step) {
  fprintf(stderr, "%s: %s: %s\n", side, step, strerror(errno));
  return 1;
}

ibv_qp_init_attr queue_pair() {
  ibv_qp_init_attr attr = {};
  attr.cap.max_send_wr = attr.cap.max_recv_wr = 2;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  attr.qp_type = IBV_QPT_RC;
  attr.sq_sig_all = 1;
  return attr;
}

// rdma_getaddrinfo for 127.0.0.1; port 0 lets the listener choose.
rdma_addrinfo* address(uint16_t port, int flags) {
  char text[8];
  snprintf(text, sizeof text, "%u", static_cast<unsigned>(port));
  rdma_addrinfo hints = {};
  hints.ai_flags = flags;
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* result = nullptr;
  return rdma_getaddrinfo(const_cast<char*>("127.0.0.1"), text, &hints, &result) == 0 ? result
                                                                                      : nullptr;
}

bool prepare(rdma_cm_id* id, Buffers& buffers) {
  buffers.out_mr = rdma_reg_msgs(id, buffers.out, kSize);
  buffers.in_mr = rdma_reg_msgs(id, buffers.in, kSize);
  return buffers.out_mr && buffers.in_mr &&
         rdma_post_recv(id, nullptr, buffers.in, kSize, buffers.in_mr) == 0;
}

void release(Buffers& buffers) {
  if (buffers.out_mr) rdma_dereg_mr(buffers.out_mr);
  if (buffers.in_mr) rdma_dereg_mr(buffers.in_mr);
}

bool completed(int polled, const ibv_wc& wc) {
  if (polled == 1 && wc.status == IBV_WC_SUCCESS) return true;
  if (polled == 1) {
    fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
    errno = EIO;
  }
  return false;
}

bool send(rdma_cm_id* id, Buffers& buffers) {
  ibv_wc wc = {};
  return rdma_post_send(id, nullptr, buffers.out, kSize, buffers.out_mr, 0) == 0 &&
         completed(rdma_get_send_comp(id, &wc), wc);
}

bool receive(rdma_cm_id* id, const Buffers& buffers, uint8_t first) {
  ibv_wc wc = {};
  if (!completed(rdma_get_recv_comp(id, &wc), wc)) return false;
  uint8_t expected[kSize];
  fill(expected, first);
  if (wc.byte_len == kSize && memcmp(expected, buffers.in, kSize) == 0) return true;
  fprintf(stderr, "the octets received are not those sent\n");
  errno = EILSEQ;
  return false;
}

int client(int port_pipe) {
  uint16_t port = 0;
  if (read(port_pipe, &port, sizeof port) != static_cast<ssize_t>(sizeof port)) return 1;
  rdma_addrinfo* target = address(port, 0);
  if (!target) return failed("client", "rdma_getaddrinfo");
  ibv_qp_init_attr attr = queue_pair();
  rdma_cm_id* id = nullptr;
  const int error = rdma_create_ep(&id, target, nullptr, &attr);
  rdma_freeaddrinfo(target);
  if (error) return failed("client", "rdma_create_ep");
  Buffers buffers;
  fill(buffers.out, 1);
  const char* step = nullptr;
  if (!prepare(id, buffers))
    step = "registering memory";
  else if (rdma_connect(id, nullptr) != 0)
    step = "rdma_connect";
  else if (!send(id, buffers))
    step = "sending 64 octets";
  else if (!receive(id, buffers, 101))
    step = "receiving the answer";
  const int status = step ? failed("client", step) : 0;
  rdma_disconnect(id);
  release(buffers);
  rdma_destroy_ep(id);
  return status;
}

// One connection of the listener.
int serve(rdma_cm_id* listener) {
  rdma_cm_id* id = nullptr;
  if (rdma_get_request(listener, &id) != 0) return failed("server", "rdma_get_request");
  Buffers buffers;
  fill(buffers.out, 101);
  const char* step = nullptr;
  if (!prepare(id, buffers))
    step = "registering memory";
  else if (rdma_accept(id, nullptr) != 0)
    step = "rdma_accept";
  else if (!receive(id, buffers, 1))
    step = "receiving 64 octets";
  else if (!send(id, buffers))
    step = "sending the answer";
  const int status = step ? failed("server", step) : 0;
  rdma_disconnect(id);
  release(buffers);
  rdma_destroy_ep(id);
  return status;
}

int server(int port_pipe) {
  rdma_addrinfo* own = address(0, RAI_PASSIVE);
  if (!own) return failed("server", "rdma_getaddrinfo");
  ibv_qp_init_attr attr = queue_pair();
  rdma_cm_id* listener = nullptr;
  const int error = rdma_create_ep(&listener, own, nullptr, &attr);
  rdma_freeaddrinfo(own);
  if (error) return failed("server", "rdma_create_ep");
  int status = 0;
  const char* device = "?";
  if (rdma_listen(listener, 1) != 0) {
    status = failed("server", "rdma_listen");
  } else {
    if (listener->verbs) device = ibv_get_device_name(listener->verbs->device);
    const uint16_t port = ntohs(rdma_get_src_port(listener));
    if (write(port_pipe, &port, sizeof port) != static_cast<ssize_t>(sizeof port)) status = 1;
    if (status == 0) status = serve(listener);
  }
  if (status == 0) printf("64 octets each way over %s, compared\n", device);
  rdma_destroy_ep(listener);
  return status;
}

}  // namespace

int loopback() {
  int fds[2];
  if (pipe(fds) != 0) return failed("probe", "pipe");
  // Before either side touches verbs: a device does not survive fork.
  const pid_t pid = fork();
  if (pid < 0) return failed("probe", "fork");
  alarm(kLimitSeconds);
  if (pid == 0) {
    close(fds[1]);
    _exit(client(fds[0]));
  }
  close(fds[0]);
  const int status = server(fds[1]);
  close(fds[1]);  // a client that never got a port reads end of file
  fflush(stdout);
  int client_status = 0;
  waitpid(pid, &client_status, 0);
  return status != 0 || client_status != 0;
}

}  // namespace uiw::probe
