// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/tree_content.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/gid.h"

namespace uiw::vkernel {
namespace {

using test::gid;

const device::Face& kIwarp = device::face(core::Face::kIwarp);
const device::Face& kRoce = device::face(core::Face::kRoce);

std::vector<device::Listed> two_devices() {
  static const device::Device lo = {"uiw_lo", 1, 0x0123456789abcdef, 250};
  static const device::Device eth0 = {"uiw_eth0", 2, 0x0002c90300001234, 251};
  return {{&lo, {"lo", 65536, true, false, {gid("::ffff:127.0.0.1"), gid("::1")}}},
          {&eth0, {"eth0", 1500, true, false, {gid("::ffff:192.0.2.9")}}}};
}

std::map<std::string, TreeEntry> by_path(const std::vector<TreeEntry>& entries) {
  std::map<std::string, TreeEntry> map;
  for (const TreeEntry& entry : entries) {
    EXPECT_TRUE(map.emplace(entry.path, entry).second) << "twice: " << entry.path;
  }
  return map;
}

TEST(TreeContent, FilesLibibverbsAndOthersRead) {
  auto tree = by_path(tree_content(two_devices(), kIwarp));
  const std::pair<const char*, const char*> files[] = {
      {"sys/class/infiniband_verbs/abi_version", "6\n"},
      {"sys/class/infiniband_verbs/uverbs250/ibdev", "uiw_lo\n"},
      {"sys/class/infiniband_verbs/uverbs250/dev", "0:250\n"},
      {"sys/class/infiniband_verbs/uverbs250/abi_version", "1\n"},
      {"sys/class/infiniband_verbs/uverbs251/ibdev", "uiw_eth0\n"},
      {"sys/class/infiniband/uiw_lo/node_type", "4: RNIC\n"},
      {"sys/class/infiniband/uiw_lo/node_guid", "0123:4567:89ab:cdef\n"},
      {"sys/class/infiniband/uiw_lo/sys_image_guid", "0123:4567:89ab:cdef\n"},
      {"sys/class/infiniband/uiw_eth0/node_guid", "0002:c903:0000:1234\n"},
      {"sys/class/infiniband/uiw_lo/hw_rev", "0\n"},
      {"sys/class/infiniband/uiw_lo/ports/1/state", "4: ACTIVE\n"},
      {"sys/class/infiniband/uiw_lo/ports/1/phys_state", "5: LinkUp\n"},
      {"sys/class/infiniband/uiw_lo/ports/1/link_layer", "Ethernet\n"},
      {"sys/class/infiniband/uiw_lo/ports/1/pkeys/0", "0xffff\n"},
      {"sys/class/infiniband/uiw_lo/ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:7f00:0001\n"},
      {"sys/class/infiniband/uiw_lo/ports/1/gids/1", "0000:0000:0000:0000:0000:0000:0000:0001\n"},
      {"sys/class/infiniband/uiw_eth0/ports/1/gid_attrs/ndevs/0", "eth0\n"},
      {"sys/class/infiniband/uiw_eth0/ports/1/gid_attrs/types/0", "IB/RoCE v1\n"},
      {"sys/class/misc/rdma_cm/abi_version", "4\n"},
      // A number would be wrong in a moment: vkernel/port_counters.h.
      {"sys/class/infiniband/uiw_lo/ports/1/counters/port_xmit_data", ""},
      {"sys/class/infiniband/uiw_lo/ports/1/hw_counters/bytes_sent", ""},
  };
  for (auto [path, content] : files) {
    ASSERT_TRUE(tree.contains(path)) << path;
    EXPECT_EQ(tree[path].kind, TreeEntry::Kind::kFile) << path;
    EXPECT_EQ(tree[path].content, content) << path;
  }
  EXPECT_FALSE(tree.contains("sys/class/infiniband/uiw_eth0/ports/1/gids/1"));
  for (const char* path : {"sys/class/infiniband/uiw_eth0/device/net/eth0",
                           "sys/class/infiniband/uiw_eth0/ports/1/counters",
                           "sys/class/infiniband/uiw_eth0/ports/1/hw_counters", "dev/infiniband"}) {
    ASSERT_TRUE(tree.contains(path)) << path;
    EXPECT_EQ(tree[path].kind, TreeEntry::Kind::kDirectory) << path;
  }
  for (const char* path :
       {"dev/infiniband/rdma_cm", "dev/infiniband/uverbs250", "dev/infiniband/uverbs251"}) {
    ASSERT_TRUE(tree.contains(path)) << path;
    EXPECT_EQ(tree[path].kind, TreeEntry::Kind::kLink) << path;
    EXPECT_EQ(tree[path].content, "/dev/null") << path;
  }
}

TEST(TreeContent, OfARoceAdapter) {
  auto devices = two_devices();
  devices[0].state.addresses[1] = in6addr_any;
  auto tree = by_path(tree_content(devices, kRoce));
  const std::string lo = "sys/class/infiniband/uiw_lo", port = lo + "/ports/1";
  EXPECT_EQ(tree[lo + "/node_type"].content, "1: CA\n");
  const char* const types[] = {"IB/RoCE v1\n", "RoCE v2\n"};
  for (int i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    const std::string index = "/" + std::to_string(i);
    EXPECT_EQ(tree[port + "/gids" + index].content,
              i < 2 ? "0000:0000:0000:0000:0000:ffff:7f00:0001\n"
                    : "0000:0000:0000:0000:0000:0000:0000:0000\n");
    EXPECT_EQ(tree[port + "/gid_attrs/types" + index].content, types[i % 2]);
    EXPECT_EQ(tree.contains(port + "/gid_attrs/ndevs" + index), i < 2);
  }
  EXPECT_FALSE(tree.contains(port + "/gids/4"));
}

TEST(TreeContent, AFreeSlotIsAZeroGidOfNoInterface) {
  auto devices = two_devices();
  devices[0].state.addresses[0] = in6addr_any;
  auto tree = by_path(tree_content(devices, kIwarp));
  const std::string port = "sys/class/infiniband/uiw_lo/ports/1";
  EXPECT_EQ(tree[port + "/gids/0"].content, "0000:0000:0000:0000:0000:0000:0000:0000\n");
  EXPECT_TRUE(tree.contains(port + "/gid_attrs/types/0"));
  EXPECT_FALSE(tree.contains(port + "/gid_attrs/ndevs/0"));
  EXPECT_EQ(tree[port + "/gids/1"].content, "0000:0000:0000:0000:0000:0000:0000:0001\n");
}

TEST(TreeContent, APortThatIsDownSaysSo) {
  auto devices = two_devices();
  devices[1].state.active = false;
  auto tree = by_path(tree_content(devices, kIwarp));
  EXPECT_EQ(tree["sys/class/infiniband/uiw_eth0/ports/1/state"].content, "1: DOWN\n");
  EXPECT_EQ(tree["sys/class/infiniband/uiw_eth0/ports/1/phys_state"].content, "3: Disabled\n");
  EXPECT_EQ(tree["sys/class/infiniband/uiw_lo/ports/1/state"].content, "4: ACTIVE\n");
}

TEST(TreeContent, EveryDirectoryComesBeforeWhatItContains) {
  std::set<std::string> directories = {""};
  for (const TreeEntry& entry : tree_content(two_devices(), kIwarp)) {
    const size_t slash = entry.path.rfind('/');
    EXPECT_TRUE(directories.contains(slash == std::string::npos ? "" : entry.path.substr(0, slash)))
        << entry.path;
    if (entry.kind == TreeEntry::Kind::kDirectory) directories.insert(entry.path);
  }
}

TEST(TreeContent, NoLinkLeadsToADirectory) {  // what makes normalise() exact
  for (const TreeEntry& entry : tree_content(two_devices(), kIwarp)) {
    if (entry.kind != TreeEntry::Kind::kLink) continue;
    EXPECT_EQ(entry.content, "/dev/null") << entry.path;
  }
}

TEST(TreeContent, WithoutDevicesTheClassesAreEmpty) {
  for (const TreeEntry& entry : tree_content({}, kIwarp)) {
    EXPECT_FALSE(entry.path.starts_with("sys/class/infiniband/")) << entry.path;
    EXPECT_FALSE(entry.path.starts_with("sys/class/infiniband_verbs/uverbs")) << entry.path;
    EXPECT_FALSE(entry.path.starts_with("dev/infiniband/uverbs")) << entry.path;
  }
}

TEST(TreeHash, NamesTheContent) {
  auto devices = two_devices();
  const std::string hash = tree_hash(tree_content(devices, kIwarp));
  EXPECT_EQ(hash.size(), 16u);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(tree_hash(tree_content(devices, kIwarp)), hash);
  devices[1].state.addresses.push_back(gid("fe80::1"));
  EXPECT_NE(tree_hash(tree_content(devices, kIwarp)), hash);
  devices = two_devices();
  const device::Device other = {"uiw_lo", 1, devices[0].device->node_guid ^ 1, 250};
  devices[0].device = &other;
  EXPECT_NE(tree_hash(tree_content(devices, kIwarp)), hash);
}

// Processes of one user with different faces do not share a tree.
TEST(TreeHash, DiffersByFace) {
  EXPECT_NE(tree_hash(tree_content(two_devices(), kIwarp)),
            tree_hash(tree_content(two_devices(), kRoce)));
  for (const device::Face* face : {&kIwarp, &kRoce})
    EXPECT_EQ(tree_hash(tree_content(two_devices(), *face)),
              tree_hash(tree_content(two_devices(), *face)));
}

TEST(TreeHash, DoesNotConfuseWhereOneTextEnds) {
  using Kind = TreeEntry::Kind;
  const TreeEntry one[] = {{Kind::kFile, "ab", "c"}};
  const TreeEntry other[] = {{Kind::kFile, "a", "bc"}};
  EXPECT_NE(tree_hash(one), tree_hash(other));
}

}  // namespace
}  // namespace uiw::vkernel
