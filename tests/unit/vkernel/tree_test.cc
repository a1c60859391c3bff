// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "temporary_directory.h"
#include "vkernel/folder.h"

namespace uiw::vkernel {
namespace {

namespace fs = std::filesystem;

std::vector<TreeEntry> content(const char* name = "uiw_test") {
  const device::Device device = {name, 7, 42, 250};
  const device::Listed listed = {&device, {"test0", 1500, true, false, {in6addr_loopback}}};
  return tree_content(std::span(&listed, 1), device::face());
}

std::string text(const std::string& path) {
  std::stringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

struct stat status_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(lstat(path.c_str(), &status), 0) << path;
  return status;
}

std::string user_directory_of(const std::string& base) {
  return base + "/uiwarp-" + std::to_string(geteuid());
}

std::string user_directory(const TemporaryDirectory& base) {
  return user_directory_of(base.path());
}

std::string placed(const std::string& base, const std::vector<TreeEntry>& entries) {
  auto root = place_tree(base, entries);
  EXPECT_EQ(root.error(), 0);
  return root ? *root : std::string();
}

void expect_complete(const std::string& root, const std::vector<TreeEntry>& entries) {
  size_t seen = 0;
  for (const auto& found : fs::recursive_directory_iterator(root)) {
    (void)found;
    ++seen;
  }
  EXPECT_EQ(seen, entries.size());
  for (const TreeEntry& entry : entries) {
    const std::string path = root + "/" + entry.path;
    const struct stat status = status_of(path);
    EXPECT_EQ(status.st_mtime, kTreeTime) << path;
    switch (entry.kind) {
      case TreeEntry::Kind::kDirectory:
        EXPECT_EQ(status.st_mode, S_IFDIR | 0755u) << path;
        break;
      case TreeEntry::Kind::kFile:
        EXPECT_EQ(status.st_mode, S_IFREG | 0444u) << path;
        EXPECT_EQ(text(path), entry.content) << path;
        break;
      case TreeEntry::Kind::kLink:
        EXPECT_EQ(fs::read_symlink(path), entry.content) << path;
        break;
    }
  }
}

TEST(Tree, IsWhatTheContentSaysWhateverTheUmask) {
  TemporaryDirectory base;
  for (mode_t mask : {0u, 022u, 077u, 0777u}) {
    const std::vector<TreeEntry> entries = content(("uiw_" + std::to_string(mask)).c_str());
    const mode_t before = umask(mask);
    const std::string root = placed(base.path(), entries);
    umask(before);
    expect_complete(root, entries);
  }
  EXPECT_EQ(status_of(user_directory(base)).st_mode, S_IFDIR | 0755u);
}

TEST(Tree, TheSecondTimeItIsTheSameAndUntouched) {
  TemporaryDirectory base;
  const std::string root = placed(base.path(), content());
  const std::string device = root + "/sys/class/infiniband/uiw_test";
  const struct stat before = status_of(device);
  EXPECT_EQ(placed(base.path(), content()), root);
  const struct stat after = status_of(device);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(before.st_ctim.tv_sec, after.st_ctim.tv_sec);
  EXPECT_EQ(before.st_ctim.tv_nsec, after.st_ctim.tv_nsec);
  // Nothing but the tree is left behind.
  EXPECT_EQ(std::distance(fs::directory_iterator(user_directory(base)), fs::directory_iterator()),
            1);
}

TEST(Tree, OtherDevicesGetAnotherTree) {
  TemporaryDirectory base;
  const std::string one = placed(base.path(), content("uiw_one"));
  const std::string other = placed(base.path(), content("uiw_other"));
  EXPECT_NE(one, other);
  expect_complete(one, content("uiw_one"));
  expect_complete(other, content("uiw_other"));
}

TEST(Tree, RootHasNoSymbolicLinks) {
  TemporaryDirectory base;
  fs::create_directory(base / "real");
  fs::create_symlink("real", base / "link");
  const std::string root = placed(base / "link", content());
  EXPECT_EQ(root, fs::canonical(root));
  EXPECT_EQ(root, placed(base / "real", content()));
}

TEST(Tree, DamageIsRepaired) {
  TemporaryDirectory base;
  const std::string root = placed(base.path(), content());
  const std::string file = root + "/sys/class/infiniband/uiw_test/node_guid";
  fs::remove(file);
  EXPECT_EQ(placed(base.path(), content()), root);
  expect_complete(root, content());

  chmod(file.c_str(), 0644);
  std::ofstream(file, std::ios::app) << "more";
  EXPECT_EQ(placed(base.path(), content()), root);
  expect_complete(root, content());

  fs::remove_all(root);
  std::ofstream(root.c_str()) << "a file where the tree should be";
  EXPECT_EQ(placed(base.path(), content()), root);
  expect_complete(root, content());
}

TEST(Tree, ALinkInPlaceOfTheUserDirectoryIsNotFollowed) {
  TemporaryDirectory base;
  fs::create_directory(base / "elsewhere");
  fs::create_directory_symlink("elsewhere", user_directory(base));
  const std::string root = placed(base.path(), content());
  EXPECT_TRUE(fs::is_empty(base / "elsewhere"));
  EXPECT_TRUE(root.starts_with(fs::canonical(base.path()).string() + "/uiwarp-")) << root;
  expect_complete(root, content());
}

std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// What somebody else has put where the user's directory would be.
void expect_one_directory_instead(const TemporaryDirectory& base, size_t before) {
  const std::string root = placed(base.path(), content());
  expect_complete(root, content());
  // What one program made the next ones find; none leaves anything else.
  EXPECT_EQ(placed(base.path(), content()), root);
  EXPECT_EQ(entries_of(base.path()).size(), before + 1);
  // Nobody could foresee its name.
  fs::remove_all(fs::path(root).parent_path());
  EXPECT_NE(placed(base.path(), content()), root);
}

TEST(Tree, AUserDirectoryThatOthersCanWriteToIsNotUsed) {
  TemporaryDirectory base;
  fs::create_directory(user_directory(base));
  chmod(user_directory(base).c_str(), 0777);
  expect_one_directory_instead(base, 1);
  EXPECT_TRUE(fs::is_empty(user_directory(base)));
}

TEST(Tree, AUserDirectoryOfSomebodyElseIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make one";
  TemporaryDirectory base;
  chmod(base.path().c_str(), 01777);
  const std::string squatted[] = {user_directory(base), user_directory(base) + "-0123456789abcdef"};
  for (const std::string& path : squatted) {
    fs::create_directory(path);
    ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
  }
  expect_one_directory_instead(base, 2);
  for (const std::string& path : squatted) EXPECT_TRUE(fs::is_empty(path));
}

TEST(Tree, DirectoriesThatTookItsPlaceAreRemovedWhenTheyAreOld) {
  TemporaryDirectory base;
  fs::create_directory(user_directory(base));
  chmod(user_directory(base).c_str(), 0777);
  const std::string instead = fs::path(placed(base.path(), content())).parent_path();
  const std::string others[] = {user_directory(base) + "-backup",
                                base / "uiwarp-doctor-0123456789ab",
                                base / "uiwarp-x-0123456789abcdef"};
  for (const std::string& path : others) fs::create_directory(path);
  fs::remove(user_directory(base));
  placed(base.path(), content());
  EXPECT_TRUE(fs::exists(instead)) << "a program may still use it";
  ASSERT_TRUE(place_tree(base.path(), content("uiw_new"), -1).has_value());
  EXPECT_FALSE(fs::exists(instead));
  for (const std::string& path : others) EXPECT_TRUE(fs::exists(path)) << path;
}

// Where nobody else can rename or remove what is ours.
TEST(Tree, ABaseIsUsedWhereOthersCannotChangeIt) {
  TemporaryDirectory outer;
  const std::string base = outer / "base";
  fs::create_directory(base);
  const auto tried = [&base](const std::string& path, mode_t mode) {
    chmod(path.c_str(), mode);
    const int error = place_tree(base, content()).error();
    if (error != 0) EXPECT_TRUE(fs::is_empty(base));
    fs::remove_all(user_directory_of(base));
    chmod(path.c_str(), 0755);
    return error;
  };
  EXPECT_EQ(tried(base, 0700), 0);
  EXPECT_EQ(tried(base, 01777), 0);  // sticky, as /tmp is
  EXPECT_EQ(tried(base, 01775), 0);
  EXPECT_EQ(tried(base, 0777), EPERM);
  EXPECT_EQ(tried(base, 0775), EPERM);
  EXPECT_EQ(tried(base, 02775), EPERM);
  EXPECT_EQ(tried(outer.path(), 0777), EPERM);  // they could rename `base`
  EXPECT_EQ(tried(outer.path(), 01777), 0);
  EXPECT_EQ(tried(outer.path(), 0775), 0);  // the user's own group, as a umask of 002 makes it
}

TEST(Tree, ABaseOfAnotherUserIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make one";
  TemporaryDirectory outer;
  const std::string base = outer / "base";
  fs::create_directory(base);
  for (const std::string& path : {base, outer.path()}) {
    ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
    EXPECT_EQ(place_tree(base, content()).error(), EPERM) << path;
    chmod(path.c_str(), 01777);  // he could rename what is in it all the same
    EXPECT_EQ(place_tree(base, content()).error(), EPERM) << path;
    ASSERT_EQ(chown(path.c_str(), 0, 0), 0);
    chmod(path.c_str(), 0755);
  }
  EXPECT_TRUE(fs::is_empty(base));
  // Nor one of ours to which a link of theirs leads: they choose to which.
  fs::create_symlink(base, outer / "link");
  EXPECT_EQ(placed(outer / "link", content()).substr(0, base.size() + 1), base + "/");
  ASSERT_EQ(lchown((outer / "link").c_str(), 65534, 65534), 0);
  EXPECT_EQ(place_tree(outer / "link", content()).error(), EPERM);
}

TEST(Tree, ATreeThatOthersCanWriteToIsReplaced) {
  TemporaryDirectory base;
  const std::string root = placed(base.path(), content());
  chmod(root.c_str(), 0777);
  EXPECT_EQ(placed(base.path(), content()), root);
  EXPECT_EQ(status_of(root).st_mode, S_IFDIR | 0755u);
}

TEST(Tree, ManyAtOnceAgree) {
  TemporaryDirectory base;
  std::string roots[8];
  {
    std::vector<std::thread> threads;
    for (std::string& root : roots) {
      threads.emplace_back([&root, &base] { root = placed(base.path(), content()); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (const std::string& root : roots) EXPECT_EQ(root, roots[0]);
  expect_complete(roots[0], content());
  EXPECT_EQ(std::distance(fs::directory_iterator(user_directory(base)), fs::directory_iterator()),
            1);
}

TEST(Tree, OldOnesOfOtherDevicesAreRemoved) {
  TemporaryDirectory base;
  const std::string old = placed(base.path(), content("uiw_old"));
  const std::string recent = placed(base.path(), content("uiw_recent"));
  EXPECT_TRUE(fs::exists(old));
  auto root = place_tree(base.path(), content("uiw_new"), -1);  // all are older than that
  ASSERT_TRUE(root.has_value());
  expect_complete(*root, content("uiw_new"));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_FALSE(fs::exists(recent));
}

// Octets of all files below a folder.
uintmax_t size_of(const std::string& folder) {
  uintmax_t octets = 0;
  for (const auto& found : fs::recursive_directory_iterator(folder)) {
    if (found.is_regular_file()) octets += found.file_size();
  }
  return octets;
}

TEST(Tree, HoweverOftenDevicesChangeAFewTreesAreLeft) {
  TemporaryDirectory base;
  constexpr size_t kMost = 1 + 8;
  const uintmax_t one = size_of(placed(base.path(), content("uiw_000")));
  for (int i = 1; i < 40; ++i) {
    const std::vector<TreeEntry> now = content(("uiw_" + std::to_string(100 + i)).c_str());
    const std::string root = placed(base.path(), now);
    expect_complete(root, now);
    ASSERT_LE(entries_of(user_directory(base)).size(), kMost) << i;
    ASSERT_LE(size_of(user_directory(base)), kMost * one) << i;
  }
  EXPECT_EQ(entries_of(user_directory(base)).size(), kMost);
}

// A process that makes a folder of that name, holds it or not, says so, and waits to be killed.
class Killed {
 public:
  Killed(const std::string& user_directory, const std::string& name, bool holds) {
    int fds[2];
    EXPECT_EQ(pipe(fds), 0);
    child_ = fork();
    if (child_ == 0) {
      core::Result<Folder> parent = Folder::open_base(user_directory);
      parent->make_directory(name);
      core::Result<Folder> folder = holds ? parent->hold(name) : parent->open(name);
      folder->make_file("begun", "x", 0444);
      char said = folder ? 'y' : 'n';
      (void)!write(fds[1], &said, 1);
      for (;;) pause();
    }
    close(fds[1]);
    char said = 0;
    EXPECT_EQ(read(fds[0], &said, 1), 1);
    EXPECT_EQ(said, 'y');
    close(fds[0]);
  }
  ~Killed() { end(); }
  void end() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = 0;
  }

 private:
  pid_t child_ = 0;
};

constexpr char kNew[] = "new-0123456789abcdef", kOld[] = "old-0123456789abcdef";

TEST(Tree, WhatAKilledProcessWasWritingIsRemovedByTheNextThatPlacesOne) {
  TemporaryDirectory base;
  placed(base.path(), content("uiw_1"));
  Killed writer(user_directory(base), kNew, true);
  placed(base.path(), content("uiw_2"));
  EXPECT_TRUE(fs::exists(user_directory(base) + "/" + kNew + "/begun"));  // it lives
  writer.end();
  placed(base.path(), content("uiw_3"));
  EXPECT_FALSE(fs::exists(user_directory(base) + "/" + kNew));
  EXPECT_EQ(entries_of(user_directory(base)).size(), 3u);
}

TEST(Tree, WhatAKilledProcessWasRemovingIsRemovedByTheNextThatPlacesOne) {
  TemporaryDirectory base;
  placed(base.path(), content("uiw_1"));
  Killed remover(user_directory(base), kOld, false);
  remover.end();
  placed(base.path(), content("uiw_2"));
  EXPECT_FALSE(fs::exists(user_directory(base) + "/" + kOld));
}

TEST(Tree, WhatIsNamedOtherwiseIsNoLeftover) {
  TemporaryDirectory base;
  placed(base.path(), content("uiw_1"));
  for (const char* name : {"new-", "new-0123", "old-x123456789abcdef", "mine"})
    fs::create_directory(user_directory(base) + "/" + name);
  placed(base.path(), content("uiw_2"));
  EXPECT_EQ(entries_of(user_directory(base)).size(), 2u + 4u);
}

TEST(Tree, ABaseThatCannotBeUsedIsAnErrno) {
  TemporaryDirectory base;
  EXPECT_EQ(place_tree(base / "missing", content()).error(), ENOENT);
  std::ofstream(base / "file") << "x";
  EXPECT_EQ(place_tree(base / "file", content()).error(), ENOTDIR);
}

TEST(TreeRoot, IsConstantAndComesBackWhenRemoved) {
  const std::string root(tree_root());
  ASSERT_FALSE(root.empty());
  EXPECT_TRUE(root.starts_with(fs::canonical(getenv("UIWARP_RUNTIME_DIR")).string())) << root;
  EXPECT_EQ(tree_root(), root);
  const struct stat before = status_of(root + "/sys/class/infiniband");
  fs::remove_all(root);
  EXPECT_EQ(tree_root(), root);
  // The same time, or libibverbs would take its devices for new ones.
  EXPECT_EQ(status_of(root + "/sys/class/infiniband").st_mtim.tv_sec, before.st_mtim.tv_sec);
  EXPECT_EQ(status_of(root + "/sys/class/infiniband").st_mtim.tv_nsec, before.st_mtim.tv_nsec);
}

// A process that looks at one file after the other while others, with other devices, place theirs.
TEST(TreeRoot, IsThereAtEachPathThoughOthersPlaceTheirs) {
  const std::string root(tree_root());
  std::vector<std::string> files;
  for (const auto& found : fs::recursive_directory_iterator(root))
    files.push_back(found.path().string().substr(root.size()));
  ASSERT_FALSE(files.empty());
  files.resize(std::min<size_t>(files.size(), 4));
  int others = 0, removals = 0;
  for (const std::string& file : files) {
    while (fs::exists(root) && others < 1000)
      placed(getenv("UIWARP_RUNTIME_DIR"), content(("uiw_" + std::to_string(others++)).c_str()));
    removals += !fs::exists(root);
    EXPECT_EQ(tree_root(), root);
    EXPECT_TRUE(fs::exists(fs::symlink_status(root + file))) << file;
  }
  EXPECT_EQ(removals, static_cast<int>(files.size()));
}

}  // namespace
}  // namespace uiw::vkernel
