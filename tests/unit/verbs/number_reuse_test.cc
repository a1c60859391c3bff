// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A queue pair number becomes another's only when nothing of the destroyed queue pair is left that
// goes by the number: the memory windows of type 2 that are bound to it.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/qp_number.h"
#include "mem/table.h"
#include "support.h"
#include "verbs/context.h"
#include "verbs/pd.h"
#include "verbs/registry.h"

namespace uiw::verbs {
namespace {

constexpr int kRounds = 200;

class NumberReuse : public test::OpenDevice {
 protected:
  // Takes numbers up to the first one of another port, which it gives back.
  void fill_port() {
    uint16_t port = 0;
    for (;;) {
      auto taken = std::make_unique<Registration>();
      ASSERT_TRUE(reserve_number(*taken));
      if (port == 0) port = core::port_of(taken->qp_num);
      if (core::port_of(taken->qp_num) != port) return unregister(*taken);
      taken_.push_back(std::move(taken));
    }
  }
  void TearDown() override {
    for (auto& taken : taken_) unregister(*taken);
    OpenDevice::TearDown();
  }

  std::vector<std::unique_ptr<Registration>> taken_;
};

TEST_F(NumberReuse, WaitsForTheWindowsOfTheOneThatIsDestroyed) {
  mem::Table& table = context_->memory;
  uint8_t octets[8] = {};
  const auto start = reinterpret_cast<uint64_t>(octets);
  const uint32_t region =
      *table.add(pd_->id, octets, start, sizeof octets, mem::kLocalWrite | mem::kMwBind, 1000);
  const uint32_t window = *table.add_window(pd_->id, mem::WindowType::kType2, 1000);
  uiwarp_cq* const cq = make_cq();

  // Of the port of the queue pair no number is free but its own when it is destroyed; of a port
  // that is looked at later one is.
  fill_port();
  uint32_t number = 0;
  uiwarp_qp_init init = qp_init(cq);
  uiwarp_qp* qp = nullptr;
  ASSERT_EQ(uiwarp_qp_create(pd_, &init, &qp, &number), 0);
  Registration* const later = taken_.front().get();
  ASSERT_NE(core::port_of(later->qp_num), core::port_of(number));
  unregister(*later);
  fill_port();

  std::atomic<int> begun{0}, destroyed{0}, done{0};
  std::thread next([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (begun < round) std::this_thread::yield();
      Registration taken;
      while (reserve_number(taken) && taken.qp_num != number) unregister(taken);
      const mem::Stream stream{pd_->id, taken.qp_num};
      const uint32_t key = (window & ~mem::kKeyMask) | (round & mem::kKeyMask);
      EXPECT_EQ(table.bind(stream, {window, key, region, mem::kRemoteWrite, start, 8}), 0);
      while (destroyed < round) std::this_thread::yield();
      EXPECT_TRUE(table.find(key)) << "round " << round;
      table.end_stream(taken.qp_num);
      unregister(taken);
      done = round;
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    begun = round;
    destroy(qp);
    destroyed = round;
    while (done < round) std::this_thread::yield();
    ASSERT_EQ(uiwarp_qp_create(pd_, &init, &qp, &number), 0);
  }
  next.join();
  destroy(qp);
  destroy(cq);
  EXPECT_EQ(table.remove_window(window), 0);
  EXPECT_EQ(table.remove(region), 0);
}

}  // namespace
}  // namespace uiw::verbs
