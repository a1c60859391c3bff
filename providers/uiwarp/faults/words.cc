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
     "a call, as `create_cq`: see below. Those of queue pairs and completion queues are counted "
     "for "
     "each, others for the process"},
    {"op", "NAME", Role::kForm, kOp,
     "a request: `SEND`, `WRITE` and `READ`, with all their kinds, `ATOMIC`, in the order in which "
     "they are posted; `RECV`, in the order in which messages come; of queue pairs for datagrams "
     "`UD_SEND`, and `UD_RECV`, in the order in which they come from the network. Counted for each "
     "queue pair"},
    {"connect", nullptr, Role::kForm, kConnect,
     "a connection that this process begins, by `rdma_connect()`, or by number with "
     "`ibv_modify_qp()` to RTR. Counted for the process"},
    {"accept", nullptr, Role::kForm, kAccept,
     "a connection of rdma_cm that is requested of this process. Counted for the process, in the "
     "order in which requests come"},
    {"dev", "NAME", Role::kForm, kDevice,
     "a device, as `uiw_eth0`, or `*`: all that there are, at a time"},
    {"gid", "shift", Role::kForm, kGid,
     "the GIDs of all devices move one index up, at a time: GID_CHANGE comes, and what programs "
     "took "
     "for the index of a GID is another one's, or none's"},
    {"cq", "*", Role::kForm, kCq,
     "a completion, of sends and receives, counted for each completion queue"},
    {"peer", "ADDRESS", Role::kForm, kPeer,
     "what is posted to send queues of queue pairs that are connected to this host, as `10.0.0.2`, "
     "or `*`, any"},
    {"qp", "*", Role::kDetail, kOp,
     "says that each queue pair counts for itself, which is so anyway"},
    {"port", "N", Role::kDetail, kEither,
     "only connections of rdma_cm to this port, of the peer or, with `accept`, of this process, "
     "which alone are counted then"},
    {"nth", "N", Role::kWhich, kCounted, "the Nth"},
    {"every", "N", Role::kWhich, kCounted, "the Nth, the 2Nth and so on"},
    {"probability", "P", Role::kWhich, kCounted,
     "each with this probability, as 0.01. Without any of the three: each"},
    {"errno", "E", Role::kWhat, kVerb,
     "the call does nothing and fails with E, as its manual page says: by NULL and errno, a "
     "negative number, or E itself"},
    {"status", "S", Role::kWhat, kOp, "the request completes with `IBV_WC_S`"},
    {"delay", "MIN..MAX", Role::kWhat, kOp,
     "its completion is handed out later; of `UD_RECV` the datagram comes later, and others "
     "overtake "
     "it. One TIME is both. In `us`, `ms` or `s`, at most 60 s"},
    {"drop", nullptr, Role::kWhat, kOp,
     "of `UD_SEND` and `UD_RECV`: the datagram is lost on its way; a Send completes all the same"},
    {"duplicate", nullptr, Role::kWhat, kOp, "of `UD_RECV`: the datagram comes twice"},
    {"reorder", nullptr, Role::kWhat, kOp,
     "of `UD_RECV`: the datagram comes behind the next one, and never without one"},
    {"reject", nullptr, Role::kWhat, kEither,
     "the peer's program rejects it; with `accept` the peer is told that this one does"},
    {"timeout", nullptr, Role::kWhat, kEither,
     "nobody answers, until `UIWARP_CONNECT_TIMEOUT_MS` have passed; with `accept` the peer's "
     "`UIWARP_REPLY_TIMEOUT_MS`"},
    {"unreachable", nullptr, Role::kWhat, kConnect, "there is no way to the peer (EHOSTUNREACH)"},
    {"reset", nullptr, Role::kWhat, kEither,
     "it comes about, and is reset with the first request that is posted at this end"},
    {"after", "SIZE", Role::kDetail, kEither,
     "of `reset`: with the request that would be beyond so many bytes of requests, as `2KiB`, "
     "`1MiB` or `100`"},
    {"at", "TIME", Role::kDetail, kDevice | kGid,
     "when, from when the process has opened its first device, or the rules were put in force "
     "later; at most 86400 s. Needed"},
    {"port", "down", Role::kWhat, kDevice,
     "its port is down: PORT_ERR comes, and its state says so"},
    {"for", "TIME", Role::kDetail, kDevice,
     "of `port=down`: after that it is up again, and PORT_ACTIVE comes. Without: for good"},
    {"event", "NAME", Role::kWhat, kDevice, "this asynchronous event comes; see below"},
    {"overrun", nullptr, Role::kWhat, kCq,
     "the completion is lost as if the queue had no room: CQ_ERR comes, and its queue pairs end"},
    {"rate", "BITS", Role::kDetail, kPeer,
     "leaves at this rate, of all these queue pairs together, as `1Gbit`, `200Mbit` or `64Kbit` a "
     "second"},
    {"delay", "MIN..MAX", Role::kDetail, kPeer,
     "leaves so much later; one TIME is both. One of `rate` and `delay` is needed"},
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
