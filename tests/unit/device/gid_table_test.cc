// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which GID has which index, by face.
#include "device/gid_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "support/gid.h"

namespace uiw::device {
namespace {

using test::gid;

// Index by index: the address and its type.
struct Row {
  std::string address;
  std::string type;
  bool operator==(const Row&) const = default;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.address << " " << row.type;
}

std::vector<Row> rows(const State& state, core::Face which) {
  const Face& shown = face(which);
  std::vector<Row> found;
  for (uint32_t i = 0; i < gid_count(state, shown); ++i) {
    const auto entry = gid_at(state, shown, i);
    if (!entry) return {};
    char text[INET6_ADDRSTRLEN];
    inet_ntop(AF_INET6, &entry->address, text, sizeof text);
    EXPECT_EQ(entry->is_free(), std::strcmp(text, "::") == 0);
    found.push_back({text, entry->type});
  }
  EXPECT_FALSE(gid_at(state, shown, gid_count(state, shown)));
  return found;
}

const State kState = {
    "eth0", 1500, true, false, {gid("::ffff:192.0.2.9"), in6addr_any, gid("2001:db8::3")}};

TEST(GidTable, OfAnRnicHasOneForEachAddress) {
  EXPECT_EQ(rows(kState, core::Face::kIwarp), (std::vector<Row>{{"::ffff:192.0.2.9", "IB/RoCE v1"},
                                                                {"::", "IB/RoCE v1"},
                                                                {"2001:db8::3", "IB/RoCE v1"}}));
}

// Programs choose index 1 or 3 without looking, for RoCE v2.
TEST(GidTable, OfARoceAdapterHasOneOfEachTypeForEachAddress) {
  EXPECT_EQ(rows(kState, core::Face::kRoce), (std::vector<Row>{{"::ffff:192.0.2.9", "IB/RoCE v1"},
                                                               {"::ffff:192.0.2.9", "RoCE v2"},
                                                               {"::", "IB/RoCE v1"},
                                                               {"::", "RoCE v2"},
                                                               {"2001:db8::3", "IB/RoCE v1"},
                                                               {"2001:db8::3", "RoCE v2"}}));
}

TEST(GidTable, WithoutAddressesIsEmpty) {
  EXPECT_EQ(gid_count(State{}, face(core::Face::kRoce)), 0u);
  EXPECT_FALSE(gid_at(State{}, face(core::Face::kRoce), 0));
}

TEST(GidTable, AnAddressHasTheIndexOfItsLastType) {
  const Face &rnic = face(core::Face::kIwarp), &roce = face(core::Face::kRoce);
  EXPECT_EQ(index_of_gid(kState, rnic, gid("2001:db8::3")), 2u);
  EXPECT_EQ(index_of_gid(kState, roce, gid("2001:db8::3")), 5u);
  EXPECT_EQ(index_of_gid(kState, roce, gid("::ffff:192.0.2.9")), 1u);
  EXPECT_FALSE(index_of_gid(kState, roce, gid("2001:db8::4")));
}

}  // namespace
}  // namespace uiw::device
