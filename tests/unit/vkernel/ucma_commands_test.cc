// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The commands as librdmacm writes them.
#include <endian.h>
#include <infiniband/verbs.h>

#include "device/device.h"
#include "unit/vkernel/memory_end.h"
#include "unit/vkernel/ucma_rig.h"

namespace uiw::vkernel::test {
namespace {

using cm::test::ip;

TEST_F(UcmaTest, WholeConnection) {
  const int server = open_channel(), client = open_channel();
  const uint32_t listener = make_listener(server, 100);
  const uint32_t active = make_resolved(client, 200);

  rdma_ucm_connect connect{};
  connect.conn_param = param(1);
  connect.conn_param.private_data_len = 5;
  memcpy(connect.conn_param.private_data, "hello", 5);
  connect.id = active;
  ASSERT_EQ(0, command(client, kConnect, connect));

  const rdma_ucm_event_resp request = get_event(server, 4);
  EXPECT_EQ(100u, request.uid);
  EXPECT_EQ(0u, request.status);
  EXPECT_EQ(5, request.param.conn.private_data_len);
  EXPECT_EQ(0, memcmp("hello", request.param.conn.private_data, 5));
  EXPECT_EQ(2, request.param.conn.responder_resources);
  EXPECT_EQ(2, request.param.conn.initiator_depth);
  EXPECT_NE(0u, query_route(server, request.id).node_guid);

  rdma_ucm_accept accept{};
  accept.uid = 300;
  accept.conn_param = param(2);
  accept.id = request.id;
  ASSERT_EQ(0, command(server, kAccept, accept));
  EXPECT_EQ(200u, get_event(client, 9).uid);
  EXPECT_EQ(300u, get_event(server, 9).uid);

  ASSERT_EQ(0, command(client, kDisconnect, rdma_ucm_disconnect{active}));
  EXPECT_EQ(200u, get_event(client, 10).uid);
  EXPECT_EQ(300u, get_event(server, 10).uid);
  EXPECT_EQ(0, command(server, kDisconnect, rdma_ucm_disconnect{request.id}));

  EXPECT_EQ(4u, destroy_id(client, active));
  EXPECT_EQ(2u, destroy_id(server, request.id));
  EXPECT_EQ(1u, destroy_id(server, listener));
}

// rdma-core before 33 does not send the ECE members, and expects smaller events.
TEST_F(UcmaTest, OlderSizes) {
  const int fd = open_channel();
  make_listener(fd, 100);
  const uint32_t active = make_resolved(fd, 200);
  struct {
    rdma_ucm_conn_param conn_param;
    uint32_t id, reserved;
  } connect{param(1), active, 0};
  static_assert(sizeof connect == 280);
  ASSERT_EQ(0, command(fd, kConnect, connect));

  rdma_ucm_event_resp event;
  memset(&event, 0xee, sizeof event);
  EXPECT_EQ(ENOSPC, command(fd, kGetEvent, rdma_ucm_get_event{address_of(&event)}, 323));
  ASSERT_EQ(0, command(fd, kGetEvent, rdma_ucm_get_event{address_of(&event)}, 324));
  EXPECT_EQ(4u, event.event);
  EXPECT_EQ(0xeeeeeeeeu, event.reserved);

  struct {
    uint64_t uid;
    rdma_ucm_conn_param conn_param;
    uint32_t id, reserved;
  } accept{300, param(2), event.id, 0};
  static_assert(sizeof accept == 288);
  ASSERT_EQ(0, command(fd, kAccept, accept));
  get_event(fd, 9);
  get_event(fd, 9);
}

TEST_F(UcmaTest, RejectAndItsStatus) {
  const int fd = open_channel();
  make_listener(fd, 100);
  rdma_ucm_connect connect{};
  connect.conn_param = param(1);
  connect.id = make_resolved(fd, 200);
  ASSERT_EQ(0, command(fd, kConnect, connect));
  rdma_ucm_reject reject{};
  reject.id = get_event(fd, 4).id;
  reject.private_data_len = 2;
  memcpy(reject.private_data, "no", 2);
  ASSERT_EQ(0, command(fd, kReject, reject));
  const rdma_ucm_event_resp event = get_event(fd, 8);
  EXPECT_EQ(-ECONNREFUSED, static_cast<int>(event.status));
  EXPECT_EQ(2, event.param.conn.private_data_len);
}

TEST_F(UcmaTest, CommandsOfTheInfinibandAddressFamilyAreRefused) {
  const int fd = open_channel();
  const uint32_t id = create_id(fd, 1, RDMA_PS_IB);
  rdma_ucm_bind bind{};
  bind.id = id;
  bind.addr_size = 48;
  bind.addr.ss_family = 27;
  EXPECT_EQ(EADDRNOTAVAIL, command(fd, kBind, bind));
  bind.addr_size = 16;
  EXPECT_EQ(EINVAL, command(fd, kBind, bind));
  EXPECT_EQ(0u, destroy_id(fd, id));
}

TEST_F(UcmaTest, MemoryThatIsNotThereIsAnError) {
  const int fd = open_channel();
  const MemoryEnd memory;
  const uint64_t bad[] = {0, 16, address_of(memory.end() - 1)};
  for (uint64_t address : bad) {
    const void* const buffer = user_pointer(address);
    EXPECT_EQ(EFAULT, write(fd, buffer, 32)) << address;
    EXPECT_EQ(EFAULT, command(fd, kCreateId, rdma_ucm_create_id{1, address, RDMA_PS_TCP, 2, {}}));
  }
  // A header and nothing behind it, though its command has more.
  const rdma_ucm_cmd_hdr header{kCreateId.number, kCreateId.in, kCreateId.out};
  uint8_t* const cut = memory.end() - sizeof header;
  memcpy(cut, &header, sizeof header);
  EXPECT_EQ(EFAULT, write(fd, cut, sizeof header + kCreateId.in));

  const uint32_t id = create_id(fd, 1);
  for (uint64_t address : bad) {
    EXPECT_EQ(EFAULT, command(fd, kSetOption,
                              rdma_ucm_set_option{address, id, RDMA_OPTION_ID,
                                                  RDMA_OPTION_ID_REUSEADDR, sizeof(int)}));
    EXPECT_EQ(EFAULT, command(fd, kQueryRoute, rdma_ucm_query{address, id, 0}));
    EXPECT_EQ(EFAULT, command(fd, kDestroyId, rdma_ucm_destroy_id{address, id, 0}));
  }
  // The event is there for the next one who asks.
  resolve_ip(fd, id, ip("127.0.0.1", 7));
  for (uint64_t address : bad)
    EXPECT_EQ(EFAULT, command(fd, kGetEvent, rdma_ucm_get_event{address}));
  EXPECT_EQ(1u, get_event(fd, 0).uid);
  EXPECT_EQ(1u, destroy_id(fd, id));
}

TEST_F(UcmaTest, BindAndResolveWithExplicitSizes) {
  const int fd = open_channel();
  const uint32_t bound = create_id(fd, 1), resolved = create_id(fd, 2);
  rdma_ucm_bind bind{};
  bind.id = bound;
  bind.addr_size = sizeof(sockaddr_in6);
  const sockaddr_storage loopback6 = ip("::1", 0), loopback4 = ip("127.0.0.1", 7);
  memcpy(&bind.addr, &loopback6, sizeof bind.addr);
  EXPECT_EQ(0, command(fd, kBind, bind));

  rdma_ucm_resolve_addr resolve{};
  resolve.id = resolved;
  resolve.dst_size = sizeof(sockaddr_in);
  memcpy(&resolve.dst_addr, &loopback4, sizeof resolve.dst_addr);
  resolve.reserved = 1;
  EXPECT_EQ(EINVAL, command(fd, kResolveAddr, resolve));
  resolve.reserved = 0;
  resolve.src_size = 3;
  EXPECT_EQ(EINVAL, command(fd, kResolveAddr, resolve));
  resolve.src_size = 0;
  EXPECT_EQ(0, command(fd, kResolveAddr, resolve));
  get_event(fd, 0);
}

TEST_F(UcmaTest, QueryInAllForms) {
  const int fd = open_channel();
  listen_address_ = ip("127.0.0.1", 7);
  const uint32_t id = make_resolved(fd, 1);
  const uint64_t guid = htobe64(device::find_by_address(listen_address_)->node_guid);

  const rdma_ucm_query_route_resp route = query_route(fd, id);
  EXPECT_EQ(guid, route.node_guid);
  EXPECT_EQ(1, route.port_num);
  EXPECT_EQ(0u, route.num_paths);
  EXPECT_EQ(0xffffffffu, route.ibdev_index);
  EXPECT_EQ(0, memcmp(&route.dst_addr, &listen_address_, sizeof(sockaddr_in)));

  rdma_ucm_query_addr_resp addr{};
  ASSERT_EQ(0, command(fd, kQuery, rdma_ucm_query{address_of(&addr), id, RDMA_USER_CM_QUERY_ADDR}));
  EXPECT_EQ(guid, addr.node_guid);
  EXPECT_EQ(0xffff, addr.pkey);
  EXPECT_EQ(sizeof(sockaddr_in), addr.src_size);
  EXPECT_EQ(sizeof(sockaddr_in), addr.dst_size);

  rdma_ucm_query_addr_resp gid{};
  ASSERT_EQ(0, command(fd, kQuery, rdma_ucm_query{address_of(&gid), id, RDMA_USER_CM_QUERY_GID}));
  const uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  EXPECT_EQ(0, memcmp(reinterpret_cast<uint8_t*>(&gid.src_addr) + 8, mapped, 16));

  uint64_t path = ~0ull;
  ASSERT_EQ(0, command(fd, kQuery, rdma_ucm_query{address_of(&path), id, RDMA_USER_CM_QUERY_PATH},
                       sizeof path));
  EXPECT_EQ(0u, path);
  EXPECT_EQ(ENOSYS, command(fd, kQuery, rdma_ucm_query{address_of(&path), id, 9}));
}

TEST_F(UcmaTest, QueuePairAttributes) {
  const int fd = open_channel();
  listen_address_ = ip("127.0.0.1", 7);
  const uint32_t unbound = create_id(fd, 1), id = make_resolved(fd, 2);
  auto ask = [&](uint32_t which, uint32_t state, ib_uverbs_qp_attr& attr) {
    return command(fd, kInitQpAttr, rdma_ucm_init_qp_attr{address_of(&attr), which, state});
  };
  ib_uverbs_qp_attr attr{};
  EXPECT_EQ(EINVAL, ask(unbound, IBV_QPS_INIT, attr));
  for (uint32_t state : {IBV_QPS_INIT, IBV_QPS_RTR}) {
    ASSERT_EQ(0, ask(id, state, attr));
    EXPECT_EQ(0x29u, attr.qp_attr_mask);
    EXPECT_EQ(state, attr.qp_state);
    EXPECT_EQ(1, attr.port_num);
    EXPECT_EQ(static_cast<uint32_t>(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                    IBV_ACCESS_REMOTE_ATOMIC),
              attr.qp_access_flags);
  }
  ASSERT_EQ(0, ask(id, IBV_QPS_RTS, attr));
  EXPECT_EQ(0x20u, attr.qp_attr_mask);
  EXPECT_EQ(EINVAL, ask(id, IBV_QPS_SQD, attr));
  EXPECT_EQ(EINVAL, ask(id, 77, attr));
}

TEST_F(UcmaTest, Options) {
  const int fd = open_channel();
  const uint32_t id = create_id(fd, 1);
  const int on = 1;
  const uint8_t octet = 4;
  auto set = [&](const void* value, uint32_t level, uint32_t name, uint32_t size) {
    return command(fd, kSetOption, rdma_ucm_set_option{address_of(value), id, level, name, size});
  };
  EXPECT_EQ(0, set(&octet, 0, 0, 1));
  EXPECT_EQ(0, set(&on, 0, 1, sizeof on));
  EXPECT_EQ(0, set(&on, 0, 2, sizeof on));
  EXPECT_EQ(0, set(&octet, 0, 3, 1));
  EXPECT_EQ(EINVAL, set(&on, 0, 1, 1u << 31));
  EXPECT_EQ(EFAULT, set(nullptr, 0, 1, sizeof on));
  EXPECT_EQ(ENOSYS, set(&on, 0, 44, sizeof on));
  EXPECT_EQ(EINVAL, set(&on, 1, 1, sizeof on));
  EXPECT_EQ(ENOSYS, set(&on, 7, 1, sizeof on));
}

TEST_F(UcmaTest, WhatIwarpDoesNotHave) {
  const int fd = open_channel();
  const uint32_t id = create_id(fd, 1);
  rdma_ucm_create_id_resp response{};
  rdma_ucm_join_ip_mcast join_ip{};
  join_ip.response = address_of(&response);
  join_ip.id = id;
  EXPECT_EQ(EOPNOTSUPP, command(fd, kJoinIp, join_ip));
  rdma_ucm_join_mcast join{};
  join.response = address_of(&response);
  join.id = id;
  const sockaddr_storage group = ip("239.1.2.3", 0);
  memcpy(&join.addr, &group, sizeof group);
  join.addr_size = sizeof(sockaddr_in);
  EXPECT_EQ(EOPNOTSUPP, command(fd, kJoin, join));
  EXPECT_EQ(ENOENT, command(fd, kLeave, rdma_ucm_destroy_id{address_of(&response), id, 0}));
  EXPECT_EQ(0, command(fd, kNotify, rdma_ucm_notify{id, 3}));
  // The active end's "ready to use" of InfiniBand.
  rdma_ucm_accept accept{};
  accept.id = id;
  EXPECT_EQ(0, command(fd, kAccept, accept));
  const struct { uint64_t nothing[4]; } nothing{};
  EXPECT_EQ(ENOSYS, command(fd, {13, 0, 0, -1}, nothing));
  EXPECT_EQ(ENOSYS, command(fd, {23, 0, 0, -1}, nothing));
  EXPECT_EQ(EINVAL, command(fd, {25, 0, 0, -1}, nothing));
  EXPECT_EQ(EINVAL, command(fd, {0xffffffff, 0, 0, -1}, nothing));
}

TEST_F(UcmaTest, UnknownIds) {
  const int fd = open_channel(), other = open_channel();
  const uint32_t id = create_id(fd, 1);
  uint32_t response;
  EXPECT_EQ(ENOENT, listen(fd, id + 1));
  EXPECT_EQ(ENOENT, bind_ip(fd, id + 1, ip("127.0.0.1", 0)));
  EXPECT_EQ(ENOENT, command(fd, kDestroyId, rdma_ucm_destroy_id{address_of(&response), 7777, 0}));
  EXPECT_EQ(EINVAL, listen(other, id));
  EXPECT_EQ(EFAULT, command(fd, kDestroyId, rdma_ucm_destroy_id{0, id, 0}));
  EXPECT_EQ(ENOSPC, command(fd, kDestroyId, rdma_ucm_destroy_id{address_of(&response), id, 0}, 3));
  EXPECT_EQ(0u, destroy_id(fd, id));
}

TEST_F(UcmaTest, WrittenEventsComeBack) {
  const int fd = open_channel();
  const struct {
    uint32_t id, reserved, event, status;
    uint64_t argument;
  } body{create_id(fd, 5), 0, 19, 0, 0x1122334455667788};
  ASSERT_EQ(0, command(fd, kWriteEvent, body));
  const rdma_ucm_event_resp event = get_event(fd, 19);
  EXPECT_EQ(5u, event.uid);
  EXPECT_EQ(0, memcmp(&event.param, &body.argument, sizeof body.argument));
}

TEST_F(UcmaTest, Migration) {
  const int from = open_channel(), to = open_channel();
  listen_address_ = ip("127.0.0.1", 7);
  const uint32_t id = make_resolved(from, 1);
  rdma_ucm_migrate_resp response{77};
  auto migrate = [&](int target, uint32_t fd) {
    return command(target, kMigrateId, rdma_ucm_migrate_id{address_of(&response), id, fd});
  };
  EXPECT_EQ(ENOENT, migrate(to, 12345));
  ASSERT_EQ(0, migrate(to, static_cast<uint32_t>(from)));
  EXPECT_EQ(2u, response.events_reported);
  EXPECT_EQ(EINVAL, listen(from, id));
  EXPECT_EQ(2u, destroy_id(to, id));
}

}  // namespace
}  // namespace uiw::vkernel::test
