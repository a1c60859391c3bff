// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults/events.h"

#include <cerrno>

#include "core/verbs_names.h"

namespace uiw::faults {
namespace {

constexpr EventInfo kTable[] = {
    {Form::kVerb, "open_device", "ibv_open_device()", Scope::kProcess, Failure::kNull},
    {Form::kVerb, "query_device", "ibv_query_device()", Scope::kProcess, Failure::kErrno},
    {Form::kVerb, "query_port", "ibv_query_port()", Scope::kProcess, Failure::kErrno},
    {Form::kVerb, "alloc_pd", "ibv_alloc_pd()", Scope::kProcess, Failure::kNull},
    {Form::kVerb, "reg_mr", "ibv_reg_mr()", Scope::kProcess, Failure::kNull},
    {Form::kVerb, "rereg_mr", "ibv_rereg_mr()", Scope::kProcess, Failure::kNegative},
    {Form::kVerb, "alloc_mw", "ibv_alloc_mw()", Scope::kProcess, Failure::kNull},
    {Form::kVerb, "create_ah", "ibv_create_ah()", Scope::kProcess, Failure::kNull},
    {Form::kVerb, "create_cq", "ibv_create_cq()", Scope::kProcess, Failure::kNull},
    {Form::kVerb, "create_srq", "ibv_create_srq()", Scope::kProcess, Failure::kNull},
    {Form::kVerb, "create_qp", "ibv_create_qp()", Scope::kProcess, Failure::kNull},
    {Form::kVerb, "modify_srq", "ibv_modify_srq()", Scope::kProcess, Failure::kErrno},
    {Form::kVerb, "post_srq_recv", "ibv_post_srq_recv()", Scope::kProcess, Failure::kErrno},
    {Form::kVerb, "modify_qp", "ibv_modify_qp()", Scope::kQueuePair, Failure::kErrno},
    {Form::kVerb, "query_qp", "ibv_query_qp()", Scope::kQueuePair, Failure::kErrno},
    {Form::kVerb, "post_send", "ibv_post_send()", Scope::kQueuePair, Failure::kErrno},
    {Form::kVerb, "post_recv", "ibv_post_recv()", Scope::kQueuePair, Failure::kErrno},
    {Form::kVerb, "resize_cq", "ibv_resize_cq()", Scope::kCompletionQueue, Failure::kErrno},
    {Form::kVerb, "poll_cq", "ibv_poll_cq()", Scope::kCompletionQueue, Failure::kNegative},
    {Form::kVerb, "req_notify_cq", "ibv_req_notify_cq()", Scope::kCompletionQueue, Failure::kErrno},
    {Form::kOp, "SEND", "Send", Scope::kQueuePair, Failure::kNone},
    {Form::kOp, "WRITE", "RDMA Write", Scope::kQueuePair, Failure::kNone},
    {Form::kOp, "READ", "RDMA Read", Scope::kQueuePair, Failure::kNone},
    {Form::kOp, "ATOMIC", "atomic operation", Scope::kQueuePair, Failure::kNone},
    {Form::kOp, "RECV", "receive", Scope::kQueuePair, Failure::kNone},
    {Form::kOp, "UD_SEND", "outgoing datagram", Scope::kQueuePair, Failure::kNone},
    {Form::kOp, "UD_RECV", "incoming datagram", Scope::kQueuePair, Failure::kNone},
    {Form::kConnect, "connect", "connection", Scope::kProcess, Failure::kNone},
    {Form::kAccept, "accept", "connection that is requested", Scope::kProcess, Failure::kNone},
    {Form::kCq, "cq", "completion", Scope::kCompletionQueue, Failure::kNone},
    {Form::kPeer, "peer", "request", Scope::kQueuePair, Failure::kNone},
    {Form::kDevice, "", "", Scope::kProcess, Failure::kNone},
};
static_assert(std::size(kTable) == kEvents);

constexpr Name kStatuses[] = {
    {"LOC_LEN_ERR", IBV_WC_LOC_LEN_ERR},
    {"LOC_QP_OP_ERR", IBV_WC_LOC_QP_OP_ERR},
    {"LOC_PROT_ERR", IBV_WC_LOC_PROT_ERR},
    {"BAD_RESP_ERR", IBV_WC_BAD_RESP_ERR},
    {"REM_INV_REQ_ERR", IBV_WC_REM_INV_REQ_ERR},
    {"REM_ACCESS_ERR", IBV_WC_REM_ACCESS_ERR},
    {"REM_OP_ERR", IBV_WC_REM_OP_ERR},
    {"RETRY_EXC_ERR", IBV_WC_RETRY_EXC_ERR},
    {"RNR_RETRY_EXC_ERR", IBV_WC_RNR_RETRY_EXC_ERR},
    {"REM_ABORT_ERR", IBV_WC_REM_ABORT_ERR},
    {"FATAL_ERR", IBV_WC_FATAL_ERR},
    {"RESP_TIMEOUT_ERR", IBV_WC_RESP_TIMEOUT_ERR},
    {"GENERAL_ERR", IBV_WC_GENERAL_ERR},
};

// Of what the peer has done nothing is heard.
constexpr Name kDatagramStatuses[] = {
    {"LOC_LEN_ERR", IBV_WC_LOC_LEN_ERR},   {"LOC_QP_OP_ERR", IBV_WC_LOC_QP_OP_ERR},
    {"LOC_PROT_ERR", IBV_WC_LOC_PROT_ERR}, {"FATAL_ERR", IBV_WC_FATAL_ERR},
    {"GENERAL_ERR", IBV_WC_GENERAL_ERR},
};

constexpr Name kReceiveStatuses[] = {
    {"LOC_LEN_ERR", IBV_WC_LOC_LEN_ERR},     {"LOC_QP_OP_ERR", IBV_WC_LOC_QP_OP_ERR},
    {"LOC_PROT_ERR", IBV_WC_LOC_PROT_ERR},   {"LOC_ACCESS_ERR", IBV_WC_LOC_ACCESS_ERR},
    {"REM_ABORT_ERR", IBV_WC_REM_ABORT_ERR}, {"FATAL_ERR", IBV_WC_FATAL_ERR},
    {"GENERAL_ERR", IBV_WC_GENERAL_ERR},
};

constexpr Name kAsync[] = {
    {"DEVICE_FATAL", IBV_EVENT_DEVICE_FATAL},
    {"PORT_ACTIVE", IBV_EVENT_PORT_ACTIVE},
    {"PORT_ERR", IBV_EVENT_PORT_ERR},
    {"LID_CHANGE", IBV_EVENT_LID_CHANGE},
    {"PKEY_CHANGE", IBV_EVENT_PKEY_CHANGE},
    {"SM_CHANGE", IBV_EVENT_SM_CHANGE},
    {"CLIENT_REREGISTER", IBV_EVENT_CLIENT_REREGISTER},
    {"GID_CHANGE", IBV_EVENT_GID_CHANGE},
};

#define UIW_ERRNO(name) \
  { #name, name }
constexpr Name kErrnos[] = {
    UIW_ERRNO(ENOMEM),      UIW_ERRNO(EINVAL),       UIW_ERRNO(EAGAIN),     UIW_ERRNO(EBUSY),
    UIW_ERRNO(EPERM),       UIW_ERRNO(EACCES),       UIW_ERRNO(EFAULT),     UIW_ERRNO(EIO),
    UIW_ERRNO(ENODEV),      UIW_ERRNO(ENOENT),       UIW_ERRNO(ENOSPC),     UIW_ERRNO(ENOSYS),
    UIW_ERRNO(EINTR),       UIW_ERRNO(EMFILE),       UIW_ERRNO(EOPNOTSUPP), UIW_ERRNO(ETIMEDOUT),
    UIW_ERRNO(ENETUNREACH), UIW_ERRNO(EHOSTUNREACH),
};
#undef UIW_ERRNO

}  // namespace

const EventInfo& info(Event event) {
  return kTable[static_cast<size_t>(event)];
}

std::span<const EventInfo> event_table() {
  return kTable;
}

bool event_of(ibv_wr_opcode opcode, Event& event) {
  switch (core::value_of(opcode)) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
      event = Event::kSend;
      return true;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      event = Event::kWrite;
      return true;
    case IBV_WR_RDMA_READ:
      event = Event::kRead;
      return true;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      event = Event::kAtomic;
      return true;
    default:
      return false;
  }
}

std::span<const Name> status_names() {
  return kStatuses;
}

std::span<const Name> datagram_status_names() {
  return kDatagramStatuses;
}

std::span<const Name> receive_status_names() {
  return kReceiveStatuses;
}

std::span<const Name> async_names() {
  return kAsync;
}

std::span<const Name> errno_names() {
  return kErrnos;
}

const char* name_of(std::span<const Name> names, int value) {
  for (const Name& name : names)
    if (name.value == value) return name.name;
  return "?";
}

}  // namespace uiw::faults
