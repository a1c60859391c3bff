// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>

#include "support/in_child.h"
#include "temporary_directory.h"

namespace uiw::vkernel {
namespace {

namespace fs = std::filesystem;

// A directory of ours that somebody exchanges for a link to another while we work in it.
class Exchanged : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"ours", "victim"}) {
      fs::create_directories(base_ / folder + "/old/sub");
      std::ofstream(base_ / folder + "/old/sub/file") << "x";
    }
    core::Result<Folder> base = Folder::open_base(base_.path());
    ASSERT_TRUE(base.has_value());
    core::Result<Folder> ours = base->open("ours");
    ASSERT_TRUE(ours.has_value());
    ours_.emplace(std::move(*ours));
    fs::rename(base_ / "ours", base_ / "away");
    fs::create_directory_symlink("victim", base_ / "ours");
  }
  void TearDown() override {
    EXPECT_TRUE(fs::exists(base_ / "victim/old/sub/file"));
    EXPECT_EQ(std::distance(fs::directory_iterator(base_ / "victim"), fs::directory_iterator()), 1);
  }

  TemporaryDirectory base_;
  std::optional<Folder> ours_;
};

TEST_F(Exchanged, WhatIsMadeIsMadeInTheDirectoryThatWasOpened) {
  EXPECT_EQ(ours_->make_directory("new"), 0);
  EXPECT_EQ(ours_->make_file("new/file", "text", 0444), 0);
  EXPECT_EQ(ours_->make_link("new/link", "target"), 0);
  EXPECT_EQ(ours_->set_times("new/file", 4711), 0);
  EXPECT_EQ(ours_->rename("new", "newer"), 0);
  struct stat status;
  ASSERT_EQ(lstat((base_ / "away/newer/file").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode, S_IFREG | 0444u);
  EXPECT_EQ(status.st_mtime, 4711);
  EXPECT_EQ(fs::read_symlink(base_ / "away/newer/link"), "target");
}

TEST_F(Exchanged, WhatIsRemovedIsRemovedFromTheDirectoryThatWasOpened) {
  ours_->remove("old");
  EXPECT_FALSE(fs::exists(base_ / "away/old"));
  EXPECT_TRUE(ours_->names().empty());
}

TEST(Folder, LinksAreNotFollowed) {
  TemporaryDirectory base;
  fs::create_directories(base / "victim/sub");
  fs::create_directory(base / "ours");
  core::Result<Folder> ours = Folder::open_base(base / "ours");
  ASSERT_TRUE(ours.has_value());
  fs::create_directory_symlink("../victim", base / "ours/link");
  EXPECT_EQ(ours->open("link").error(), ENOTDIR);
  EXPECT_EQ(ours->make("link").error(), EEXIST);
  EXPECT_EQ(ours->make_directory("link"), -EEXIST);
  EXPECT_EQ(ours->make_file("link", "text", 0444), -EEXIST);
  struct stat status;
  ASSERT_EQ(ours->status("link", status), 0);
  EXPECT_TRUE(S_ISLNK(status.st_mode));
  // With a link deep inside, too, only the link goes.
  fs::create_directories(base / "ours/a/b");
  fs::create_directory_symlink("../../../victim", base / "ours/a/b/link");
  ours->remove("a");
  ours->remove("link");
  EXPECT_TRUE(ours->names().empty());
  EXPECT_TRUE(fs::exists(base / "victim/sub"));
}

TEST(Folder, DescriptorsAreGivenBack) {
  TemporaryDirectory base;
  const auto descriptors = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = descriptors();
  {
    core::Result<Folder> folder = Folder::open_base(base.path());
    ASSERT_TRUE(folder.has_value());
    for (int i = 0; i < 3; ++i) {
      fs::create_directories(base / "a/b/c");
      folder->remove("a");
      EXPECT_EQ(folder->open("a").error(), ENOENT);
      folder->names();
    }
    EXPECT_TRUE(folder->make("a").has_value());
    *folder = std::move(*folder->open("a"));
  }
  EXPECT_EQ(Folder::open_base(base / "missing").error(), ENOENT);
  chmod((base / "a").c_str(), 0777);
  EXPECT_EQ(Folder::open_base(base / "a").error(), EPERM);
  EXPECT_EQ(descriptors(), before);
}

TEST(Folder, ALimitOfFilesDoesNotEndTheProgram) {
  TemporaryDirectory base;
  core::Result<Folder> folder = Folder::open_base(base.path());
  ASSERT_TRUE(folder.has_value());
  uiw::test::in_child([&] {
    const rlimit few{4, 4};
    setrlimit(RLIMIT_FSIZE, &few);
    if (folder->make_file("fits", "text", 0444) != 0) return 1;
    if (folder->make_file("long", "texts", 0444) != -EFBIG) return 2;
    const rlimit none{0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
    if (folder->make_file("none", "text", 0444) != -EFBIG) return 3;
    return folder->make_file("empty", "", 0444) == 0 ? 0 : 4;
  });
  EXPECT_FALSE(fs::exists(base / "long"));
}

TEST(FolderBase, IsReachedByLinksOfOursOrRoots) {
  TemporaryDirectory base;
  fs::create_directories(base / "real/deep");
  fs::create_directory_symlink("real", base / "relative");
  fs::create_directory_symlink(fs::absolute(base / "real"), base / "absolute");
  fs::create_directory_symlink("../relative/./deep", base / "real/back");
  fs::create_directory_symlink("loop", base / "loop");
  const std::string real = Folder::open_base(base / "real")->path();
  for (const char* way : {"relative", "absolute", "real/../relative", "real//"})
    EXPECT_EQ(Folder::open_base(base / way)->path(), real) << way;
  EXPECT_EQ(Folder::open_base(base / "real/back")->path(), real + "/deep");
  EXPECT_EQ(Folder::open_base(base / "loop").error(), ELOOP);
}

// Whoever owns a link, or the directory that it is in, chooses where it leads.
TEST(FolderBase, IsNotReachedByALinkThatAnotherUserMayExchange) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to make another user's link";
  TemporaryDirectory base;
  for (const char* name : {"ours", "theirs", "sticky"}) fs::create_directory(base / name);
  for (const char* name : {"theirs", "sticky"})
    fs::create_directory_symlink("../ours", fs::path(base / name) / "link");
  chmod((base / "sticky").c_str(), 01777);
  EXPECT_TRUE(Folder::open_base(base / "sticky/link").has_value());
  ASSERT_EQ(lchown((base / "sticky/link").c_str(), 1, 1), 0);
  EXPECT_EQ(Folder::open_base(base / "sticky/link").error(), EPERM);
  ASSERT_EQ(chown((base / "theirs").c_str(), 1, 1), 0);
  EXPECT_EQ(Folder::open_base(base / "theirs/link").error(), EPERM);
}

}  // namespace
}  // namespace uiw::vkernel
