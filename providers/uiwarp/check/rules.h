// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What is misuse. Pure: facts in, the kind and a sentence out.
#pragma once

#include <infiniband/verbs.h>

#include <optional>
#include <string>

#include "check/finding.h"
#include "check/last_writes.h"
#include "check/regions.h"
#include "check/requests.h"
#include "core/term_code.h"

namespace uiw::check {

struct Fault {
  Kind kind;
  std::string what;
};

// Why a post of sends failed with `error`, which `wr` is to blame for. Nothing: it may be no fault.
std::optional<Fault> why_send_refused(const ibv_send_wr& wr, int error, ibv_qp_state state,
                                      const ibv_qp_cap& cap, const Requests& outstanding);
// The send queue is full while `waiting` completions wait to be polled where it completes: a hint.
std::optional<Fault> not_polled(int error, const Requests& outstanding, uint32_t waiting);
std::optional<Fault> why_receive_refused(int error, ibv_qp_state state, bool has_srq);

// A send of a queue pair that its program has moved to RTR and not to RTS, where it waits here.
std::optional<Fault> too_early(ibv_qp_state state);

// Inline data that is more than `asked`, though the device may take it.
std::optional<Fault> inline_not_asked(const ibv_send_wr& wr, uint32_t asked);

// The state of a source's memory.
struct Memory {
  std::optional<uint32_t> fingerprint;  // nothing: it cannot be told
  bool readable = true;                 // false: it was unmapped, or protected
};
Memory memory_of(const Request& request, const Regions& regions);

// What a completion that failed says of its request: what is wrong with its SGEs. `pd` as in
// Region.
std::optional<Verdict> why_refused(const Request& request, ibv_wc_status status,
                                   const Regions& regions, const void* pd);

// What is wrong with the oldest receive of a UD queue pair, when a datagram needed so many bytes.
std::string why_datagram_dropped(const Request& receive, uint64_t needed);

// A request of a send queue that ended so, since the connection was agreed on without Reads.
std::optional<Verdict> why_unanswered(const Request& request, const ibv_wc& wc);

// A request that the peer refused, since it may not have that memory. `certain`: it is the one of
// its wr_id that failed.
std::optional<Verdict> why_peer_refused(const Request& request, const ibv_wc& wc, bool certain);

// The peer refused a Write after it had completed, by that Terminate code: its segment at
// `address`, which so many Writes have.
std::string why_write_refused(const DoneWrite& write, size_t matches, uint64_t address,
                              core::TermCode code);

// "wr_id 0x7, 0x8 and 3 more".
std::string list_of(const std::vector<uint64_t>& wr_ids);

// Requests whose completion the program has asked for, and not taken.
struct Unpolled {
  std::vector<uint64_t> wr_ids;
  Stack posted;  // of the first
};
// Those of `sends` of which `which(request)` is true.
template <class Which>
Unpolled unpolled_of(const Requests& sends, Which which) {
  Unpolled all;
  sends.each([&](const Request& request) {
    if (!request.signaled || !which(request)) return;
    if (all.wr_ids.empty()) all.posted = request.posted;
    all.wr_ids.push_back(request.wr_id);
  });
  return all;
}

// Fields of a completion that the manual leaves undefined, since it failed.
void spoil(ibv_wc& wc);

}  // namespace uiw::check
