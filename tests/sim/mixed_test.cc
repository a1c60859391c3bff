// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Everything at once in both directions, chosen by a seed, every octet looked at.
#include <random>

#include "sim/media.h"

namespace uiw::test {
namespace {

// One side's program: Sends, Writes and Reads of what was written, all checked.
class Talker {
 public:
  Talker(End& me, End& peer, uint32_t seed, size_t operations, bool receives_ahead)
      : me_(me),
        peer_(peer),
        random_(seed),
        operations_(operations),
        receives_ahead_(receives_ahead) {}

  void go_on() {
    post_receives();
    while (posted_ < operations_) {
      if (!prepared_) prepare();
      if (me_.post(*next_) != 0) {
        me_.sent_count();  // the queue is full: what is polled makes room
        return;
      }
      if (next_->wr.send_flags & IBV_SEND_SIGNALED) expected_.push_back(posted_);
      ++posted_;
      prepared_ = false;
    }
  }
  bool done() {
    return posted_ == operations_ && me_.sent_count() == expected_.size() &&
           peer_.received_count() == sends_;
  }

  void check() {
    const std::vector<ibv_wc> completed = me_.sent(), received = peer_.received();
    ASSERT_EQ(completed.size(), expected_.size());
    for (size_t i = 0; i < completed.size(); ++i) {
      ASSERT_EQ(completed[i].wr_id, expected_[i]);
      ASSERT_EQ(completed[i].status, IBV_WC_SUCCESS);
    }
    ASSERT_EQ(received.size(), sends_);
    for (size_t i = 0; i < sends_; ++i) {
      ASSERT_EQ(received[i].wr_id, i);
      ASSERT_EQ(received[i].status, IBV_WC_SUCCESS);
      ASSERT_EQ(received[i].byte_len, sent_octets_[i]->size());
      ASSERT_TRUE(
          std::equal(sent_octets_[i]->begin(), sent_octets_[i]->end(), receives_[i]->data()))
          << i;
    }
    for (const auto& [from, to] : writes_) ASSERT_TRUE(from->content() == to->content());
    for (const auto& [written, sink] : reads_) ASSERT_TRUE(written->content() == sink->content());
  }

 private:
  static constexpr size_t kLargest = 80000;
  // In a row: their places are free when a later one is polled, and the smallest queue has three.
  static constexpr size_t kMostUnsignaled = 2;

  void post_receives() {
    // All at once, or always one too few.
    const size_t wanted = receives_ahead_ ? sends_ + 20 : sends_;
    while (receives_.size() < wanted && receives_.size() < peer_.received_count() + 100) {
      receives_.push_back(std::make_unique<Buffer>(peer_.memory, kLargest));
      const size_t split = random_() % kLargest;
      ASSERT_EQ(peer_.receive(RecvWr({receives_.back()->sge(0, split),
                                      receives_.back()->sge(split, kLargest - split)},
                                     receives_.size() - 1)),
                0);
    }
  }
  size_t some_size() {
    switch (random_() % 4) {
      case 0:
        return random_() % 8;
      case 1:
        return random_() % 600;
      case 2:
        return random_() % 5000;
      default:
        return random_() % kLargest;
    }
  }
  std::vector<ibv_sge> pieces_of(const Buffer& buffer) {
    std::vector<ibv_sge> out;
    size_t at = 0;
    for (int i = 0; i < 4; ++i) {
      const size_t size = random_() % (buffer.size() - at + 1);
      out.push_back(buffer.sge(at, size));
      at += size;
    }
    out.push_back(buffer.sge(at, buffer.size() - at));
    return out;
  }
  void prepare() {
    prepared_ = true;
    const unsigned kind = random_() % 3;
    if (posted_ + 1 == operations_) {
      next_.emplace(IBV_WR_RDMA_READ, std::vector<ibv_sge>{},
                    posted_);  // answered when all before it is there
    } else if (kind == 2 && !writes_.empty()) {
      const auto& [from, to] = writes_[random_() % writes_.size()];
      sinks_.push_back(std::make_unique<Buffer>(me_.memory, from->size()));
      reads_.push_back({from, sinks_.back().get()});
      next_.emplace(IBV_WR_RDMA_READ, pieces_of(*sinks_.back()), posted_);
      next_->to(to->start(), to->stag());
    } else {
      const size_t size = some_size();
      sources_.push_back(std::make_unique<Buffer>(me_.memory, pattern(size, random_())));
      Buffer& from = *sources_.back();
      next_.emplace(kind == 0 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, pieces_of(from), posted_);
      if (kind == 0) {
        ++sends_;
        contents_.push_back(std::make_unique<Octets>(from.content()));
        sent_octets_.push_back(contents_.back().get());
      } else {
        targets_.push_back(std::make_unique<Buffer>(peer_.memory, size));
        writes_.push_back({&from, targets_.back().get()});
        next_->to(targets_.back()->start(), targets_.back()->stag());
      }
    }
    unsigned flags = 0;
    if (random_() % 4 || posted_ + 1 == operations_ || unsignaled_ == kMostUnsignaled) {
      flags |= IBV_SEND_SIGNALED;
      unsignaled_ = 0;
    } else {
      ++unsignaled_;
    }
    if (random_() % 8 == 0) flags |= IBV_SEND_FENCE;
    if (random_() % 8 == 0) flags |= IBV_SEND_SOLICITED;
    next_->flags(flags);
  }

  End& me_;
  End& peer_;
  std::mt19937 random_;
  const size_t operations_;
  const bool receives_ahead_;
  size_t posted_ = 0, sends_ = 0, unsignaled_ = 0;
  bool prepared_ = false;
  std::optional<SendWr> next_;
  std::vector<uint64_t> expected_;
  std::vector<std::unique_ptr<Buffer>> sources_, targets_, sinks_, receives_;
  std::vector<std::unique_ptr<Octets>> contents_;
  std::vector<const Octets*> sent_octets_;
  std::vector<std::pair<Buffer*, Buffer*>> writes_, reads_;
};

class Mixed : public Behaviour {
 protected:
  void talk(uint32_t seed, size_t operations, bool receives_ahead) {
    Talker one(*a, *b, seed, operations, receives_ahead),
        other(*b, *a, seed + 1000, operations, receives_ahead);
    ASSERT_REACHED((one.go_on(), other.go_on(), one.done() && other.done()));
    one.check();
    other.check();
    EXPECT_TRUE(a->async_events().empty() && b->async_events().empty());
    a->disconnect();
    ASSERT_TRUE(both_ended());
    EXPECT_EQ(a->end_error(), 0);
    EXPECT_EQ(b->end_error(), 0);
  }
};

TEST_P(Mixed, EverythingAtOnce) {
  connect({.ird = 4, .ord = 3}, {.ird = 3, .ord = 4});
  talk(GetParam().seed, 150, true);
}

TEST_P(Mixed, WithReceivesThatComeLate) {
  connect();
  talk(GetParam().seed + 77, 60, false);
}

TEST_P(Mixed, WithASmallQueue) {
  connect({.depth = 3}, {.depth = 17});
  talk(GetParam().seed + 99, 80, true);
}

// Some 30 Sends and some 30 Reads each way: the wrap comes in the middle of them.
TEST_P(Mixed, AcrossTheWrapOfEveryMsn) {
  if (is_tcp()) return;  // a queue pair counts from 1
  connect({.first_msn = ~0u - 15}, {.first_msn = ~0u - 15});
  talk(GetParam().seed + 55, 100, true);
}

}  // namespace

UIWARP_EVERYWHERE(Mixed, 25);

}  // namespace uiw::test
