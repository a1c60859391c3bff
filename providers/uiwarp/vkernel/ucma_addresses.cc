// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// ucma commands about addresses, routes and options.
#include <endian.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstddef>

#include "transport/addresses.h"
#include "vkernel/ucma_file.h"
#include "vkernel/ucma_path.h"

namespace uiw::vkernel {
namespace {

// AF_IB of the kernel, which libc does not name. librdmacm probes for it with a bind; refused, it
// keeps to IPv4 and IPv6 addresses, which are all that iWARP has.
constexpr uint16_t kInfinibandFamily = 27;
constexpr uint16_t kInfinibandAddressSize = 48;
constexpr uint32_t kMaxPaths = 64;
constexpr uint32_t kUsablePath = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;

// We are not in the kernel's table of devices: librdmacm then goes by the GUID.
constexpr uint32_t kNoDeviceIndex = 0xffffffff;

// sockaddr_ib as far as librdmacm looks at it.
struct InfinibandAddress {
  uint16_t family;
  uint16_t pkey;
  uint32_t flow;
  uint8_t gid[16];
};

// An address in a field for IPv6 ones. False when it is of another family.
bool from_v6(const sockaddr_in6& in, sockaddr_storage& out) {
  out = {};
  std::memcpy(&out, &in, sizeof in);
  return transport::is_ip(out);
}

void to_v6(sockaddr_in6& out, const sockaddr_storage& in) {
  std::memcpy(&out, &in, sizeof out);
}

// A GID in a field for addresses.
void to_infiniband(__kernel_sockaddr_storage& out, const in6_addr& gid) {
  InfinibandAddress address{};
  address.family = kInfinibandFamily;
  address.pkey = kDefaultPkey;
  static_assert(sizeof address.gid == sizeof gid);
  std::memcpy(address.gid, &gid, sizeof gid);
  std::memcpy(&out, &address, sizeof address);
}

bool has_paths(UcmaFile& file, const cm::Route& route) {
  return file.manager().rules().mover == cm::Mover::kProgram && has_path(route);
}

// RDMA_OPTION_IB_PATH: the program has found a path by itself. It says nothing that we could go by,
// and ends like a resolved route.
int set_path(UcmaFile& file, const rdma_ucm_set_option& command) {
  if (file.manager().rules().mover != cm::Mover::kProgram) return EINVAL;
  if (command.optlen == 0 || command.optlen % sizeof(ib_path_rec_data) != 0) return EINVAL;
  const auto* const paths = static_cast<const ib_path_rec_data*>(user_pointer(command.optval));
  bool usable = false;
  for (size_t i = 0; i < command.optlen / sizeof *paths; ++i) {
    ib_path_rec_data path;
    if (int error = copy_in(&path, paths + i, sizeof path)) return error;
    usable |= path.flags == kUsablePath;
  }
  if (!usable) return EINVAL;
  return file.manager().resolve_route(file.channel(), command.id);
}

}  // namespace

int from_storage(const __kernel_sockaddr_storage& in, uint16_t size, sockaddr_storage& out) {
  static_assert(sizeof in == sizeof out);
  std::memcpy(&out, &in, sizeof out);
  if (out.ss_family == kInfinibandFamily && size == kInfinibandAddressSize) return EADDRNOTAVAIL;
  return size != 0 && size == transport::length_of(out) ? 0 : EINVAL;
}

int ucma_bind_ip(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_bind_ip command;
  if (!request.read(command)) return EINVAL;
  sockaddr_storage address;
  if (!from_v6(command.addr, address)) return EINVAL;
  return file.manager().bind(file.channel(), command.id, address);
}

int ucma_bind(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_bind command;
  if (!request.read(command) || command.reserved != 0) return EINVAL;
  sockaddr_storage address;
  if (int error = from_storage(command.addr, command.addr_size, address)) return error;
  return file.manager().bind(file.channel(), command.id, address);
}

int ucma_resolve_ip(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_resolve_ip command;
  if (!request.read(command)) return EINVAL;
  sockaddr_storage source{}, destination;
  if (command.src_addr.sin6_family != 0 && !from_v6(command.src_addr, source)) return EINVAL;
  if (!from_v6(command.dst_addr, destination)) return EINVAL;
  return file.manager().resolve_address(file.channel(), command.id, source, destination);
}

int ucma_resolve_addr(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_resolve_addr command;
  if (!request.read(command) || command.reserved != 0) return EINVAL;
  sockaddr_storage source{}, destination;
  if (command.src_size != 0) {
    if (int error = from_storage(command.src_addr, command.src_size, source)) return error;
  }
  if (int error = from_storage(command.dst_addr, command.dst_size, destination)) return error;
  return file.manager().resolve_address(file.channel(), command.id, source, destination);
}

int ucma_resolve_route(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_resolve_route command;
  if (!request.read(command)) return EINVAL;
  return file.manager().resolve_route(file.channel(), command.id);
}

int ucma_query_route(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_query command;
  if (!request.read(command)) return EINVAL;
  rdma_ucm_query_route_resp response{};
  if (int error = request.room_for(command.response, response,
                                   offsetof(rdma_ucm_query_route_resp, ibdev_index))) {
    return error;
  }
  cm::Route route;
  if (int error = file.manager().query(file.channel(), command.id, route)) return error;
  response.node_guid = htobe64(route.node_guid);
  response.port_num = kPort;
  response.ibdev_index = kNoDeviceIndex;
  to_v6(response.src_addr, route.source);
  to_v6(response.dst_addr, route.destination);
  if (file.manager().rules().mover == cm::Mover::kProgram) {
    response.num_paths = has_path(route) ? 1 : 0;
    response.ib_route[0] = user_path_record(route);
  }
  request.respond(command.response, response);
  return 0;
}

int ucma_query(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_query command;
  if (!request.read(command)) return EINVAL;
  cm::Route route;
  switch (command.option) {
    case RDMA_USER_CM_QUERY_PATH: {
      // No path records on iWARP.
      struct {
        uint32_t num_paths, reserved;  // as in rdma_ucm_query_path_resp
        ib_path_rec_data path;
      } response{};
      if (int error =
              request.room_for(command.response, response, sizeof(rdma_ucm_query_path_resp)))
        return error;
      if (int error = file.manager().query(file.channel(), command.id, route)) return error;
      if (has_paths(file, route) && request.out >= sizeof response) {
        response.num_paths = 1;
        response.path = path_record(route);
      }
      request.respond(command.response, response);
      return 0;
    }
    case RDMA_USER_CM_QUERY_ADDR:
    case RDMA_USER_CM_QUERY_GID: {
      rdma_ucm_query_addr_resp response{};
      if (int error = request.room_for(command.response, response,
                                       offsetof(rdma_ucm_query_addr_resp, ibdev_index))) {
        return error;
      }
      if (int error = file.manager().query(file.channel(), command.id, route)) return error;
      response.node_guid = htobe64(route.node_guid);
      response.port_num = kPort;
      response.pkey = kDefaultPkey;
      response.ibdev_index = kNoDeviceIndex;
      if (command.option == RDMA_USER_CM_QUERY_ADDR) {
        response.src_size = static_cast<uint16_t>(transport::length_of(route.source));
        response.dst_size = static_cast<uint16_t>(transport::length_of(route.destination));
        std::memcpy(&response.src_addr, &route.source, sizeof response.src_addr);
        std::memcpy(&response.dst_addr, &route.destination, sizeof response.dst_addr);
      } else {
        response.src_size = response.dst_size = kInfinibandAddressSize;
        const Gids gids = gids_of(route);
        to_infiniband(response.src_addr, gids.source);
        to_infiniband(response.dst_addr, gids.destination);
      }
      request.respond(command.response, response);
      return 0;
    }
    default:
      return ENOSYS;
  }
}

int ucma_set_option(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_set_option command;
  if (!request.read(command)) return EINVAL;
  const bool is_path = command.level == RDMA_OPTION_IB && command.optname == RDMA_OPTION_IB_PATH;
  // The longest of an option of the id that we know is an int.
  uint8_t value[sizeof(int)];
  if (command.optlen > (is_path ? kMaxPaths * sizeof(ib_path_rec_data) : sizeof value))
    return EINVAL;
  if (is_path) return set_path(file, command);
  if (int error = copy_in(value, user_pointer(command.optval), command.optlen)) return error;
  if (command.level != RDMA_OPTION_ID) return ENOSYS;
  return file.manager().set_option(file.channel(), command.id,
                                   static_cast<cm::Manager::Option>(command.optname),
                                   {value, command.optlen});
}

}  // namespace uiw::vkernel
