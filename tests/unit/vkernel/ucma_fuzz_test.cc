// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Commands that no librdmacm would write: cut short everywhere, and at random. Requests and
// responses lie in memory of exactly their size, so that a sanitizer sees any octet too many.
#include <algorithm>
#include <random>

#include "unit/vkernel/ucma_rig.h"

namespace uiw::vkernel::test {
namespace {

class UcmaFuzzTest : public UcmaTest {
 protected:
  using UcmaTest::UcmaTest;
  // A command of `in` octets in a buffer of exactly that size; the response's address, if the
  // octets for it are there, is `response`.
  static int write_exact(int fd, const CommandShape& shape, const std::vector<uint8_t>& body,
                         uint16_t claimed_in, uint16_t out, const void* response) {
    std::unique_ptr<uint8_t[]> message(new uint8_t[sizeof(rdma_ucm_cmd_hdr) + body.size()]);
    const rdma_ucm_cmd_hdr header{shape.number, claimed_in, out};
    memcpy(message.get(), &header, sizeof header);
    if (!body.empty()) memcpy(message.get() + sizeof header, body.data(), body.size());
    const uint64_t address = address_of(response);
    const size_t at = static_cast<size_t>(shape.response_offset);
    if (shape.response_offset >= 0 && body.size() >= at + sizeof address) {
      memcpy(message.get() + sizeof header + at, &address, sizeof address);
    }
    return write(fd, message.get(), sizeof header + body.size());
  }
};

TEST_F(UcmaFuzzTest, EveryTruncationOfEveryCommandIsRefused) {
  const int fd = open_channel(O_CLOEXEC | O_NONBLOCK);
  for (const CommandShape& shape : kAllCommands) {
    // The shortest that is accepted: without the ECE members.
    const uint16_t whole = shape.number == kConnect.number  ? 280
                           : shape.number == kAccept.number ? 288
                                                            : shape.in;
    for (uint16_t size = 0; size < whole; ++size) {
      std::vector<uint8_t> response(shape.out + 1u, 0xcc);
      const std::vector<uint8_t> untouched = response;
      EXPECT_EQ(EINVAL, write_exact(fd, shape, std::vector<uint8_t>(size), size, shape.out,
                                    response.data()))
          << shape.number << " " << size;
      EXPECT_EQ(untouched, response);
      // A header that promises more than was written.
      EXPECT_EQ(EINVAL, write_exact(fd, shape, std::vector<uint8_t>(size), shape.in, shape.out,
                                    response.data()));
    }
  }
  const uint8_t octets[8] = {};
  for (size_t size = 0; size < sizeof(rdma_ucm_cmd_hdr); ++size) {
    EXPECT_EQ(EINVAL, write(fd, octets, size));
  }
}

TEST_F(UcmaFuzzTest, EveryTooSmallResponseIsRefused) {
  const int fd = open_channel(O_CLOEXEC | O_NONBLOCK);
  const uint32_t id = create_id(fd, 1);
  for (const CommandShape& shape : kAllCommands) {
    if (shape.out == 0 || shape.response_offset < 0) continue;
    for (uint16_t out = 0; out < shape.out; ++out) {
      // Exactly as large as claimed.
      std::unique_ptr<uint8_t[]> response(new uint8_t[out + 1u]);
      std::vector<uint8_t> body(shape.in);
      const size_t id_at = shape.number == kJoin.number || shape.number == kJoinIp.number ? 16 : 8;
      if (shape.number != kCreateId.number && body.size() >= id_at + sizeof id) {
        memcpy(body.data() + id_at, &id, sizeof id);
      }
      if (shape.number == kDestroyId.number && out >= 4) continue;  // would succeed
      write_exact(fd, shape, body, shape.in, out, response.get());
    }
  }
  EXPECT_EQ(0u, destroy_id(fd, id));
}

// Every second seed by InfiniBand's rules.
class RandomCommands : public UcmaFuzzTest, public ::testing::WithParamInterface<unsigned> {
 protected:
  RandomCommands()
      : UcmaFuzzTest(GetParam() % 2 == 0 ? device::CmRules::kInfiniband : device::CmRules::kIwarp) {
  }

  std::mt19937 random_{GetParam()};
  uint32_t pick(uint32_t end) { return static_cast<uint32_t>(random_() % end); }

