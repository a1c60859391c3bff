// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// An application that writes ucma commands by hand, over queue pairs that are nothing but streams.
#pragma once

#include <fcntl.h>
#include <rdma/rdma_user_cm.h>

#include "unit/cm/rig.h"
#include "vkernel/fd_table.h"
#include "vkernel/ucma_file.h"

namespace uiw::vkernel::test {

// Number, size of the request behind the header and of the response of a command, as librdmacm 44
// writes them.
struct CommandShape {
  uint32_t number;
  uint16_t in, out;
  int response_offset;  // of the response's address in the request; -1: none
};

inline constexpr CommandShape kCreateId{0, 24, 4, 8}, kDestroyId{1, 16, 4, 0},
    kBindIp{2, 40, 0, -1}, kResolveIp{3, 64, 0, -1}, kResolveRoute{4, 8, 0, -1},
    kQueryRoute{5, 16, 208, 0}, kConnect{6, 288, 0, -1}, kListen{7, 8, 0, -1},
    kAccept{8, 296, 0, -1}, kReject{9, 264, 0, -1}, kDisconnect{10, 4, 0, -1},
    kInitQpAttr{11, 16, 144, 0}, kGetEvent{12, 8, 336, 0}, kSetOption{14, 24, 0, -1},
    kNotify{15, 8, 0, -1}, kJoinIp{16, 48, 4, 0}, kLeave{17, 16, 4, 0}, kMigrateId{18, 16, 4, 0},
    kQuery{19, 16, 280, 0}, kBind{20, 136, 0, -1}, kResolveAddr{21, 272, 0, -1},
    kJoin{22, 152, 4, 0}, kWriteEvent{24, 24, 0, -1};

inline constexpr CommandShape kAllCommands[] = {
    kCreateId, kDestroyId, kBindIp,      kResolveIp, kResolveRoute, kQueryRoute,
    kConnect,  kListen,    kAccept,      kReject,    kDisconnect,   kInitQpAttr,
    kGetEvent, kSetOption, kNotify,      kJoinIp,    kLeave,        kMigrateId,
    kQuery,    kBind,      kResolveAddr, kJoin,      kWriteEvent};

static_assert(sizeof(rdma_ucm_create_id) == kCreateId.in);
static_assert(sizeof(rdma_ucm_bind_ip) == kBindIp.in);
static_assert(sizeof(rdma_ucm_resolve_ip) == kResolveIp.in);
static_assert(sizeof(rdma_ucm_query_route_resp) == kQueryRoute.out);
static_assert(sizeof(rdma_ucm_connect) == kConnect.in);
static_assert(sizeof(rdma_ucm_accept) == kAccept.in);
static_assert(sizeof(rdma_ucm_reject) == kReject.in);
static_assert(sizeof(rdma_ucm_event_resp) == kGetEvent.out);
static_assert(sizeof(rdma_ucm_query_addr_resp) == kQuery.out);
static_assert(sizeof(rdma_ucm_bind) == kBind.in);
static_assert(sizeof(rdma_ucm_resolve_addr) == kResolveAddr.in);
static_assert(sizeof(rdma_ucm_join_mcast) == kJoin.in);
static_assert(sizeof(rdma_ucm_join_ip_mcast) == kJoinIp.in);
static_assert(sizeof(ib_uverbs_qp_attr) == kInitQpAttr.out);

class UcmaTest : public cm::test::ConnectionTest {
 protected:
  using ConnectionTest::ConnectionTest;
  void TearDown() override {
    for (int fd : open_) close_channel(fd);
    ConnectionTest::TearDown();
  }

  int open_channel(int flags = O_CLOEXEC) {
    auto events = std::make_unique<EventPipe>();
    int fd = -1;
    EXPECT_EQ(0, events->create(flags, fd));
    EXPECT_EQ(0, register_file(fd, make_ucma_file(std::move(events), manager_)));
    open_.push_back(fd);
    return fd;
  }
  static void close_channel(int fd) {
    forget_descriptor(fd);
    close(fd);
  }

