// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/proof.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "support/gid.h"

namespace uiw::rendezvous {
namespace {

using test::gid;

// What a caller sends with, and what the answerer does.
constexpr uint32_t kCallers = 0x654321, kAnswerers = 0xfedcba;
constexpr Psns kCallerInRtr{kAnswerers, {}}, kCallerInRts{kAnswerers, kCallers},
    kAnswererInRtr{kCallers, {}}, kAnswererInRts{kCallers, kAnswerers};

Introduction introduction() {
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
  EXPECT_EQ(commitment_of(introduction(), kSecret, kOpening), kCommitment);
  EXPECT_EQ(proof_of(introduction(), kSecret, kCommitment), 0x8a5321b2ef24ce16u);
}

TEST(Proof, BothEndsShareWhatBothKnow) {
  EXPECT_EQ(kCallerInRtr.stage(), Stage::kRtr);
  EXPECT_EQ(kCallerInRts.stage(), Stage::kRts);
  const auto shared = [](const Psns& caller, const Psns& answerer) {
    const auto of_caller = secret_of_caller(caller, answerer.stage());
    EXPECT_EQ(of_caller, secret_of_answerer(answerer, caller.stage()));
    return of_caller;
  };
  EXPECT_EQ(shared(kCallerInRtr, kAnswererInRtr), std::nullopt);
  EXPECT_EQ(shared(kCallerInRts, kAnswererInRtr), uint64_t{kCallers} << 24);
  EXPECT_EQ(shared(kCallerInRtr, kAnswererInRts), uint64_t{kAnswerers});
  EXPECT_EQ(shared(kCallerInRts, kAnswererInRts), kSecret);
  // Programs set 32 bits, of which PSNs have 24.
  EXPECT_EQ(secret_of_caller({0xff000000 | kAnswerers, 0xff000000 | kCallers}, Stage::kRts),
            kSecret);
}

TEST(Proof, EverythingSaidIsInIt) {
  const uint64_t commitment = commitment_of(introduction(), kSecret, kOpening);
  const uint64_t proof = proof_of(introduction(), kSecret, commitment);
  std::set<uint64_t> all{commitment, proof, proof_of(introduction(), kSecret, proof)};
  size_t count = all.size();
  const auto expect_others = [&](const std::function<void(Introduction&)>& change) {
    Introduction said = introduction();
    change(said);
    all.insert(commitment_of(said, kSecret, kOpening));
    all.insert(proof_of(said, kSecret, commitment));
    count += 2;
    EXPECT_EQ(all.size(), count);
  };
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t flip = uint64_t{1} << bit;
    expect_others([&](Introduction& said) { said.nonce ^= flip; });
    for (int half : {0, 8}) {
      const auto flip_gid = [&](Name& name) {
        name.gid.s6_addr[half + bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      };
      expect_others([&](Introduction& said) { flip_gid(said.caller); });
      expect_others([&](Introduction& said) { flip_gid(said.answerer); });
    }
    all.insert(commitment_of(introduction(), kSecret, {kOpening.first ^ flip, kOpening.second}));
    all.insert(commitment_of(introduction(), kSecret, {kOpening.first, kOpening.second ^ flip}));
    all.insert(proof_of(introduction(), kSecret, commitment ^ flip));
    count += 3;
  }
  for (int bit = 0; bit < 48; ++bit) {
    const uint64_t other = kSecret ^ uint64_t { 1 } << bit;
    all.insert(commitment_of(introduction(), other, kOpening));
    all.insert(proof_of(introduction(), other, commitment));
    count += 2;
  }
  for (int bit = 0; bit < 24; ++bit) {
    expect_others([&](Introduction& said) { said.caller.qp_num ^= 1u << bit; });
    expect_others([&](Introduction& said) { said.answerer.qp_num ^= 1u << bit; });
  }
  expect_others([](Introduction& said) { said.caller_stage = Stage::kRtr; });
  expect_others([](Introduction& said) { said.answerer_stage = Stage::kRtr; });
  expect_others([](Introduction& said) { std::swap(said.caller, said.answerer); });
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
