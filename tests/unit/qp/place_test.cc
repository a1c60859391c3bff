// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a program that watches the end of a Write in memory gets to see. The end lies in a page that
// may not be written to, until somebody tries to: then everything before it has to be there.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qp/peer_hints.h"
#include "support/direct_placement.h"
#include "support/scene.h"

namespace uiw::test {
namespace {

using qp::RxStatus;

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

struct Watch {
  uint8_t* end_page;
  const uint8_t* begin;
  const uint8_t* expected;
  size_t before;  // octets before the page of the end
  int touched = 0;
  bool all_there = false;
};

Watch* watch;

void on_touch(int, siginfo_t* info, void*) {
  if (watch == nullptr || info->si_addr < watch->end_page ||
      info->si_addr >= watch->end_page + kPage)
    _exit(3);  // anything else that goes wrong must not come here for ever
  ++watch->touched;
  watch->all_there = true;
  for (size_t i = 0; i < watch->before; ++i) {
    if (watch->begin[i] != watch->expected[i]) watch->all_there = false;
  }
  mprotect(watch->end_page, kPage, PROT_READ | PROT_WRITE);
}

class PlaceTest : public testing::Test {
 protected:
  void SetUp() override {
    void* const mapped =
        mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    pages_ = static_cast<uint8_t*>(mapped);
    struct sigaction action {};
    action.sa_sigaction = on_touch;
    action.sa_flags = SA_SIGINFO;
    ASSERT_EQ(sigaction(SIGSEGV, &action, &before_), 0);
  }
  void TearDown() override {
    watch = nullptr;
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(pages_, kPages * kPage);
  }

  // Has `place` write `content` so that its last `tail` octets are in the page that is watched.
  template <class Place>
  void check(const Octets& content, size_t tail, Place&& place) {
    SCOPED_TRACE(testing::Message() << content.size() << " octets, the last " << tail);
    uint8_t* const end_page = pages_ + (kPages - 1) * kPage;
    uint8_t* const to = end_page + tail - content.size();
    std::memset(to, 0, content.size() - tail);
    Watch now{end_page, to, content.data(), content.size() - tail};
    watch = &now;
    ASSERT_EQ(mprotect(end_page, kPage, PROT_READ), 0);
    place(to);
    watch = nullptr;
    EXPECT_EQ(now.touched, 1);
    EXPECT_TRUE(now.all_there);
    EXPECT_EQ(std::memcmp(to, content.data(), content.size()), 0);
  }

  static constexpr size_t kPages = 10;
  uint8_t* pages_ = nullptr;
  struct sigaction before_ {};
};

constexpr uint64_t kStart = 0x10000;

uint32_t stag(Machine& m, uint8_t* memory, size_t size) {
  return *m.memory.add(kPd, memory, kStart, size, kAllAccess, kMaxRegions);
}

// Never 0, so that what is not there yet shows.
Octets filled(size_t size) {
  Octets content(size);
  for (size_t i = 0; i < size; ++i) content[i] = static_cast<uint8_t>(1 + i % 255);
  return content;
}

TEST_F(PlaceTest, TheEndOfAWriteComesLast) {
  for (bool crc : {true, false}) {
    for (size_t size : {16, 24, 40, 100, 200, 500, 1000, 2048, 4096, 6000, 20000}) {
      for (size_t tail : {1, 2, 4, 8}) {
        const Octets content = filled(size);
        check(content, tail, [&](uint8_t* to) {
          Machine m({.crc = crc});
          EXPECT_EQ(m.feed(fpdu(tagged(0, stag(m, to, size), kStart, content), crc)),
                    RxStatus::kOk);
        });
      }
    }
  }
}

TEST_F(PlaceTest, TheEndOfALargeSegmentIsNotReceivedDirectly) {
  constexpr size_t kSize = 20000, kFirst = 1000;
  const Octets content = filled(kSize);
  check(content, 8, [&](uint8_t* to) {
    Machine m({.crc = false});
    const Octets octets = fpdu(tagged(0, stag(m, to, kSize), kStart, content), false);
    ASSERT_EQ(m.feed({octets.data(), kFirst}), RxStatus::kOk);
    size_t placed = 0;
    {
      qp::DirectPlacement placement;
      ASSERT_TRUE(m.rx().plan_placement(placement));
      ASSERT_EQ(placement.count, 1u);
      placed = placement.size;
      std::memcpy(placement.pieces[0].iov_base, octets.data() + kFirst, placed);
      ASSERT_EQ(m.rx().placed_directly(placement, placed), RxStatus::kOk);
    }
    EXPECT_EQ(watch->touched, 0);
    EXPECT_EQ(m.feed({octets.data() + kFirst + placed, octets.size() - kFirst - placed}),
              RxStatus::kOk);
  });
}

TEST_F(PlaceTest, TheEndOfAHintedWriteIsNotReceivedDirectly) {
  constexpr size_t kSize = 30000, kSegment = 15000, kFirst = 40;
  const Octets content = filled(kSize);
  check(content, 8, [&](uint8_t* to) {
    Machine m({.crc = false, .long_fpdus = true});
    const uint32_t key = stag(m, to, kSize);
    const auto middle = content.begin() + kSegment;
    Octets octets = fpdu(tagged(0, kSegment, qp::length_hint_offset({kSize, kSegment}), {}), false);
    octets = concat(std::move(octets),
                    fpdu(tagged(0, key, kStart, {content.begin(), middle}, false), false));
    octets = concat(std::move(octets),
                    fpdu(tagged(0, key, kStart + kSegment, {middle, content.end()}), false));
    ASSERT_EQ(m.feed({octets.data(), kFirst}), RxStatus::kOk);
    size_t placed = 0;
    const size_t end = octets.size() - 20;  // all but the end
    ASSERT_EQ(receive_directly(m.rx(), {octets.data() + kFirst, end - kFirst}, &placed),
              RxStatus::kOk);
    EXPECT_EQ(placed, end - kFirst);
    EXPECT_EQ(watch->touched, 0);
    EXPECT_EQ(m.feed({octets.data() + end, octets.size() - end}), RxStatus::kOk);
  });
}

}  // namespace
}  // namespace uiw::test
