// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// ucma commands about multicast groups.
#include <cerrno>

#include "transport/addresses.h"
#include "vkernel/ucma_file.h"

namespace uiw::vkernel {
namespace {

int join(UcmaFile& file, const UcmaRequest& request, const rdma_ucm_join_mcast& command,
         const sockaddr_storage& group) {
  rdma_ucm_create_id_resp response{};
  if (int error = request.room_for(command.response, response)) return error;
  const int error =
      file.manager().join(file.channel(), command.id, command.uid, group, response.id);
  if (error == 0) request.respond(command.response, response);
  return error;
}

}  // namespace

int ucma_join_ip(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_join_ip_mcast in;
  if (!request.read(in)) return EINVAL;
  sockaddr_storage group{};
  std::memcpy(&group, &in.addr, sizeof in.addr);
  rdma_ucm_join_mcast command{};
  command.response = in.response;
  command.uid = in.uid;
  command.id = in.id;
  return join(file, request, command, group);
}

// The two ways of being a member differ in who is attached to the group, which is librdmacm's
// affair.
int ucma_join(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_join_mcast command;
  if (!request.read(command) || command.join_flags >= RDMA_MC_JOIN_FLAG_RESERVED) return EINVAL;
  sockaddr_storage group;
  if (int error = from_storage(command.addr, command.addr_size, group)) return error;
  return join(file, request, command, group);
}

int ucma_leave(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_destroy_id command;
  if (!request.read(command)) return EINVAL;
  rdma_ucm_destroy_id_resp response{};
  if (int error = request.room_for(command.response, response)) return error;
  const int error = file.manager().leave(file.channel(), command.id, response.events_reported);
  if (error == 0) request.respond(command.response, response);
  return error;
}

}  // namespace uiw::vkernel
