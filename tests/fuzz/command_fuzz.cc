// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Commands that no librdmacm and no libibverbs would write, to /dev/infiniband/rdma_cm and uverbs*.
// Each is carried out or refused with an errno; nothing crashes, and no response is longer than its
// buffer, which lies in memory of exactly that size.
//
// Input: records of (which file and options, command, size, octets of the command's body). What
// would make us touch memory or hosts that a test must not is overwritten: addresses of responses
// and options, and socket addresses, which become this host's.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "fuzz/check.h"
#include "uiwarp/uiwarp-abi.h"

namespace {

constexpr int kNone = -1;

// Where in a command's body lies what. The kernel's structures: <rdma/rdma_user_cm.h>.
struct Shape {
  uint16_t size;
  int response = kNone, id = kNone;
  int addresses[2] = {kNone, kNone};
};
const Shape kShapes[] = {
    /* CREATE_ID */ {24, 8},
    /* DESTROY_ID */ {16, 0, 8},
    /* BIND_IP */ {40, kNone, 36, {8, kNone}},
    /* RESOLVE_IP */ {64, kNone, 56, {0, 28}},
    /* RESOLVE_ROUTE */ {8, kNone, 0},
    /* QUERY_ROUTE */ {16, 0, 8},
    /* CONNECT */ {288, kNone, 272},
    /* LISTEN */ {8, kNone, 0},
    /* ACCEPT */ {296, kNone, 280},
    /* REJECT */ {264, kNone, 0},
    /* DISCONNECT */ {4, kNone, 0},
    /* INIT_QP_ATTR */ {16, 0, 8},
    /* GET_EVENT */ {8, 0},
    /* GET_OPTION */ {24},
    /* SET_OPTION */ {24, kNone, 8},
    /* NOTIFY */ {8, kNone, 0},
    /* JOIN_IP_MCAST */ {48, 0, 16, {20, kNone}},
    /* LEAVE_MCAST */ {16, 0, 8},
    /* MIGRATE_ID */ {16, 0, 8},
    /* QUERY */ {16, 0, 8},
    /* BIND */ {136, kNone, 0, {8, kNone}},
    /* RESOLVE_ADDR */ {272, kNone, 0, {16, 144}},
    /* JOIN_MCAST */ {152, 0, 16, {24, kNone}},
    /* 23 */ {16, 0, 8},
    /* WRITE_CM_EVENT */ {304, kNone, 0},
};

int listening_port = 0;

struct Files {
  Files() {
    for (int& fd : cm) {
      fd = uiwarp_vk_open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC | O_NONBLOCK);
      CHECK(fd >= 0);
    }
    const std::string node =
        "/dev/infiniband/uverbs" + std::to_string(uiw::device::devices()[0].device->uverbs_minor);
    verbs = uiwarp_vk_open(node.c_str(), O_RDWR | O_CLOEXEC);
    CHECK(verbs >= 0);
  }
  ~Files() {
    for (int fd : {cm[0], cm[1], verbs}) {
      uiwarp_vk_closing(fd);
      close(fd);
    }
  }
  int cm[2], verbs;
};

// 0, or the errno it was refused with.
int write_command(int fd, const std::vector<uint8_t>& command) {
  // Exactly as large as it is, so that a sanitizer sees any octet too many.
  const std::unique_ptr<uint8_t[]> octets(new uint8_t[command.size() + 1]);
  std::memcpy(octets.get() + 1, command.data(), command.size());
  int handled = 0;
  errno = 0;
  const ssize_t result = uiwarp_vk_write(fd, octets.get() + 1, command.size(), &handled);
  CHECK(handled == 1);
  CHECK(result == static_cast<ssize_t>(command.size()) || (result == -1 && errno > 0));
  return result < 0 ? errno : 0;
}

template <class T>
void put(std::vector<uint8_t>& octets, size_t at, const T& value) {
  if (at + sizeof value <= octets.size()) std::memcpy(&octets[at], &value, sizeof value);
}
template <class T>
uint64_t address_of(const T* p) {
  return reinterpret_cast<uintptr_t>(p);
}

// A socket address of this host at `at` of `body`; what family stays the input's affair.
void tame_address(std::vector<uint8_t>& body, size_t at) {
  if (at + sizeof(sockaddr_in6) > body.size()) return;
  uint16_t family;
  std::memcpy(&family, &body[at], sizeof family);
  const uint8_t choice = body[at + 2];
  if (family != AF_INET && family != AF_INET6 && choice & 1)
    family = choice & 2 ? AF_INET : AF_INET6;
  const auto port = htons(static_cast<uint16_t>(choice & 4 ? listening_port : 0));
  sockaddr_in6 six{};
  six.sin6_family = family;
  six.sin6_port = port;
  if (family == AF_INET) {
    auto& four = reinterpret_cast<sockaddr_in&>(six);
    four.sin_addr.s_addr = htonl(choice & 8 ? INADDR_LOOPBACK : INADDR_ANY);
  } else {
    six.sin6_addr = choice & 8 ? in6addr_loopback : in6addr_any;
  }
  put(body, at, six);
}

uint32_t number_at(const uint8_t* octets) {
  uint32_t out;
  std::memcpy(&out, octets, sizeof out);
  return out;
}