  // write(): 0 or errno.
  static int write(int fd, const void* buffer, size_t size) {
    bool handled = false;
    int error = 0;
    const ssize_t result = write_file_descriptor(fd, buffer, size, handled, error);
    if (!handled) return -1;
    EXPECT_EQ(error == 0 ? static_cast<ssize_t>(size) : -1, result);
    return error;
  }
  // A whole command; `body` must be as librdmacm has it.
  template <class Body>
  static int command(int fd, const CommandShape& shape, const Body& body, uint16_t out) {
    struct {
      rdma_ucm_cmd_hdr header;
      Body body;
    } message{{shape.number, sizeof body, out}, body};
    return write(fd, &message, sizeof message.header + sizeof body);
  }
  template <class Body>
  static int command(int fd, const CommandShape& shape, const Body& body) {
    return command(fd, shape, body, shape.out);
  }

  static uint64_t address_of(const void* p) { return reinterpret_cast<uintptr_t>(p); }

  static uint32_t create_id(int fd, uint64_t uid, uint16_t ps = RDMA_PS_TCP) {
    rdma_ucm_create_id_resp response{};
    const rdma_ucm_create_id body{uid, address_of(&response), ps, 2, {}};
    EXPECT_EQ(0, command(fd, kCreateId, body));
    EXPECT_NE(0u, response.id);
    return response.id;
  }
  static uint32_t destroy_id(int fd, uint32_t id) {
    rdma_ucm_destroy_id_resp response{99};
    const rdma_ucm_destroy_id body{address_of(&response), id, 0};
    EXPECT_EQ(0, command(fd, kDestroyId, body));
    return response.events_reported;
  }
  static int bind_ip(int fd, uint32_t id, const sockaddr_storage& address) {
    rdma_ucm_bind_ip body{};
    memcpy(&body.addr, &address, sizeof body.addr);
    body.id = id;
    return command(fd, kBindIp, body);
  }
  static int listen(int fd, uint32_t id, uint32_t backlog = 0) {
    return command(fd, kListen, rdma_ucm_listen{id, backlog});
  }
  static rdma_ucm_query_route_resp query_route(int fd, uint32_t id) {
    rdma_ucm_query_route_resp response{};
    EXPECT_EQ(0, command(fd, kQueryRoute, rdma_ucm_query{address_of(&response), id, 0}));
    return response;
  }
  static rdma_ucm_event_resp get_event(int fd, uint32_t expected) {
    rdma_ucm_event_resp response{};
    EXPECT_EQ(0, command(fd, kGetEvent, rdma_ucm_get_event{address_of(&response)}));
    EXPECT_EQ(expected, response.event);
    return response;
  }
  static int try_event(int fd) {
    rdma_ucm_event_resp response{};
    return command(fd, kGetEvent, rdma_ucm_get_event{address_of(&response)});
  }
  static rdma_ucm_conn_param param(uint32_t qp_num) {
    rdma_ucm_conn_param out{};
    out.qp_num = qp_num;
    out.responder_resources = out.initiator_depth = 2;
    out.valid = 1;
    return out;
  }
  // Listens on 127.0.0.1; the address to connect to is listen_address_.
  uint32_t make_listener(int fd, uint64_t uid) {
    const uint32_t id = create_id(fd, uid);
    EXPECT_EQ(0, bind_ip(fd, id, cm::test::ip("127.0.0.1", 0)));
    EXPECT_EQ(0, listen(fd, id));
    const rdma_ucm_query_route_resp route = query_route(fd, id);
    memcpy(&listen_address_, &route.src_addr, sizeof route.src_addr);
    return id;
  }
  // Queues one ADDR_RESOLVED.
  static void resolve_ip(int fd, uint32_t id, const sockaddr_storage& to) {
    rdma_ucm_resolve_ip body{};
    memcpy(&body.dst_addr, &to, sizeof body.dst_addr);
    body.id = id;
    body.timeout_ms = 2000;
    EXPECT_EQ(0, command(fd, kResolveIp, body));
  }
  uint32_t make_resolved(int fd, uint64_t uid) {
    const uint32_t id = create_id(fd, uid);
    resolve_ip(fd, id, listen_address_);
    EXPECT_EQ(uid, get_event(fd, 0).uid);
    EXPECT_EQ(0, command(fd, kResolveRoute, rdma_ucm_resolve_route{id, 2000}));
    EXPECT_EQ(uid, get_event(fd, 2).uid);
    return id;
  }

  std::vector<int> open_;
};

}  // namespace uiw::vkernel::test