  // Only addresses of this host, so that nobody else is bothered, and some that are none.
  sockaddr_storage some_address() {
    static const char* const hosts[] = {"127.0.0.1", "127.0.0.2", "::1", "0.0.0.0", "::"};
    sockaddr_storage address = cm::test::ip(hosts[pick(5)], 0);
    if (pick(3) == 0) transport::set_port(address, transport::port_of(listen_address_));
    if (pick(10) == 0) address.ss_family = static_cast<sa_family_t>(pick(40));
    if (address.ss_family == AF_INET || address.ss_family == AF_INET6) {
      // The family may have changed under the address: then it is loopback again.
      if (!transport::is_wildcard(address)) {
        address = transport::loopback(address.ss_family, transport::port_of(address));
      }
    }
    return address;
  }
  template <class T>
  void put(std::vector<uint8_t>& body, size_t at, const T& value) {
    if (at + sizeof value <= body.size()) memcpy(body.data() + at, &value, sizeof value);
  }
};

TEST_P(RandomCommands, DoNoHarm) {
  settings_.request_timeout_ms = settings_.reply_timeout_ms = 20;
  const std::vector<int> fds = {open_channel(O_CLOEXEC | O_NONBLOCK),
                                open_channel(O_CLOEXEC | O_NONBLOCK)};
  make_listener(fds[0], 1);
  std::vector<uint32_t> ids = {0};
  const int option = 1;
  const sockaddr_storage group = cm::test::ip("239.1.2.3", 0);
  for (int i = 0; i < 4000; ++i) {
    const CommandShape& shape = kAllCommands[pick(std::size(kAllCommands))];
    std::vector<uint8_t> body(shape.in);
    if (pick(4) == 0) {
      for (uint8_t& octet : body) octet = static_cast<uint8_t>(random_());
    }
    const uint32_t id = pick(20) == 0 ? random_() : ids[pick(static_cast<uint32_t>(ids.size()))];
    const sockaddr_storage address = some_address();
    const auto size = static_cast<uint16_t>(transport::length_of(address));
    rdma_ucm_conn_param param = UcmaTest::param(1 + pick(120));
    param.private_data_len = static_cast<uint8_t>(pick(pick(2) ? 50 : 256));
    param.valid = pick(4) != 0;  // else the active end is ready
    switch (shape.number) {
      case 0:
        put(body, 0, uint64_t{1 + pick(5)});
        put(body, 16, uint16_t{pick(4) ? uint16_t{RDMA_PS_TCP} : uint16_t{RDMA_PS_UDP}});
        break;
      case 2:
        put(body, 8, reinterpret_cast<const sockaddr_in6&>(address));
        put(body, 36, id);
        break;
      case 3:
        put(body, 0, sockaddr_in6{});
        put(body, 28, reinterpret_cast<const sockaddr_in6&>(address));
        put(body, 56, id);
        break;
      case 6:
        put(body, 0, param);
        put(body, 272, id);
        break;
      case 8:
        put(body, 0, uint64_t{7});
        put(body, 8, param);
        put(body, 280, id);
        break;
      case 14:
        put(body, 0, address_of(pick(5) ? &option : nullptr));
        put(body, 8, id);
        break;
      case 16:
        put(body, 8, uint64_t{8});
        put(body, 16, reinterpret_cast<const sockaddr_in6&>(group));
        put(body, 44, id);
        break;
      case 17:
        put(body, 8, 1 + pick(30));
        break;
      case 22:
        put(body, 8, uint64_t{8});
        put(body, 16, id);
        put(body, 20, uint16_t{sizeof(sockaddr_in)});
        put(body, 22, static_cast<uint16_t>(pick(3)));
        put(body, 24, group);
        break;
      case 18:
        put(body, 8, id);
        put(body, 12, static_cast<uint32_t>(fds[pick(2)]));
        break;
      case 20:
        put(body, 0, id);
        put(body, 4, uint32_t{size});
        put(body, 8, address);
        break;
      case 21:
        put(body, 0, id);
        put(body, 8, uint16_t{0});
        put(body, 10, size);
        put(body, 12, uint32_t{0});
        put(body, 144, address);
        break;
      default:
        put(body, shape.response_offset == 0 ? 8 : 0, id);
    }
    if (pick(15) == 0) body.resize(pick(static_cast<uint32_t>(body.size()) + 1));
    std::unique_ptr<uint8_t[]> response(new uint8_t[shape.out + 1u]());
    const int error = write_exact(fds[pick(2)], shape, body, static_cast<uint16_t>(body.size()),
                                  shape.out, response.get());
    ASSERT_GE(error, 0);
    if (error == 0 && (shape.number == 0 || shape.number == 12)) {
      uint32_t fresh;
      memcpy(&fresh, response.get() + (shape.number == 0 ? 0 : 8), sizeof fresh);
      ids.push_back(fresh);
    }
  }
  // Whatever state that has left: a new id works as ever.
  const int fd = open_channel();
  make_listener(fd, 50);
  make_resolved(fd, 60);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomCommands, ::testing::Range(1u, 17u));

}  // namespace
}  // namespace uiw::vkernel::test
