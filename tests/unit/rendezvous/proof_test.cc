// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/proof.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "support/gid.h"

namespace uiw::rendezvous {
namespace {

using test::gid;

// What a initiator sends with, and what the responder does.
constexpr uint32_t kInitiators = 0x654321, kResponders = 0xfedcba;
constexpr Psns kInitiatorInRtr{kResponders, {}}, kInitiatorInRts{kResponders, kInitiators},
    kResponderInRtr{kInitiators, {}}, kResponderInRts{kInitiators, kResponders};

Transcript transcript() {
  return {{gid("::ffff:10.0.0.1"), 0x123456},
          {gid("2001:db8::9"), 0xabcdef},
          Stage::kRts,
          Stage::kRts,
          0x1122334455667788};
}
constexpr core::SipKey kOpening{0x0f1e2d3c4b5a6978, 0x8796a5b4c3d2e1f0};
constexpr uint64_t kSecret = 0x654321fedcba;

// Computed by OpenSSL's SipHash.
TEST(Proof, HashesAreAsDocumented) {
  constexpr uint64_t kCommitment = 0x2aec2c579b36463d;
  EXPECT_EQ(commitment_of(transcript(), kSecret, kOpening), kCommitment);
  EXPECT_EQ(proof_of(transcript(), kSecret, kCommitment), 0x8a5321b2ef24ce16u);
}

TEST(Proof, BothEndsShareWhatBothKnow) {
  EXPECT_EQ(kInitiatorInRtr.stage(), Stage::kRtr);
  EXPECT_EQ(kInitiatorInRts.stage(), Stage::kRts);
  const auto shared = [](const Psns& initiator, const Psns& responder) {
    const auto of_initiator = secret_of_initiator(initiator, responder.stage());
    EXPECT_EQ(of_initiator, secret_of_responder(responder, initiator.stage()));
    return of_initiator;
  };
  EXPECT_EQ(shared(kInitiatorInRtr, kResponderInRtr), std::nullopt);
  EXPECT_EQ(shared(kInitiatorInRts, kResponderInRtr), uint64_t{kInitiators} << 24);
  EXPECT_EQ(shared(kInitiatorInRtr, kResponderInRts), uint64_t{kResponders});
  EXPECT_EQ(shared(kInitiatorInRts, kResponderInRts), kSecret);
  // Programs set 32 bits, of which PSNs have 24.
  EXPECT_EQ(secret_of_initiator({0xff000000 | kResponders, 0xff000000 | kInitiators}, Stage::kRts),
            kSecret);
}

TEST(Proof, EverythingSaidIsInIt) {
  const uint64_t commitment = commitment_of(transcript(), kSecret, kOpening);
  const uint64_t proof = proof_of(transcript(), kSecret, commitment);
  std::set<uint64_t> all{commitment, proof, proof_of(transcript(), kSecret, proof)};
  size_t count = all.size();
  const auto expect_others = [&](const std::function<void(Transcript&)>& change) {
    Transcript said = transcript();
    change(said);
    all.insert(commitment_of(said, kSecret, kOpening));
    all.insert(proof_of(said, kSecret, commitment));
    count += 2;
    EXPECT_EQ(all.size(), count);
  };
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t flip = uint64_t{1} << bit;
    expect_others([&](Transcript& said) { said.nonce ^= flip; });
    for (int half : {0, 8}) {
      const auto flip_gid = [&](Name& name) {
        name.gid.s6_addr[half + bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      };
      expect_others([&](Transcript& said) { flip_gid(said.initiator); });
      expect_others([&](Transcript& said) { flip_gid(said.responder); });
    }
    all.insert(commitment_of(transcript(), kSecret, {kOpening.first ^ flip, kOpening.second}));
    all.insert(commitment_of(transcript(), kSecret, {kOpening.first, kOpening.second ^ flip}));
    all.insert(proof_of(transcript(), kSecret, commitment ^ flip));
    count += 3;
  }
  for (int bit = 0; bit < 48; ++bit) {
    const uint64_t other = kSecret ^ uint64_t { 1 } << bit;
    all.insert(commitment_of(transcript(), other, kOpening));
    all.insert(proof_of(transcript(), other, commitment));
    count += 2;
  }
  for (int bit = 0; bit < 24; ++bit) {
    expect_others([&](Transcript& said) { said.initiator.qp_num ^= 1u << bit; });
    expect_others([&](Transcript& said) { said.responder.qp_num ^= 1u << bit; });
  }
  expect_others([](Transcript& said) { said.initiator_stage = Stage::kRtr; });
  expect_others([](Transcript& said) { said.responder_stage = Stage::kRtr; });
  expect_others([](Transcript& said) { std::swap(said.initiator, said.responder); });
  EXPECT_EQ(all.size(), count);
}

TEST(Proof, RandomIsNeverTheSame) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 100; ++i) {
    core::SipKey key;
    ASSERT_TRUE(make_random(key));
    EXPECT_TRUE(seen.insert(key.first).second);
    EXPECT_TRUE(seen.insert(key.second).second);
  }
}

}  // namespace
}  // namespace uiw::rendezvous
