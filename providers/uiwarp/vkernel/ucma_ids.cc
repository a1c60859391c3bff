// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// ucma commands about ids and events.
#include <cerrno>
#include <cstddef>

#include "vkernel/ucma_file.h"

namespace uiw::vkernel {
namespace {

constexpr uint8_t kReliableConnection = 2;  // IBV_QPT_RC

// What librdmacm of rdma-core 60 and later writes to send itself an event.
struct WriteEvent {
  uint32_t id;
  uint32_t reserved;
  uint32_t event;
  uint32_t status;
  uint64_t argument;
};

// The members that came after the first version of GET_EVENT's response may be missing.
constexpr size_t kLeastEvent = offsetof(rdma_ucm_event_resp, reserved);

}  // namespace

int ucma_create_id(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_create_id command;
  if (!request.read(command)) return EINVAL;
  rdma_ucm_create_id_resp response{};
  if (int error = request.room_for(command.response, sizeof response)) return error;
  const int error = file.manager().create_id(
      file.channel(), command.uid, static_cast<cm::PortSpace>(command.ps),
      command.qp_type == kReliableConnection || command.ps == RDMA_PS_TCP, response.id);
  if (error == 0) request.respond(command.response, response);
  return error;
}

int ucma_destroy_id(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_destroy_id command;
  if (!request.read(command)) return EINVAL;
  rdma_ucm_destroy_id_resp response{};
  if (int error = request.room_for(command.response, sizeof response)) return error;
  const int error = file.manager().destroy_id(file.channel(), command.id, response.events_reported);
  if (error == 0) request.respond(command.response, response);
  return error;
}

// Written to the new channel; names the descriptor of the old one.
int ucma_migrate_id(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_migrate_id command;
  if (!request.read(command)) return EINVAL;
  rdma_ucm_migrate_resp response{};
  if (int error = request.room_for(command.response, sizeof response)) return error;
  const FileRef from = find_file(static_cast<int>(command.fd));
  if (!from) return ENOENT;
  if (from->kind() != DeviceFile::Kind::kUcma) return EINVAL;
  const int error =
      file.manager().migrate_id(file.channel(), static_cast<UcmaFile*>(from.get())->channel(),
                                command.id, response.events_reported);
  if (error == 0) request.respond(command.response, response);
  return error;
}

int ucma_get_event(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_get_event command;
  if (!request.read(command)) return EINVAL;
  if (int error = request.room_for(command.response, kLeastEvent)) return error;
  cm::Event event;
  if (int error = file.wait_for_event(request.fd, event)) return error;

  rdma_ucm_event_resp response{};
  response.uid = event.uid;
  response.id = event.id;
  response.event = static_cast<uint32_t>(event.type);
  response.status = static_cast<uint32_t>(event.status);
  if (event.type == cm::EventType::kUser || event.type == cm::EventType::kInternal) {
    std::memcpy(&response.param, &event.argument, sizeof event.argument);
  } else {
    rdma_ucm_conn_param& param = response.param.conn;
    param.qp_num = event.param.qp_num;
    std::memcpy(param.private_data, event.param.private_data, event.param.private_data_len);
    param.private_data_len = event.param.private_data_len;
    param.responder_resources = event.param.responder_resources;
    param.initiator_depth = event.param.initiator_depth;
    param.flow_control = event.param.flow_control;
    param.retry_count = event.param.retry_count;
    param.rnr_retry_count = event.param.rnr_retry_count;
    param.srq = event.param.srq;
  }
  request.respond(command.response, response);
  return 0;
}

int ucma_write_event(UcmaFile& file, const UcmaRequest& request) {
  WriteEvent command;
  if (!request.read(command)) return EINVAL;
  return file.manager().write_event(file.channel(), command.id,
                                    static_cast<cm::EventType>(command.event),
                                    static_cast<int>(command.status), command.argument);
}

}  // namespace uiw::vkernel
