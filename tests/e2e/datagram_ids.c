// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What librdmacm makes of ids for datagrams, of multicast groups, and of connections whose queue
// pair is none of this process: without any queue pair, so that only events and their accounting
// are left. An argument says which; "done" is the end of each.
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                           \
  do {                                                                               \
    if (!(condition)) {                                                              \
      printf("line %d: not true: %s (%s)\n", __LINE__, #condition, strerror(errno)); \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

enum { kOfNobody = 0x4711, kOfNobodyElse = 0x4712, kGroupQp = 0xffffff };

static struct rdma_event_channel* channel;

static struct sockaddr_in ip(const char* text, uint16_t port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = port};
  REQUIRE(inet_pton(AF_INET, text, &address.sin_addr) == 1);
  return address;
}

// The next event, which has to be this one; the caller acknowledges it.
static struct rdma_cm_event* next(enum rdma_cm_event_type type, int status) {
  struct rdma_cm_event* event;
  REQUIRE(rdma_get_cm_event(channel, &event) == 0);
  if (event->event != type || event->status != status) {
    printf("%s, %d instead of %s, %d\n", rdma_event_str(event->event), event->status,
           rdma_event_str(type), status);
    exit(1);
  }
  return event;
}

static void expect(enum rdma_cm_event_type type, int status) {
  REQUIRE(rdma_ack_cm_event(next(type, status)) == 0);
}

static struct rdma_cm_id* new_id(enum rdma_port_space space) {
  struct rdma_cm_id* id;
  REQUIRE(rdma_create_id(channel, &id, NULL, space) == 0);
  return id;
}

static struct rdma_cm_id* new_bound(enum rdma_port_space space) {
  struct rdma_cm_id* const id = new_id(space);
  struct sockaddr_in address = ip("127.0.0.1", 0);
  REQUIRE(rdma_bind_addr(id, (struct sockaddr*)&address) == 0);
  return id;
}

static struct rdma_cm_id* new_listener(enum rdma_port_space space) {
  struct rdma_cm_id* const id = new_bound(space);
  REQUIRE(rdma_listen(id, 4) == 0);
  return id;
}

static struct rdma_cm_id* connected(enum rdma_port_space space, uint16_t port, const char* data) {
  struct rdma_cm_id* const id = new_id(space);
  struct sockaddr_in to = ip("127.0.0.1", port);
  REQUIRE(rdma_resolve_addr(id, NULL, (struct sockaddr*)&to, 2000) == 0);
  expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
  REQUIRE(rdma_resolve_route(id, 2000) == 0);
  expect(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
  struct rdma_conn_param param = {
      .private_data = data, .private_data_len = (uint8_t)strlen(data), .qp_num = kOfNobody};
  REQUIRE(rdma_connect(id, &param) == 0);
  return id;
}

static struct rdma_cm_id* requested(void) {
  struct rdma_cm_event* const event = next(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
  struct rdma_cm_id* const id = event->id;
  REQUIRE(rdma_ack_cm_event(event) == 0);
  return id;
}

static void accept_as(struct rdma_cm_id* id, uint32_t qp_num) {
  struct rdma_conn_param param = {.private_data = "me", .private_data_len = 2, .qp_num = qp_num};
  REQUIRE(rdma_accept(id, &param) == 0);
}

static void resolve(void) {
  struct rdma_cm_id* const listener = new_listener(RDMA_PS_UDP);
  struct rdma_cm_id* const active = connected(RDMA_PS_UDP, rdma_get_src_port(listener), "ask");
  struct rdma_cm_event* event = next(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
  struct rdma_cm_id* const passive = event->id;
  REQUIRE(event->param.ud.private_data_len == 3);
  REQUIRE(memcmp(event->param.ud.private_data, "ask", 3) == 0);
  REQUIRE(rdma_ack_cm_event(event) == 0);
  accept_as(passive, kOfNobody);
  event = next(RDMA_CM_EVENT_ESTABLISHED, 0);
  const struct rdma_ud_param* const ud = &event->param.ud;
  REQUIRE(event->id == active && ud->qp_num == kOfNobody && ud->qkey == RDMA_UDP_QKEY);
  REQUIRE(ud->private_data_len == 2 && memcmp(ud->private_data, "me", 2) == 0);
  struct ibv_ah_attr attr = ud->ah_attr;
  REQUIRE(rdma_ack_cm_event(event) == 0);
  struct ibv_pd* const pd = ibv_alloc_pd(active->verbs);
  struct ibv_ah* const ah = ibv_create_ah(pd, &attr);
  REQUIRE(ah != NULL);
  REQUIRE(ibv_destroy_ah(ah) == 0 && ibv_dealloc_pd(pd) == 0);
  REQUIRE(rdma_destroy_id(active) == 0 && rdma_destroy_id(passive) == 0);

  struct rdma_cm_id* const refused = connected(RDMA_PS_UDP, rdma_get_src_port(listener), "");
  struct rdma_cm_id* const refusing = requested();
  REQUIRE(rdma_reject(refusing, "no", 2) == 0);
  event = next(RDMA_CM_EVENT_UNREACHABLE, 2);
  REQUIRE(event->param.ud.private_data_len == 2);
  REQUIRE(memcmp(event->param.ud.private_data, "no", 2) == 0);
  REQUIRE(rdma_ack_cm_event(event) == 0);
  REQUIRE(rdma_destroy_id(refused) == 0 && rdma_destroy_id(refusing) == 0);
  REQUIRE(rdma_destroy_id(listener) == 0);
}

// Each kind of id asks a listener of the other.
static void meet(void) {
  struct rdma_cm_id* const tcp = new_listener(RDMA_PS_TCP);
  struct rdma_cm_id* const udp = new_listener(RDMA_PS_UDP);
  struct rdma_cm_id* const one = connected(RDMA_PS_UDP, rdma_get_src_port(tcp), "x");
  expect(RDMA_CM_EVENT_UNREACHABLE, 1);
  struct rdma_cm_id* const two = connected(RDMA_PS_TCP, rdma_get_src_port(udp), "x");
  expect(RDMA_CM_EVENT_REJECTED, 8);
  REQUIRE(rdma_destroy_id(one) == 0 && rdma_destroy_id(two) == 0);
  REQUIRE(rdma_destroy_id(tcp) == 0 && rdma_destroy_id(udp) == 0);
}

static void join(struct rdma_cm_id* id, const char* text) {
  struct sockaddr_in group = ip(text, 0);
  REQUIRE(rdma_join_multicast(id, (struct sockaddr*)&group, id) == 0);
}

static void joined(struct rdma_cm_id* id, const char* text) {
  join(id, text);
  struct rdma_cm_event* const event = next(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
  const struct rdma_ud_param* const ud = &event->param.ud;
  REQUIRE(event->id == id && ud->private_data == id);
  REQUIRE(ud->qp_num == kGroupQp && ud->qkey == RDMA_UDP_QKEY);
  const struct sockaddr_in group = ip(text, 0);
  REQUIRE(memcmp(ud->ah_attr.grh.dgid.raw + 12, &group.sin_addr, 4) == 0);
  REQUIRE(rdma_ack_cm_event(event) == 0);
}

static int leave(struct rdma_cm_id* id, const char* text) {
  struct sockaddr_in group = ip(text, 0);
  return rdma_leave_multicast(id, (struct sockaddr*)&group);
}

static void groups(void) {
  struct rdma_cm_id* const id = new_bound(RDMA_PS_UDP);
  joined(id, "239.1.2.3");
  joined(id, "239.1.2.4");
  joined(id, "239.1.2.4");
  REQUIRE(leave(id, "239.1.2.3") == 0);
  REQUIRE(leave(id, "239.1.2.3") == -1 && errno == EADDRNOTAVAIL);
  REQUIRE(leave(id, "239.1.2.4") == 0);
  join(id, "239.1.2.5");
  REQUIRE(leave(id, "239.1.2.5") == 0);  // its event was not fetched
  struct sockaddr_in host = ip("127.0.0.1", 0);
  REQUIRE(rdma_join_multicast(id, (struct sockaddr*)&host, NULL) == -1 && errno == EINVAL);
  struct sockaddr_in group = ip("239.1.2.6", 0);
  struct rdma_cm_join_mc_attr_ex attr = {
      .comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
      .join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
      .addr = (struct sockaddr*)&group};
  REQUIRE(rdma_join_multicast_ex(id, &attr, NULL) == 0);
  expect(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
  join(id, "239.1.2.7");
  REQUIRE(rdma_destroy_id(id) == 0);  // with three memberships

  struct rdma_cm_id* const unbound = new_id(RDMA_PS_UDP);
  REQUIRE(rdma_join_multicast(unbound, (struct sockaddr*)&group, NULL) == -1 && errno == EINVAL);
  REQUIRE(rdma_destroy_id(unbound) == 0);
}

// As UCX connects, whose queue pair is one for datagrams.
static void stand_in(void) {
  struct rdma_cm_id* const listener = new_listener(RDMA_PS_TCP);
  struct rdma_cm_id* const active = connected(RDMA_PS_TCP, rdma_get_src_port(listener), "ask");
  struct rdma_cm_id* const passive = requested();
  accept_as(passive, kOfNobodyElse);
  struct rdma_cm_event* const event = next(RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
  REQUIRE(event->param.conn.private_data_len == 2);
  REQUIRE(rdma_ack_cm_event(event) == 0);
  REQUIRE(rdma_establish(active) == 0);
  expect(RDMA_CM_EVENT_ESTABLISHED, 0);
  REQUIRE(rdma_disconnect(passive) == 0);
  expect(RDMA_CM_EVENT_DISCONNECTED, 0);
  expect(RDMA_CM_EVENT_DISCONNECTED, 0);
  REQUIRE(rdma_destroy_id(active) == 0 && rdma_destroy_id(passive) == 0);
  REQUIRE(rdma_destroy_id(listener) == 0);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } kParts[] = {{"resolve", resolve}, {"meet", meet}, {"groups", groups}, {"stand-in", stand_in}};
  channel = rdma_create_event_channel();
  REQUIRE(channel != NULL);
  for (size_t i = 0; i < sizeof kParts / sizeof *kParts; ++i) {
    if (argc != 2 || strcmp(argv[1], kParts[i].name) != 0) continue;
    kParts[i].run();
    rdma_destroy_event_channel(channel);
    puts("done");
    return 0;
  }
  fprintf(stderr, "usage: %s resolve|meet|groups|stand-in\n", argv[0]);
  return 2;
}
