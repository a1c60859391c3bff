// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/lost_event.h"

#include "check/text.h"

namespace uiw::check {
namespace {

// An event that was raised for what waits would have ended the wait.
std::string reason_of(const Arming& arming) {
  if (arming.how == Arming::How::kNever)
    return "ibv_req_notify_cq() was never called for it, so it raises no events";
  if (arming.held > 0)
    return text(
        "when it was armed last, %u were in it already, and it was not emptied since: an "
        "event tells of what comes after ibv_req_notify_cq()",
        arming.held);
  return "its last event was taken, and ibv_req_notify_cq() was not called since";
}

}  // namespace

std::optional<LostEvent> judge(const Blocked& blocked) {
  const Arming& arming = blocked.arming;
  if (blocked.wait == Wait::kOther || blocked.waiting == 0) return std::nullopt;
  if (arming.how == Arming::How::kSolicitedOnly) return std::nullopt;
  // Programs let completions of their sends lie until something else wakes them; and messages,
  // while they wait for the event of another queue.
  const bool is_wanted = blocked.messages > 0 || arming.how == Arming::How::kNever;
  const bool nothing_else =
      blocked.wait == Wait::kSolely && !blocked.is_shared && blocked.others == 0;
  return LostEvent{
      text("the thread that polls it has waited for an event of its completion channel for a "
           "second and longer, while %u %s in it (%u of received messages): %s",
           blocked.waiting, blocked.waiting == 1 ? "completion waits" : "completions wait",
           blocked.messages, reason_of(arming).c_str()),
      !(is_wanted && nothing_else)};
}

}  // namespace uiw::check
