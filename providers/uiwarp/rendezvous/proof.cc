// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/proof.h"

#include "core/be.h"
#include "core/raw_sys.h"

namespace uiw::rendezvous {
namespace {

constexpr uint32_t kPsnBits = 24, kPsnMask = (1u << kPsnBits) - 1;

// The purpose of a hash, so that a hash of one kind is never valid as the other.
enum class Use : uint64_t { kCommitment = 1, kProof = 2 };

// A direction whose PSN one end does not know counts as 0; the stages in the hash say which these
// are.
std::optional<uint64_t> combine(std::optional<uint32_t> to_responder,
                                std::optional<uint32_t> to_initiator) {
  if (!to_responder && !to_initiator) return {};
  return uint64_t{to_responder.value_or(0) & kPsnMask} << kPsnBits |
         (to_initiator.value_or(0) & kPsnMask);
}

uint64_t hash(const core::SipKey& key, Use use, const Transcript& said, uint64_t last) {
  const auto half = [](const Name& name, int at) { return core::load_be64(name.gid.s6_addr + at); };
  const uint64_t words[] = {
      static_cast<uint64_t>(use) << 16 | static_cast<uint64_t>(said.initiator_stage) << 8 |
          static_cast<uint64_t>(said.responder_stage),
      half(said.initiator, 0),
      half(said.initiator, 8),
      half(said.responder, 0),
      half(said.responder, 8),
      uint64_t{said.initiator.qp_num} << 32 | said.responder.qp_num,
      said.nonce,
      last,
  };
  return core::siphash(key, words);
}

}  // namespace

std::optional<uint64_t> secret_of_initiator(const Psns& own, Stage responder) {
  return combine(own.send,
                 responder == Stage::kRts ? std::optional(own.receive) : std::optional<uint32_t>());
}

std::optional<uint64_t> secret_of_responder(const Psns& own, Stage initiator) {
  return combine(initiator == Stage::kRts ? std::optional(own.receive) : std::optional<uint32_t>(),
                 own.send);
}

uint64_t commitment_of(const Transcript& said, uint64_t secret, const core::SipKey& opening) {
  return hash(opening, Use::kCommitment, said, secret);
}

uint64_t proof_of(const Transcript& said, uint64_t secret, uint64_t commitment) {
  return hash({secret, 0}, Use::kProof, said, commitment);
}

bool make_random(core::SipKey& key) {
  return core::sys::random(&key, sizeof key);
}

}  // namespace uiw::rendezvous
