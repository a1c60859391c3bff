// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults/words.h"

#include <iterator>

namespace uiw::faults {
namespace {

constexpr uint8_t bit(Form form) {
  return static_cast<uint8_t>(1u << static_cast<unsigned>(form));
}
constexpr uint8_t kVerb = bit(Form::kVerb), kOp = bit(Form::kOp), kConnect = bit(Form::kConnect),
                  kCounted = kVerb | kOp | kConnect;

constexpr Word kTable[] = {
    {"verb", "NAME", Role::kForm, kVerb,
     "a call, as `create_cq`: see below. Those of queue pairs and completion queues are counted "
     "for "
     "each, others for the process"},
    {"op", "NAME", Role::kForm, kOp,
     "a request: `SEND`, `WRITE` and `READ`, with all their kinds, `ATOMIC`, in the order in which "
     "they are posted; `RECV`, in the order in which messages come. Counted for each queue pair"},
    {"connect", nullptr, Role::kForm, kConnect,
     "a connection that this process begins, by `rdma_connect()`, or by number with "
     "`ibv_modify_qp()` to RTR. Counted for the process"},
    {"qp", "*", Role::kDetail, kOp,
     "says that each queue pair counts for itself, which is so anyway"},
    {"port", "N", Role::kDetail, kConnect,
     "only connections of rdma_cm to this port of the peer, which alone are counted then"},
    {"nth", "N", Role::kWhich, kCounted, "the Nth"},
    {"every", "N", Role::kWhich, kCounted, "the Nth, the 2Nth and so on"},
    {"probability", "P", Role::kWhich, kCounted,
     "each with this probability, as 0.01. Without any of the three: each"},
    {"errno", "E", Role::kWhat, kVerb,
     "the call does nothing and fails with E, as its manual page says: by NULL and errno, a "
     "negative number, or E itself"},
    {"status", "S", Role::kWhat, kOp, "the request completes with `IBV_WC_S`"},
    {"delay", "MIN..MAX", Role::kWhat, kOp,
     "its completion is handed out later; one TIME is both. In `us`, `ms` or `s`, at most 60 s"},
    {"reject", nullptr, Role::kWhat, kConnect, "the peer's program rejects it"},
    {"timeout", nullptr, Role::kWhat, kConnect,
     "nobody answers, until `UIWARP_CONNECT_TIMEOUT_MS` have passed"},
    {"unreachable", nullptr, Role::kWhat, kConnect, "there is no way to the peer (EHOSTUNREACH)"},
    {"reset", nullptr, Role::kWhat, kConnect,
     "it comes about, and is reset with the first request that is posted at this end"},
    {"after", "SIZE", Role::kDetail, kConnect,
     "of `reset`: with the request that would be beyond so many bytes of requests, as `2KiB`, "
     "`1MiB` or `100`"},
};
static_assert(std::size(kTable) == kKeys);

}  // namespace

std::span<const Word> word_table() {
  return kTable;
}

const Word& info(Key key) {
  return kTable[static_cast<size_t>(key)];
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
