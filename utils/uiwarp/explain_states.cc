// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "explain.h"

namespace uiw::tool {
namespace {

constexpr char kKind[] = "state of a queue pair";

const Explanation kStates[] = {
    {kKind, "RESET", kNoNumber, "nothing can be posted",
     "A new queue pair of the RoCE face. Moving one there ends its connection, and drops "
     "completions that were not polled."},
    {kKind, "INIT", kNoNumber, "receives can be posted",
     "A new queue pair of the iWARP face; it is not connected."},
    {kKind, "RTR", kNoNumber, "receives messages", "The step from INIT to RTS."},
    {kKind, "RTS", kNoNumber, "sends and receives", "The queue pair is connected."},
    {kKind, "SQD", kNoNumber, "closes its connection gracefully",
     "rdma_disconnect() moves the queue pair there, or ibv_modify_qp(). What was posted still goes "
     "out, and Reads are answered; then the connection closes, and the queue pair goes to ERR.",
     "Of InfiniBand and RoCE the send queue stops, and may be started again by a move to RTS."},
    {kKind, "SQE", kNoNumber, "the send queue has failed",
     "Does not occur: a request that fails leads to ERR."},
    {kKind, "ERR", kNoNumber, "nothing is carried out any more",
     "The connection has ended, by an error or not. What was posted and is not done completes with "
     "IBV_WC_WR_FLUSH_ERR; its vendor_err says why."},
};

}  // namespace

std::span<const Explanation> explained_states() {
  return kStates;
}

}  // namespace uiw::tool
