// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Address handles: what they hold, what they are refused for, how many there may be.
#include "verbs/ah.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "device/gid_table.h"
#include "support.h"
#include "support/gid.h"
#include "support/in_child.h"

namespace uiw::verbs {
namespace {

using device::Limits;
using uiw::test::gid;

constexpr char kLo4[] = "::ffff:127.0.0.1", kLo6[] = "::1";

class AddressHandles : public test::OpenDevice {
 protected:
  void SetUp() override {
    OpenDevice::SetUp();
    if (HasFatalFailure()) return;
    context_->face = &device::face(core::Face::kRoce);
  }
  // From an address of uiw_lo.
  ibv_ah_attr attr(const char* own, const char* peer) const {
    ibv_ah_attr made{};
    made.is_global = 1;
    made.port_num = 1;
    made.grh.sgid_index = index_of(own);
    made.grh.traffic_class = 0x28;
    made.grh.hop_limit = 17;
    const in6_addr address = gid(peer);
    std::memcpy(&made.grh.dgid, &address, sizeof address);
    return made;
  }
  uint8_t index_of(const char* own) const {
    const in6_addr wanted = gid(own);
    const device::State state = device::state_of(*context_->device);
    uint32_t i = 0;
    for (; const auto entry = device::gid_at(state, *context_->face, i); ++i)
      if (std::memcmp(&entry->address, &wanted, sizeof wanted) == 0) break;
    EXPECT_LT(i, device::gid_count(state, *context_->face)) << "uiw_lo has no GID " << own;
    return static_cast<uint8_t>(i);
  }
  int create(const ibv_ah_attr& attributes) {
    ah_ = nullptr;
    return uiwarp_ah_create(pd_, &attributes, &ah_);
  }
  // "::ffff:127.0.0.1", "::1"
  std::string destination() const {
    const auto& to = reinterpret_cast<const sockaddr_in6&>(ah_->to.address);
    char text[INET6_ADDRSTRLEN] = "neither";
    if (to.sin6_family == AF_INET6) inet_ntop(AF_INET6, &to.sin6_addr, text, sizeof text);
    return text;
  }

  uiwarp_ah* ah_ = nullptr;
};

TEST_F(AddressHandles, HoldWhereADatagramIsToGo) {
  const struct {
    const char *own, *peer, *destination;
    bool is_group;
  } rows[] = {{kLo4, kLo4, "::ffff:127.0.0.1", false},
              {kLo4, "::ffff:127.1.2.3", "::ffff:127.1.2.3", false},
              {kLo6, kLo6, "::1", false},
              {kLo4, "::ffff:239.1.2.3", "::ffff:239.1.2.3", true},
              {kLo4, "ff0e::ffff:239.1.2.3", "::ffff:239.1.2.3", true},
              {kLo6, "ff02::42", "ff02::42", true}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.peer);
    ibv_ah_attr attributes = attr(row.own, row.peer);
    for (auto type : {datagram::GidType::kV1, datagram::GidType::kV2}) {
      ASSERT_EQ(create(attributes), 0);
      EXPECT_EQ(destination(), row.destination);
      EXPECT_EQ(ah_->to.is_group, row.is_group);
      EXPECT_EQ(ah_->to.gid_type, type);
      EXPECT_EQ(ah_->pd, pd_->id);
      EXPECT_EQ(uiwarp_ah_destroy(ah_), 0);
      ++attributes.grh.sgid_index;
    }
  }
}

TEST_F(AddressHandles, OfALinkLocalGroupLeaveThroughTheDevice) {
  ASSERT_EQ(create(attr(kLo6, "ff02::42")), 0);
  EXPECT_EQ(reinterpret_cast<const sockaddr_in6&>(ah_->to.address).sin6_scope_id,
            context_->device->ifindex);
  EXPECT_EQ(uiwarp_ah_destroy(ah_), 0);
}

TEST_F(AddressHandles, HoldTheirProtectionDomain) {
  ASSERT_EQ(create(attr(kLo4, kLo4)), 0);
  EXPECT_EQ(uiwarp_pd_dealloc(pd_), EBUSY);
  EXPECT_EQ(uiwarp_ah_destroy(ah_), 0);
  EXPECT_EQ(pd_->users.total(), 0u);
}

TEST_F(AddressHandles, AreRefusedForWhatIbvModifyQpRefuses) {
  const ibv_ah_attr good = attr(kLo4, kLo4);
  ibv_ah_attr bad = good;
  for (uint8_t port : {0, 2}) {
    bad.port_num = port;
    EXPECT_EQ(create(bad), EINVAL) << int{port};
  }
  bad = good;
  bad.is_global = 0;
  bad.dlid = 1;
  EXPECT_EQ(create(bad), EINVAL);
  bad = good;
  bad.grh.sgid_index =
      static_cast<uint8_t>(device::gid_count(device::state_of(*context_->device), *context_->face));
  EXPECT_EQ(create(bad), EINVAL);
  for (const char* peer : {"::", "::ffff:0.0.0.0", kLo6, "ff02::1", "::ffff:203.0.113.77"})
    EXPECT_EQ(create(attr(kLo4, peer)), EINVAL) << peer;
  for (const char* peer : {kLo4, "::ffff:239.1.2.3", "2001:db8::77"})
    EXPECT_EQ(create(attr(kLo6, peer)), EINVAL) << peer;
  EXPECT_EQ(pd_->users.total(), 0u);
  EXPECT_EQ(context_->ahs.used(), 0u);
}

TEST_F(AddressHandles, EndAtTheLimit) {
  ibv_device_attr_ex device;
  ASSERT_EQ(uiwarp_query_device(context_, &device, sizeof device), 0);
  const ibv_ah_attr common = attr(kLo4, kLo4);
  std::vector<uiwarp_ah*> all;
  while (create(common) == 0) all.push_back(ah_);
  EXPECT_EQ(all.size(), static_cast<size_t>(device.orig_attr.max_ah));
  EXPECT_EQ(create(common), ENOMEM);
  EXPECT_EQ(uiwarp_ah_destroy(all.back()), 0);
  ASSERT_EQ(create(common), 0);
  all.back() = ah_;
  for (uiwarp_ah* each : all) EXPECT_EQ(uiwarp_ah_destroy(each), 0);
}

TEST_F(AddressHandles, AreNotForTheIwarpFace) {
  const ibv_ah_attr good = attr(kLo4, kLo4);
  context_->face = &device::face(core::Face::kIwarp);
  EXPECT_EQ(create(good), EOPNOTSUPP);
  ibv_device_attr_ex device;
  ASSERT_EQ(uiwarp_query_device(context_, &device, sizeof device), 0);
  EXPECT_EQ(device.orig_attr.max_ah, 0);
}

TEST_F(AddressHandles, OfTheParentAreForgottenByAChild) {
  const ibv_ah_attr good = attr(kLo4, kLo4);
  ASSERT_EQ(create(good), 0);
  uiwarp_ah* const parents = ah_;
  uiw::test::in_child([&] {
    if (create(good) != ENODEV) return 1;
    if (uiwarp_ah_destroy(parents) != 0) return 2;
    return !pd_->users.any() ? 0 : 3;
  });
  EXPECT_EQ(uiwarp_ah_destroy(parents), 0);
}

}  // namespace
}  // namespace uiw::verbs
