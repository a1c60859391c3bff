// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults/words.h"

#include <iterator>

namespace uiw::faults {
namespace {

constexpr uint8_t bit(Form form) {
  return static_cast<uint8_t>(1u << static_cast<unsigned>(form));
}
constexpr uint8_t kVerb = bit(Form::kVerb), kOp = bit(Form::kOp), kConnect = bit(Form::kConnect),
                  kAccept = bit(Form::kAccept), kEither = kConnect | kAccept,
                  kDevice = bit(Form::kDevice), kGid = bit(Form::kGid), kCq = bit(Form::kCq),
                  kPeer = bit(Form::kPeer), kCounted = kVerb | kOp | kEither | kCq;

constexpr Word kTable[] = {
    {"verb", "NAME", Role::kForm, kVerb,
     "a call, such as `create_cq`; see below. Calls for a queue pair or completion queue are "
     "counted for each of these, others for the process"},
    {"op", "NAME", Role::kForm, kOp,
     "a request: `SEND`, `WRITE` and `READ`, with all their variants, and `ATOMIC`, in the order "
     "in which they are posted; `RECV`, in the order in which messages arrive; on datagram queue "
     "pairs `UD_SEND`, and `UD_RECV`, in the order in which datagrams arrive from the network. "
     "Counted for each queue pair"},
    {"connect", nullptr, Role::kForm, kConnect,
     "a connection that this process starts, by `rdma_connect()`, or by number with "
     "`ibv_modify_qp()` to RTR. Counted for the process"},
    {"accept", nullptr, Role::kForm, kAccept,
     "an rdma_cm connection that a peer requests from this process. Counted for the process, in "
     "the order in which the requests arrive"},
    {"dev", "NAME", Role::kForm, kDevice,
     "at a given time, something happens to this device, such as `uiw_eth0`, or with `*` to all "
     "devices"},
    {"gid", "shift", Role::kForm, kGid,
     "at a given time, the GIDs of all devices move up by one index: GID_CHANGE is raised, and an "
     "index that a program has stored holds another GID, or none"},
    {"cq", "*", Role::kForm, kCq,
     "a completion of a send or a receive, counted for each completion queue"},
    {"peer", "ADDRESS", Role::kForm, kPeer,
     "the requests posted to the send queues of queue pairs that are connected to this host, such "
     "as `10.0.0.2`, or with `*` to any host"},
    {"qp", "*", Role::kDetail, kOp,
     "each queue pair is counted separately. This is always so; the word may be left out"},
    {"port", "N", Role::kDetail, kEither,
     "apply to and count only rdma_cm connections to this port: of the peer or, with `accept`, of "
     "this process"},
    {"nth", "N", Role::kWhich, kCounted, "the Nth"},
    {"every", "N", Role::kWhich, kCounted, "the Nth, the 2Nth and so on"},
    {"probability", "P", Role::kWhich, kCounted,
     "each with this probability, such as 0.01. Without `nth`, `every` and `probability`: each"},
    {"errno", "E", Role::kWhat, kVerb,
     "the call does nothing and fails with E, in the way that its manual page describes: by NULL "
     "and errno, a negative number, or E itself"},
    {"status", "S", Role::kWhat, kOp, "the request completes with `IBV_WC_S`"},
    {"delay", "MIN..MAX", Role::kWhat, kOp,
     "its completion is returned later; for `UD_RECV` the datagram arrives later, and others "
     "overtake it. A single TIME stands for both MIN and MAX. In `us`, `ms` or `s`, at most 60 s"},
    {"drop", nullptr, Role::kWhat, kOp,
     "for `UD_SEND` and `UD_RECV`: the datagram is lost on its way; a Send still completes"},
    {"duplicate", nullptr, Role::kWhat, kOp, "for `UD_RECV`: the datagram arrives twice"},
    {"reorder", nullptr, Role::kWhat, kOp,
     "for `UD_RECV`: the datagram arrives after the next one; without a next one, never"},
    {"reject", nullptr, Role::kWhat, kEither,
     "the peer's program rejects the connection; with `accept`, the peer is told that this program "
     "does"},
    {"timeout", nullptr, Role::kWhat, kEither,
     "no answer arrives, until `UIWARP_CONNECT_TIMEOUT_MS` is over; with `accept`, until the "
     "peer's `UIWARP_REPLY_TIMEOUT_MS` is over"},
    {"unreachable", nullptr, Role::kWhat, kConnect, "the peer cannot be reached (EHOSTUNREACH)"},
    {"reset", nullptr, Role::kWhat, kEither,
     "the connection is made, and is reset when this end posts its first request"},
    {"after", "SIZE", Role::kDetail, kEither,
     "for `reset`: when this end posts the request that exceeds this many bytes of requests, such "
     "as `2KiB`, `1MiB` or `100`"},
    {"at", "TIME", Role::kDetail, kDevice | kGid,
     "the time, counted from when the process opened its first device, or from when the rules were "
     "changed later; at most 86400 s. Required"},
    {"port", "down", Role::kWhat, kDevice,
     "its port goes down: PORT_ERR is raised, and the port state is down"},
    {"for", "TIME", Role::kDetail, kDevice,
     "for `port=down`: after this time the port comes up again, unless another rule holds it down, "
     "and PORT_ACTIVE is raised. Without "
     "it, the port stays down"},
    {"event", "NAME", Role::kWhat, kDevice, "this asynchronous event is raised; see below"},
    {"overrun", nullptr, Role::kWhat, kCq,
     "the completion is lost as if the queue were full: CQ_ERR is raised, and the queue pairs of "
     "the queue go to ERR"},
    {"rate", "BITS", Role::kDetail, kPeer,
     "all these queue pairs together send at this rate per second, such as `1Gbit`, `200Mbit` or "
     "`64Kbit`"},
    {"delay", "MIN..MAX", Role::kDetail, kPeer,
     "each request is sent this much later; a single TIME stands for both MIN and MAX. At least "
     "one of `rate` and `delay` is required"},
};
static_assert(std::size(kTable) == kKeys);

}  // namespace

std::span<const Word> word_table() {
  return kTable;
}

std::string written(const Word& word) {
  return word.value ? std::string(word.name) + "=" + word.value : word.name;
}

std::string words_of(Form form, Role role, const char* between) {
  std::string all;
  for (const Word& word : kTable)
    if (word.role == role && word.fits(form)) all += (all.empty() ? "" : between) + written(word);
  return all;
}

std::string form_word(Form form) {
  return words_of(form, Role::kForm, "");
}

}  // namespace uiw::faults
