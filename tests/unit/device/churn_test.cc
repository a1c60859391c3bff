// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Interfaces that come and go for a long time, as those of containers do, while some stay.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "core/gid.h"
#include "device/table.h"

namespace uiw::device {
namespace {

class DeviceChurn : public testing::TestWithParam<uint32_t> {
 protected:
  size_t below(size_t end) { return random_() % end; }

  // Names, addresses and MACs come again; the kernel's numbers do not.
  Interface make() {
    Interface made;
    made.ifindex = ++last_index_;
    made.name = "veth" + std::to_string(below(40));
    for (const Interface& other : interfaces_)
      if (other.name == made.name) made.name += "-" + std::to_string(made.ifindex);
    made.up = made.carrier = true;
    made.mtu = 1500;
    made.has_mac = below(4) > 0;
    made.mac[5] = static_cast<uint8_t>(below(40));
    in_addr address{};
    address.s_addr = htonl(0x0a000000 + static_cast<uint32_t>(below(1000)));
    made.addresses = {core::mapped(address)};
    return made;
  }

  std::mt19937 random_{GetParam()};
  Table table_;
  unsigned last_index_ = 0;
  std::vector<Interface> interfaces_;
};

TEST_P(DeviceChurn, IsAsTheModelSays) {
  constexpr size_t kStaying = 3, kMost = 20, kSteps = 30'000;
  std::map<unsigned, const Device*> model;
  std::set<uint64_t> guids;
  std::set<uint32_t> minors;
  for (size_t i = 0; i < kStaying; ++i) interfaces_.push_back(make());
  for (size_t step = 0; step < kSteps && !HasFailure(); ++step) {
    std::set<const Device*> going;
    for (size_t i = below(4); i > 0; --i) {
      const size_t count = interfaces_.size();
      if (count == kStaying || (count < kMost && below(2) == 0)) {
        interfaces_.push_back(make());
        continue;
      }
      std::swap(interfaces_[kStaying + below(count - kStaying)], interfaces_.back());
      if (const auto found = model.find(interfaces_.back().ifindex); found != model.end()) {
        going.insert(found->second);
        model.erase(found);
      }
      interfaces_.pop_back();
    }
    for (const Table::Noticed& noticed : table_.update(interfaces_)) {
      if (noticed.change == Change::kGone) ASSERT_EQ(going.erase(noticed.device), 1u);
    }
    ASSERT_TRUE(going.empty());
    // A look-up goes through as many as there are.
    ASSERT_EQ(table_.present().size(), interfaces_.size());
    std::set<std::string> names;
    for (const Table::Entry* entry : table_.present()) {
      const Device& device = entry->device;
      ASSERT_FALSE(entry->state.gone);
      ASSERT_TRUE(names.insert(device.name).second) << "two are " << device.name;
      if (const auto [known, is_new] = model.emplace(device.ifindex, &device); !is_new) {
        ASSERT_EQ(known->second, &device);
        continue;
      }
      ASSERT_TRUE(guids.insert(device.node_guid).second) << "one before had " << device.node_guid;
      ASSERT_TRUE(minors.insert(device.uverbs_minor).second);
    }
    ASSERT_EQ(model.size(), interfaces_.size());
  }
  // What has gone is known to be, to whoever still has it open.
  size_t gone = 0;
  for (const auto& entry : table_.entries()) gone += entry->state.gone;
  EXPECT_EQ(gone, guids.size() - interfaces_.size());
}
INSTANTIATE_TEST_SUITE_P(BySeed, DeviceChurn, testing::Values(1, 2));

}  // namespace
}  // namespace uiw::device
