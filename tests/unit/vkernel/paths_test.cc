// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/paths.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <climits>
#include <filesystem>
#include <string>

#include "device/device.h"
#include "temporary_directory.h"
#include "uiwarp/uiwarp-abi.h"
#include "vkernel/tree.h"

namespace uiw::vkernel {
namespace {

std::string normal(std::string_view path) {
  char out[PATH_MAX];
  const size_t length = normalise(path, out, sizeof out);
  EXPECT_EQ(length == 0 ? 0 : std::string(out).size(), length);
  return std::string(out, length);
}

TEST(Normalise, ResolvesDotsAndSlashesByText) {
  const std::pair<const char*, const char*> cases[] = {
      {"/", "/"},
      {"//", "/"},
      {"/..", "/"},
      {"/../../..", "/"},
      {"/.", "/"},
      {"/a", "/a"},
      {"/a/", "/a/"},
      {"/a//", "/a/"},
      {"//a///b", "/a/b"},
      {"/a/./b", "/a/b"},
      {"/a/b/.", "/a/b/"},
      {"/a/../b", "/b"},
      {"/a/b/..", "/a/"},
      {"/a/../../b", "/b"},
      {"/a/..b", "/a/..b"},
      {"/a/...", "/a/..."},
      {"/.a", "/.a"},
      {"/sys/class/infiniband/../../../etc/passwd", "/etc/passwd"},
      {"", ""},
      {"a/b", ""},
      {"../sys", ""},
  };
  for (auto [path, wanted] : cases) EXPECT_EQ(normal(path), wanted) << path;
}

TEST(Normalise, RefusesWhatDoesNotFit) {
  char out[8];
  EXPECT_EQ(normalise("/123456", out, sizeof out), 0u);
  EXPECT_EQ(normalise("/12345", out, sizeof out), 6u);
  EXPECT_EQ(normalise("/12345/", out, sizeof out), 7u);
  EXPECT_STREQ(out, "/12345/");
  EXPECT_EQ(normalise("/", out, 1), 0u);
  EXPECT_EQ(normalise(std::string(PATH_MAX + 10, '/'), out, sizeof out), 1u);
}

TEST(IsRdmaPath, OnlyWholeComponents) {
  for (const char* path :
       {"/sys/class/infiniband", "/sys/class/infiniband/", "/sys/class/infiniband/x/y",
        "/sys/class/infiniband_verbs", "/sys/class/infiniband_verbs/uverbs0",
        "/sys/class/misc/rdma_cm", "/sys/class/misc/rdma_cm/abi_version", "/dev/infiniband",
        "/dev/infiniband/rdma_cm"}) {
    EXPECT_TRUE(is_rdma_path(path)) << path;
  }
  for (const char* path :
       {"/", "/sys/class", "/sys/class/infiniban", "/sys/class/infiniband_mad",
        "/sys/class/infiniband_verbsX", "/sys/class/infinibandx", "/sys/class/misc/rdma_cm2",
        "/sys/class/misc", "/dev/infinibandx", "/dev/infini", "/dev/null", ""}) {
    EXPECT_FALSE(is_rdma_path(path)) << path;
  }
}

TEST(DeviceNode, OnlyOurs) {
  ASSERT_FALSE(device::devices().empty());
  const uint32_t ours = device::devices()[0].device->uverbs_minor;
  const std::string name = "/dev/infiniband/uverbs" + std::to_string(ours);
  uint32_t minor = 0;
  EXPECT_EQ(device_node("/dev/infiniband/rdma_cm", minor), DeviceNode::kRdmaCm);
  EXPECT_EQ(device_node(name, minor), DeviceNode::kUverbs);
  EXPECT_EQ(minor, ours);
  for (const std::string& path :
       {std::string("/dev/infiniband"), std::string("/dev/infiniband/"),
        std::string("/dev/infiniband/uverbs"), std::string("/dev/infiniband/uverbs0"),
        std::string("/dev/infiniband/rdma_cm/"), std::string("/dev/infiniband/rdma_cmx"),
        std::string("/dev/infiniband/umad0"), name + "/", name + "0", name + "x",
        "/dev/infiniband/uverbs0" + std::to_string(ours), std::string("/sys/class/misc/rdma_cm")}) {
    EXPECT_EQ(device_node(path, minor), DeviceNode::kNone) << path;
  }
}

std::string redirected(const char* path) {
  char out[PATH_MAX] = "";
  EXPECT_EQ(uiwarp_vk_redirect(path, out, sizeof out), 1) << path;
  return out;
}

TEST(Redirect, LeadsIntoTheTree) {
  const std::string root(tree_root());
  EXPECT_EQ(redirected("/sys/class/infiniband"), root + "/sys/class/infiniband");
  EXPECT_EQ(redirected("/sys/class/infiniband/"), root + "/sys/class/infiniband/");
  EXPECT_EQ(redirected("/sys/class/infiniband_verbs/abi_version"),
            root + "/sys/class/infiniband_verbs/abi_version");
  EXPECT_EQ(redirected("/sys/class/misc/rdma_cm/abi_version"),
            root + "/sys/class/misc/rdma_cm/abi_version");
  EXPECT_EQ(redirected("/dev/infiniband/rdma_cm"), root + "/dev/infiniband/rdma_cm");
  EXPECT_EQ(redirected("/sys/class/infiniband/no/such/thing"),
            root + "/sys/class/infiniband/no/such/thing");
}

TEST(Redirect, NeverOutOfTheTree) {
  const std::string root(tree_root());
  EXPECT_EQ(redirected("/sys/class/infiniband/../../../etc/passwd"), "/etc/passwd");
  EXPECT_EQ(redirected("/sys/class/infiniband/x/../../../../../../../etc/passwd"), "/etc/passwd");
  EXPECT_EQ(redirected("/sys/class/infiniband/../net/lo"), "/sys/class/net/lo");
  EXPECT_EQ(redirected("/dev/infiniband/../null"), "/dev/null");
  EXPECT_EQ(redirected("/sys/class/infiniband/..//infiniband//uiw_lo/./ports"),
            root + "/sys/class/infiniband/uiw_lo/ports");
  EXPECT_EQ(redirected("/sys/class/infiniband/../infiniband_mad"), "/sys/class/infiniband_mad");
}

TEST(Redirect, OtherClassesKeepTheirPath) {
  char out[PATH_MAX];
  EXPECT_EQ(uiwarp_vk_redirect("/sys/class/infiniband_mad/abi_version", out, sizeof out), 0);
  EXPECT_EQ(uiwarp_vk_redirect("/home/link/../infiniband/sys/", out, sizeof out), 0);
}

TEST(Redirect, WhatDoesNotFitIsLeftToTheKernel) {
  const std::string long_name = "/sys/class/infiniband/" + std::string(PATH_MAX, 'x');
  char out[PATH_MAX], small[16];
  EXPECT_EQ(uiwarp_vk_redirect(long_name.c_str(), out, sizeof out), 0);
  EXPECT_EQ(uiwarp_vk_redirect("/sys/class/infiniband", small, sizeof small), 0);
}

TEST(ListsDevices, TheDirectoriesThatDoAndNothingBelow) {
  for (const char* path : {"/sys/class/infiniband", "/sys/class/infiniband/",
                           "/sys/class/infiniband_verbs", "/dev/infiniband"}) {
    EXPECT_TRUE(lists_devices(path)) << path;
  }
  for (const char* path : {"/", "", "/sys/class/misc/rdma_cm", "/sys/class/infiniband/uiw_lo",
                           "/dev/infiniband/rdma_cm"}) {
    EXPECT_FALSE(lists_devices(path)) << path;
  }
}

TEST(Redirect, WhatLeadsIntoTheTreeIsKnownToDoSo) {
  const std::string root(tree_root());
  EXPECT_EQ(uiwarp_vk_root_length((root + "/sys/class/infiniband").c_str()), root.size());
  for (const std::string& path : {std::string("/sys/class/infiniband"), root, root + "x/sys"}) {
    EXPECT_EQ(uiwarp_vk_root_length(path.c_str()), 0u) << path;
  }
}

// Those of other lists of devices lie beside it and are not looked for one by one.
TEST(Redirect, SoIsWhatLeadsIntoAFormerTree) {
  const std::string root(tree_root()), parent = root.substr(0, root.rfind('/'));
  const std::string former = parent + "/0123456789abcdef";
  EXPECT_EQ(uiwarp_vk_root_length((former + "/sys/class").c_str()), former.size());
  for (const char* name :
       {"/0123456789abcdeg/sys", "/0123456789abcde/sys", "/0123456789abcdef0/sys",
        "/new-0123456789abcdef/sys", "/0123456789abcdef", "x/0123456789abcdef/sys"}) {
    EXPECT_EQ(uiwarp_vk_root_length((parent + name).c_str()), 0u) << name;
  }
}

TEST(Redirect, EveryDeviceHasItsNodes) {
  for (const auto& [device, state] : device::devices()) {
    const std::string node = "/dev/infiniband/uverbs" + std::to_string(device->uverbs_minor);
    struct stat status;
    ASSERT_EQ(stat(redirected(node.c_str()).c_str(), &status), 0) << node;
    EXPECT_TRUE(S_ISCHR(status.st_mode)) << node;
    const std::string directory = "/sys/class/infiniband/" + device->name;
    ASSERT_EQ(stat(redirected(directory.c_str()).c_str(), &status), 0) << directory;
    EXPECT_TRUE(S_ISDIR(status.st_mode)) << directory;
  }
}

TEST(StaysAway, WhereTheHostHasDevicesUnlessToldNotTo) {
  TemporaryDirectory real;
  const char* path = real.path().c_str();
  EXPECT_FALSE(stays_away(core::HostMode::kAuto, path));  // the class is there, but empty
  EXPECT_FALSE(stays_away(core::HostMode::kAuto, (real / "missing").c_str()));
  std::filesystem::create_directory(real / "mlx5_0");
  EXPECT_TRUE(stays_away(core::HostMode::kAuto, path));
  EXPECT_FALSE(stays_away(core::HostMode::kExclusive, path));
}

}  // namespace
}  // namespace uiw::vkernel
