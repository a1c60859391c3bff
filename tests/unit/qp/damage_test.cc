// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Nothing of a damaged FPDU is used, whichever bit it is (RFC 5044 4.4 and 6): of each kind of
// message one that would be placed, delivered or answered were it sound.
#include <gtest/gtest.h>

#include "support/scene.h"

namespace uiw::test {
namespace {

struct Receiver {
  Receiver()
      : target(m.memory, 16), to(m.memory, 16), sink(m.memory, 16), source(m.memory, pattern(16)) {
    m.receive(RecvWr({to.sge()}, 1));
    m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 2).to(0x1000, 1));
    cookie = read_be32(&ulpdus_of(m.transmit()).at(0)[18]);
  }
  std::vector<Octets> messages() const {
    return {tagged(0, target.stag(), target.start(), pattern(16, 1)),
            tagged(2, cookie, 0, pattern(16, 2)), untagged(3, 0, 1, 0, pattern(16, 3)),
            untagged(1, 1, 1, 0, read_request(1, 0, 16, source.stag(), source.start()))};
  }
  bool untouched() {
    m.tx().retire();
    return target.content() == Octets(16) && to.content() == Octets(16) &&
           sink.content() == Octets(16) && m.received().empty() && m.sent().empty() &&
           m.transmit().empty();
  }
  Machine m;
  Buffer target, to, sink, source;
  uint32_t cookie = 0;
};

TEST(Damage, ToAnyBitKeepsAMessageFromBeingUsed) {
  for (size_t which = 0; which < 4; ++which) {
    Receiver sound;
    const size_t size = fpdu(sound.messages()[which]).size();
    ASSERT_EQ(sound.m.feed(fpdu(sound.messages()[which])), qp::RxStatus::kOk);
    EXPECT_FALSE(sound.untouched());
    for (size_t bit = 0; bit < size * 8; ++bit) {
      Receiver r;
      Octets octets = fpdu(r.messages()[which]);
      octets[bit / 8] = static_cast<uint8_t>(octets[bit / 8] ^ 0x80 >> bit % 8);
      // A length that became larger is found when as much has come.
      octets.resize(70000);
      ASSERT_EQ(r.m.feed(octets), qp::RxStatus::kFault) << which << " bit " << bit;
      ASSERT_EQ(r.m.rx().fault().terminate.code, core::TermCode::kMpaCrc);
      ASSERT_TRUE(r.untouched()) << which << " bit " << bit;
    }
  }
}

}  // namespace
}  // namespace uiw::test
