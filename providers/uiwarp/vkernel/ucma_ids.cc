// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// ucma commands about ids and events.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>

#include "core/instrumented.h"
#include "uiwarp/uiwarp-verbs.h"
#include "vkernel/ucma_file.h"
#include "vkernel/ucma_path.h"

namespace uiw::vkernel {
namespace {

// What an id of the port space of InfiniBand is for.
cm::Service service_of(uint8_t qp_type) {
  switch (qp_type) {
    case IBV_QPT_RC:
      return cm::Service::kConnection;
    case IBV_QPT_UD:
      return cm::Service::kDatagrams;
    default:
      return cm::Service::kNone;
  }
}

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

rdma_ucm_conn_param connection_of(const cm::ConnParam& in) {
  rdma_ucm_conn_param out{};
  out.qp_num = in.qp_num;
  std::memcpy(out.private_data, in.private_data, in.private_data_len);
  out.private_data_len = in.private_data_len;
  out.responder_resources = in.responder_resources;
  out.initiator_depth = in.initiator_depth;
  out.flow_control = in.flow_control;
  out.retry_count = in.retry_count;
  out.rnr_retry_count = in.rnr_retry_count;
  out.srq = in.srq;
  return out;
}

rdma_ucm_ud_param datagrams_of(const cm::Event& event) {
  rdma_ucm_ud_param out{};
  out.qp_num = event.param.qp_num;
  out.qkey = event.param.qkey;
  if (event.route.device != nullptr) out.ah_attr = address_vector(event.route);
  std::memcpy(out.private_data, event.param.private_data, event.param.private_data_len);
  out.private_data_len = event.param.private_data_len;
  return out;
}

}  // namespace

int ucma_create_id(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_create_id command;
  if (!request.read(command)) return EINVAL;
  rdma_ucm_create_id_resp response{};
  if (int error = request.room_for(command.response, response)) return error;
  const int error =
      file.manager().create_id(file.channel(), command.uid, static_cast<cm::PortSpace>(command.ps),
                               service_of(command.qp_type), response.id);
  if (error == 0) request.respond(command.response, response);
  return error;
}

int ucma_destroy_id(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_destroy_id command;
  if (!request.read(command)) return EINVAL;
  rdma_ucm_destroy_id_resp response{};
  if (int error = request.room_for(command.response, response)) return error;
  const uiwarp_verbs* const told = core::instrumented.load(std::memory_order_acquire);
  const uint64_t uid = told ? file.manager().uid_of(file.channel(), command.id) : 0;
  const int error = file.manager().destroy_id(file.channel(), command.id, response.events_reported);
  if (error == 0) request.respond(command.response, response);
  if (error == 0 && uid != 0) told->cm_id_destroyed(uid, response.events_reported);
  return error;
}

// Written to the new channel; names the descriptor of the old one.
int ucma_migrate_id(UcmaFile& file, const UcmaRequest& request) {
  rdma_ucm_migrate_id command;
  if (!request.read(command)) return EINVAL;
  rdma_ucm_migrate_resp response{};
  if (int error = request.room_for(command.response, response)) return error;
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
  rdma_ucm_event_resp response{};
  if (int error = request.room_for(command.response, response, kLeastEvent)) return error;
  cm::Event event;
  if (int error = file.wait_for_event(request.fd, event)) return error;

  response.uid = event.uid;
  response.id = event.id;
  response.event = static_cast<uint32_t>(event.type);
  response.status = static_cast<uint32_t>(event.status);
  if (event.type == cm::EventType::kUser || event.type == cm::EventType::kInternal) {
    std::memcpy(&response.param, &event.argument, sizeof event.argument);
  } else if (event.route.service == cm::Service::kDatagrams) {
    response.param.ud = datagrams_of(event);
  } else {
    response.param.conn = connection_of(event.param);
  }
  request.respond(command.response, response);
  const uiwarp_verbs* const told = core::instrumented.load(std::memory_order_acquire);
  // One of a multicast group names the membership.
  if (told && event.type != cm::EventType::kMulticastJoin &&
      event.type != cm::EventType::kMulticastError)
    told->cm_event_taken(event.uid, response.event, event.status);
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
