// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// ucma commands that make and end connections.
#include <cerrno>
#include <cstddef>

#include "vkernel/ucma_file.h"

namespace uiw::vkernel {
namespace {

// Members that rdma-core before 33 does not know (ECE, which is InfiniBand's) may be missing.
constexpr size_t kLeastConnect = offsetof(rdma_ucm_connect, ece);
constexpr size_t kLeastAccept = offsetof(rdma_ucm_accept, ece);

cm::ConnParam from_wire(const rdma_ucm_conn_param& in) {
  cm::ConnParam out;
  std::memcpy(out.private_data, in.private_data, in.private_data_len);
  out.private_data_len = in.private_data_len;
  out.responder_resources = in.responder_resources;
  out.initiator_depth = in.initiator_depth;
  out.qp_num = in.qp_num;
  out.flow_control = in.flow_control;
  out.retry_count = in.retry_count;
  out.rnr_retry_count = in.rnr_retry_count;
  out.srq = in.srq;
  return out;
}

}  // namespace

int ucma_connect(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_connect command;
  if (!request.read(command, kLeastConnect) || !command.conn_param.valid) return EINVAL;
  return file.manager().connect(file.channel(), command.id, from_wire(command.conn_param));
}

int ucma_listen(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_listen command;
  if (!request.read(command)) return EINVAL;
  return file.manager().listen(file.channel(), command.id, command.backlog);
}

int ucma_accept(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_accept command;
  if (!request.read(command, kLeastAccept)) return EINVAL;
  // Without parameters it is the active end's "ready to use", which iWARP does not have.
  if (!command.conn_param.valid) return file.manager().establish(file.channel(), command.id);
  return file.manager().accept(file.channel(), command.id, command.uid,
                               from_wire(command.conn_param));
}

int ucma_reject(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_reject command;
  if (!request.read(command)) return EINVAL;
  return file.manager().reject(file.channel(), command.id,
                               {command.private_data, command.private_data_len});
}

int ucma_disconnect(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_disconnect command;
  if (!request.read(command)) return EINVAL;
  return file.manager().disconnect(file.channel(), command.id);
}

// "The first message came before ESTABLISHED": only InfiniBand's CM wants to know.
int ucma_notify(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_notify command;
  if (!request.read(command)) return EINVAL;
  return file.manager().check_id(file.channel(), command.id);
}

}  // namespace uiw::vkernel