class Session {
 public:
  void run(const uint8_t* data, size_t size) {
    while (size >= 3) {
      const uint8_t options = data[0], command = data[1];
      const size_t length = std::min<size_t>(data[2], size - 3);
      std::vector<uint8_t> body(data + 3, data + 3 + length);
      data += 3 + length;
      size -= 3 + length;
      if (options & 1) {
        to_verbs(options, command, body);
      } else {
        to_cm(options, command, body);
      }
    }
    // Whatever that has left: a new id is made as ever.
    std::vector<uint8_t> body(kShapes[RDMA_USER_CM_CMD_CREATE_ID].size);
    put(body, 16, uint16_t{RDMA_PS_TCP});
    to_cm(0x40, RDMA_USER_CM_CMD_CREATE_ID, body);
    CHECK(last_error_ == 0);
  }
  void listen() {
    std::vector<uint8_t> body(kShapes[RDMA_USER_CM_CMD_CREATE_ID].size);
    put(body, 16, uint16_t{RDMA_PS_TCP});
    to_cm(0x40, RDMA_USER_CM_CMD_CREATE_ID, body);
    CHECK(last_error_ == 0 && !ids_.empty());
    body.assign(kShapes[RDMA_USER_CM_CMD_BIND_IP].size, 0);
    body[8] = AF_INET;
    body[8 + 2] = 8;
    to_cm(0x40, RDMA_USER_CM_CMD_BIND_IP, body);
    CHECK(last_error_ == 0);
    body.assign(kShapes[RDMA_USER_CM_CMD_LISTEN].size, 0);
    to_cm(0x40, RDMA_USER_CM_CMD_LISTEN, body);
    CHECK(last_error_ == 0);
    body.assign(kShapes[RDMA_USER_CM_CMD_QUERY_ROUTE].size, 0);
    to_cm(0x40, RDMA_USER_CM_CMD_QUERY_ROUTE, body);
    rdma_ucm_query_route_resp route;
    std::memcpy(&route, last_response_.data(), sizeof route);
    listening_port = ntohs(reinterpret_cast<const sockaddr_in&>(route.src_addr).sin_port);
    CHECK(listening_port != 0);
  }

 private:
  // options: bit 1 which file, 2 the size is the command's own, 3 a header that lies, 4-5 room for
  // the response, 6 an id that exists.
  void to_cm(uint8_t options, uint8_t command, std::vector<uint8_t> body) {
    const Shape shape = command < std::size(kShapes) ? kShapes[command] : Shape{16, 0, 8};
    if (options & 0x44) body.resize(shape.size);
    static constexpr uint16_t kRoom[] = {344, 0, 4, 100};
    const uint16_t room = kRoom[options >> 4 & 3];
    const std::unique_ptr<uint8_t[]> response(new uint8_t[room]());
    if (shape.response != kNone)
      put(body, static_cast<size_t>(shape.response), address_of(response.get()));
    if (options & 0x40 && shape.id != kNone && !ids_.empty())
      put(body, static_cast<size_t>(shape.id), ids_[options % ids_.size()]);
    for (int at : shape.addresses)
      if (at != kNone) tame_address(body, static_cast<size_t>(at));
    uint8_t option[64] = {};
    if (command == RDMA_USER_CM_CMD_SET_OPTION && body.size() >= 24) {
      put(body, 0, address_of(option));
      put(body, 20, number_at(&body[20]) % uint32_t{sizeof option + 1});
    }
    if (command == RDMA_USER_CM_CMD_MIGRATE_ID)
      put(body, 12, static_cast<uint32_t>(files_.cm[options >> 1 & 1]));
    std::vector<uint8_t> message(sizeof(rdma_ucm_cmd_hdr));
    put(message, 0,
        rdma_ucm_cmd_hdr{command, static_cast<uint16_t>(body.size() + (options & 8)), room});
    message.insert(message.end(), body.begin(), body.end());
    last_error_ = write_command(files_.cm[options >> 1 & 1], message);
    last_response_.assign(response.get(), response.get() + room);
    if (last_error_ == 0 && command == RDMA_USER_CM_CMD_CREATE_ID && room >= 4)
      ids_.push_back(number_at(response.get()));
    if (last_error_ == 0 && command == RDMA_USER_CM_CMD_GET_EVENT && room >= 12)
      ids_.push_back(number_at(response.get() + 8));
  }
  void to_verbs(uint8_t options, uint8_t command, std::vector<uint8_t> body) {
    ib_uverbs_cmd_hdr header{command, static_cast<uint16_t>((sizeof header + body.size()) / 4), 1};
    if (options & 8) header.in_words = static_cast<uint16_t>(header.in_words + 1);
    if (options & 4) header.command |= 0x80000000u;
    const std::unique_ptr<uint32_t[]> response(new uint32_t[1]());
    put(body, 0, options & 2 ? uint64_t{0} : address_of(response.get()));
    std::vector<uint8_t> message(sizeof header);
    put(message, 0, header);
    message.insert(message.end(), body.begin(), body.end());
    if (write_command(files_.verbs, message) != 0) return;
    CHECK(command == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL);
    CHECK(close(static_cast<int>(response[0])) == 0);
  }

  Files files_;
  std::vector<uint32_t> ids_;
  std::vector<uint8_t> last_response_;
  int last_error_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  setenv("UIWARP_MODE", "exclusive", 1);
  setenv("UIWARP_REQUEST_TIMEOUT_MS", "20", 1);
  setenv("UIWARP_REPLY_TIMEOUT_MS", "20", 1);
  setenv("UIWARP_LOG", "error", 1);
  // Leaks are looked for at exit, when the engine has ended, not after each input: what an
  // operation just cancelled is to free, the kernel alone may know of.
  static char leaks_at_exit[] = "-detect_leaks=0";
  static std::vector<char*> arguments(*argv, *argv + *argc);
  arguments.push_back(leaks_at_exit);
  *argc = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  *argv = arguments.data();
  // For all inputs, and keeps the engine.
  static std::unique_ptr<Session> listener(new Session);
  listener->listen();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Session().run(data, size);
  return 0;
}
