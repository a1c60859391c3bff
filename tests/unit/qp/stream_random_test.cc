// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The fuzz target's harness with streams made from seeds: mostly right, a little wrong.
#include <gtest/gtest.h>

#include <random>

#include "fuzz/stream_harness.h"
#include "support/marked_stream.h"

namespace uiw::test {
namespace {

class Maker {
 public:
  explicit Maker(uint32_t seed) : random_(seed) {}

  Octets input() {
    Octets out = {static_cast<uint8_t>(random_()),
                  static_cast<uint8_t>(some(4) ? random_() % 40 : 0),
                  static_cast<uint8_t>(random_())};
    if (some(8)) out[1] = static_cast<uint8_t>(random_());
    out[0] = static_cast<uint8_t>(out[0] | (some(6) ? 0 : 8));
    const bool frames = out[0] & 8, markers = out[0] & 0x40;
    MarkedStream marked;
    const size_t count = random_() % 12;
    for (size_t i = 0; i < count; ++i) {
      Octets ulpdu = segment();
      if (some(12)) damage(ulpdu);
      if (frames) {
        ulpdu.resize(std::min<size_t>(ulpdu.size(), 255));
        out.push_back(static_cast<uint8_t>(ulpdu.size()));
        out.insert(out.end(), ulpdu.begin(), ulpdu.end());
      } else {
        const Octets whole = markers ? marked.next(ulpdu) : fpdu(ulpdu);
        out.insert(out.end(), whole.begin(), whole.end());
      }
    }
    if (some(10)) damage(out);
    return out;
  }

 private:
  bool some(unsigned of) { return random_() % of == 0; }
  Octets payload(size_t most) {
    Octets out(random_() % (most + 1));
    for (uint8_t& octet : out) octet = static_cast<uint8_t>(random_());
    return out;
  }
  uint64_t target() {
    switch (random_() % 8) {
      case 0:
        return 0x1000 - 1;
      case 1:
        return 0x1000 + 256 - random_() % 8;
      case 2:
        return ~uint64_t{0} - random_() % 16;
      default:
        return 0x1000 + random_() % 100;
    }
  }
  uint32_t stag(uint32_t usual) { return some(8) ? static_cast<uint32_t>(random_() % 8) : usual; }
  Octets segment() {
    switch (random_() % 9) {
      case 0:
        return tagged(0, stag(1), target(), payload(150), !some(3));
      case 1: {  // the answer to the Read outstanding: 130 octets
        const Octets part = payload(some(4) ? 150 : 65);
        const uint64_t at = read_at_;
        read_at_ += part.size();
        const bool last = some(6) || read_at_ == 130;
        if (last) read_at_ = 0;
        return tagged(2, stag(4), some(8) ? random_() % 130 : at, part, last);
      }
      case 2:
        return untagged(1, 1, some(8) ? static_cast<uint32_t>(random_() % 4) : ++request_msn_, 0,
                        read_request(static_cast<uint32_t>(random_()), random_(),
                                     static_cast<uint32_t>(random_() % 100), stag(2), target()));
      case 3: {
        const bool invalidates = some(6);
        const uint8_t opcode = some(6) ? static_cast<uint8_t>(random_() % 16) : invalidates ? 4 : 3;
        const Octets part = payload(some(4) ? 140 : 60);
        const bool last = !some(3);
        Octets out = untagged(opcode, 0, send_msn_, some(10) ? 5 : send_at_, part, last,
                              stag(invalidates ? 5 : 1));
        send_at_ += static_cast<uint32_t>(part.size());
        if (last) ++send_msn_, send_at_ = 0;
        return out;
      }
      case 4:
        if (some(4)) return untagged(7, 2, 1, 0, payload(60));
        return tagged(0, 0, 0, {});
      case 5:
        return untagged(
            0xa, 1, some(8) ? static_cast<uint32_t>(random_() % 4) : ++request_msn_, 0,
            atomic_request(some(8) ? static_cast<uint8_t>(random_()) : random_() % 2 * 2, 9,
                           stag(1), some(4) ? target() : 0x1000 + random_() % 32 * 8, random_(),
                           random_(), random_(), random_()));
      case 6:
        return untagged(0xb, 3, some(8) ? 7 : ++atomic_msn_, 0,
                        atomic_response(stag(4), random_()));
      case 7:
        return untagged(some(2) ? 8 : 9, 0, send_at_ == 0 ? send_msn_++ : send_msn_, 0,
                        Octets(some(6) ? 7 : 8));
      default:
        return some(3) ? payload(80) : tagged(0, stag(5), target() + 64, payload(20));
    }
  }
  void damage(Octets& octets) {
    if (octets.empty()) return;
    switch (random_() % 3) {
      case 0:
        octets[random_() % octets.size()] ^= static_cast<uint8_t>(1 << random_() % 8);
        break;
      case 1:
        octets.resize(random_() % octets.size());
        break;
      default:
        octets[random_() % std::min<size_t>(octets.size(), 20)] = static_cast<uint8_t>(random_());
        break;
    }
  }

  std::mt19937 random_;
  uint32_t send_msn_ = 1, request_msn_ = 0, atomic_msn_ = 0, send_at_ = 0;
  uint64_t read_at_ = 0;
};

TEST(StreamRandom, NothingAStrangerSaysDoesHarm) {
  for (uint32_t seed = 1; seed <= 20000; ++seed) {
    const Octets input = Maker(seed).input();
    SCOPED_TRACE(seed);
    StreamHarness::run(input.data(), input.size());
  }
}

}  // namespace
}  // namespace uiw::test
