// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "explain.h"

namespace uiw::tool {
namespace {

constexpr char kKind[] = "state of a queue pair";

const Explanation kStates[] = {
    {kKind, "RESET", kNoNumber, "nothing can be posted",
     "The initial state with the RoCE face. Moving a queue pair to RESET ends its connection and "
     "discards completions that have not been polled."},
    {kKind, "INIT", kNoNumber, "receives can be posted",
     "The initial state with the iWARP face; the queue pair is not connected."},
    {kKind, "RTR", kNoNumber, "receives messages", "The step between INIT and RTS."},
    {kKind, "RTS", kNoNumber, "sends and receives", "The queue pair is connected."},
    {kKind, "SQD", kNoNumber, "closes its connection gracefully",
     "rdma_disconnect() or ibv_modify_qp() moves the queue pair to this state. Posted requests are "
     "still sent, and Reads are answered. Then the connection closes, and the queue pair goes to "
     "ERR.",
     "On InfiniBand and RoCE the send queue stops, and a move to RTS starts it again."},
    {kKind, "SQE", kNoNumber, "the send queue has failed",
     "Does not occur: a failed request moves the queue pair to ERR."},
    {kKind, "ERR", kNoNumber, "no request is carried out",
     "The connection has ended, by an error or not. Posted requests that are not done complete "
     "with IBV_WC_WR_FLUSH_ERR; vendor_err says why."},
};

}  // namespace

std::span<const Explanation> explained_states() {
  return kStates;
}

}  // namespace uiw::tool
