// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Through which device rdma_cm connects:
//   uiwarp-where listen ADDRESS PORT COUNT    serves so many connections, one after the other
//   uiwarp-where connect ADDRESS PORT
// Each end prints the device of its ids, the client an errno when it is refused.
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* device_of(const struct rdma_cm_id* id) {
  return id->verbs ? ibv_get_device_name(id->verbs->device) : "none";
}

static int fail(const char* what) {
  printf("%s: errno %d\n", what, errno);
  return 1;
}

static struct ibv_qp_init_attr queue_pair(void) {
  struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1};
  attr.cap.max_send_wr = attr.cap.max_recv_wr = attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  return attr;
}

// A word from the client, so that both ends see that their device carries data.
static int exchange(struct rdma_cm_id* id, int send) {
  char word[] = "where";
  struct ibv_mr* mr = rdma_reg_msgs(id, word, sizeof word);
  if (!mr) return fail("rdma_reg_msgs");
  struct ibv_wc wc;
  int result = send ? rdma_post_send(id, NULL, word, sizeof word, mr, 0)
                    : rdma_post_recv(id, NULL, word, sizeof word, mr);
  if (!send && result == 0) result = rdma_accept(id, NULL);
  if (result == 0) result = (send ? rdma_get_send_comp(id, &wc) : rdma_get_recv_comp(id, &wc)) == 1 ? 0 : -1;
  if (result == 0 && wc.status != IBV_WC_SUCCESS) result = -1;
  if (result != 0) fail("exchange");
  if (send) rdma_disconnect(id);
  rdma_dereg_mr(mr);
  return result;
}

static int serve(struct rdma_addrinfo* address, int count) {
  struct ibv_qp_init_attr attr = queue_pair();
  struct rdma_cm_id *listener, *id;
  if (rdma_create_ep(&listener, address, NULL, &attr) != 0) return fail("rdma_create_ep");
  printf("listens on %s\n", device_of(listener));
  if (rdma_listen(listener, 0) != 0) return fail("rdma_listen");
  while (count-- > 0) {
    if (rdma_get_request(listener, &id) != 0) return fail("rdma_get_request");
    printf("accepts on %s\n", device_of(id));
    if (exchange(id, 0) != 0) return 1;
    rdma_destroy_ep(id);
  }
  rdma_destroy_ep(listener);
  return 0;
}

static int visit(struct rdma_addrinfo* address) {
  struct ibv_qp_init_attr attr = queue_pair();
  struct rdma_cm_id* id;
  if (rdma_create_ep(&id, address, NULL, &attr) != 0) return fail("rdma_create_ep");
  printf("calls from %s\n", device_of(id));
  if (rdma_connect(id, NULL) != 0) return fail("rdma_connect");
  const int result = exchange(id, 1);
  rdma_destroy_ep(id);
  return result != 0;
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  const int listens = argc == 5 && strcmp(argv[1], "listen") == 0;
  if (!listens && (argc != 4 || strcmp(argv[1], "connect") != 0)) return 2;
  struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_flags = listens ? RAI_PASSIVE : 0};
  struct rdma_addrinfo* address;
  if (rdma_getaddrinfo(argv[2], argv[3], &hints, &address) != 0) return fail("rdma_getaddrinfo");
  const int result = listens ? serve(address, atoi(argv[4])) : visit(address);
  rdma_freeaddrinfo(address);
  return result;
}
