// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// stat, access, readlink, realpath, opendir, scandir, glob and the rest that take a path.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

extern "C" {
char* __getcwd_chk(char*, size_t, size_t);
char* __realpath_chk(const char*, char*, size_t);
ssize_t __readlink_chk(const char*, char*, size_t, size_t);
ssize_t __readlinkat_chk(int, const char*, char*, size_t, size_t);
}

namespace {

constexpr char kDirectory[] = "/sys/class/infiniband/uiw_lo";
constexpr char kNode[] = "/dev/infiniband/rdma_cm";

// ---- stat ----

struct Stat {
  const char* name;
  bool follows;  // symbolic links
  std::function<int(const char*, struct stat*)> call;
};

// The names of glibc before 2.33, which new programs cannot link to.
template <class Function>
Function* old_name(const char* name) {
  auto* found = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  EXPECT_NE(found, nullptr) << name;
  return found;
}
using OldStat = int(int, const char*, struct stat*);
using OldFstat = int(int, int, struct stat*);
using OldFstatat = int(int, int, const char*, struct stat*, int);

struct stat64* as64(struct stat* st) {
  return reinterpret_cast<struct stat64*>(st);
}

int by_statx(const char* path, struct stat* st) {
  struct statx result {};
  const int returned = statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &result);
  st->st_mode = result.stx_mode;
  return returned;
}

std::vector<Stat> all_stats() {
  const int current = 1;
  return {
      {"stat", true, [](const char* p, struct stat* s) { return stat(p, s); }},
      {"stat64", true, [](const char* p, struct stat* s) { return stat64(p, as64(s)); }},
      {"lstat", false, [](const char* p, struct stat* s) { return lstat(p, s); }},
      {"lstat64", false, [](const char* p, struct stat* s) { return lstat64(p, as64(s)); }},
      {"fstatat", true, [](const char* p, struct stat* s) { return fstatat(99, p, s, 0); }},
      {"fstatat64", true,
       [](const char* p, struct stat* s) { return fstatat64(99, p, as64(s), 0); }},
      {"statx", true, by_statx},
#ifdef __x86_64__
      {"__xstat", true,
       [](const char* p, struct stat* s) { return old_name<OldStat>("__xstat")(current, p, s); }},
      {"__xstat64", true,
       [](const char* p, struct stat* s) { return old_name<OldStat>("__xstat64")(current, p, s); }},
      {"__lxstat", false,
       [](const char* p, struct stat* s) { return old_name<OldStat>("__lxstat")(current, p, s); }},
      {"__lxstat64", false,
       [](const char* p, struct stat* s) {
         return old_name<OldStat>("__lxstat64")(current, p, s);
       }},
      {"__fxstatat", true,
       [](const char* p, struct stat* s) {
         return old_name<OldFstatat>("__fxstatat")(current, 99, p, s, 0);
       }},
      {"__fxstatat64", true,
       [](const char* p, struct stat* s) {
         return old_name<OldFstatat>("__fxstatat64")(current, 99, p, s, 0);
       }},
#endif
  };
}

TEST(StatHooks, SeeTheTree) {
  for (const Stat& hook : all_stats()) {
    struct stat status {};
    errno = 4711;
    ASSERT_EQ(hook.call(kDirectory, &status), 0) << hook.name;
    EXPECT_EQ(errno, 4711) << hook.name;
    EXPECT_TRUE(S_ISDIR(status.st_mode)) << hook.name;
    ASSERT_EQ(hook.call(kNode, &status), 0) << hook.name;
    EXPECT_EQ(S_ISCHR(status.st_mode), hook.follows) << hook.name;
    EXPECT_EQ(hook.call("/sys/class/infiniband/mlx5_0", &status), -1) << hook.name;
    EXPECT_EQ(errno, ENOENT) << hook.name;
  }
}

TEST(StatHooks, SeeTheTreeByWhicheverWay) {
  for (const char* path :
       {"/sys//class/infiniband", "//sys/class/infiniband", "/sys/./class/infiniband",
        "/./sys/class/infiniband/.", "/sys/class//infiniband/", "/sys/class/../class/infiniband",
        "/sys/class/net/../infiniband", "/proc/../sys/class/misc/../infiniband_verbs",
        "/sys/class/./misc/rdma_cm", "/dev//infiniband", "/dev/shm/../infiniband"}) {
    for (const Stat& hook : all_stats()) {
      struct stat status {};
      EXPECT_EQ(hook.call(path, &status), 0) << hook.name << " " << path;
      EXPECT_TRUE(S_ISDIR(status.st_mode)) << hook.name << " " << path;
    }
  }
  const int fd = open("/dev/./infiniband//rdma_cm", O_RDWR | O_CLOEXEC);
  struct stat status {};
  EXPECT_EQ(fstat(fd, &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  close(fd);
}

// What ".." means behind a link only the kernel knows.
TEST(StatHooks, LeaveOtherPathsWithThatInTheirNameAlone) {
  namespace fs = std::filesystem;
  std::string base = fs::temp_directory_path() / "uiwarp-test-XXXXXX";
  ASSERT_NE(mkdtemp(base.data()), nullptr);
  fs::create_directories(base + "/dev/infiniband");
  fs::create_directories(base + "/dev/deep/deeper");
  fs::create_directory_symlink(base + "/dev/deep", base + "/link");
  for (const Stat& hook : all_stats()) {
    struct stat status {};
    EXPECT_EQ(hook.call((base + "/link/../infiniband").c_str(), &status), 0) << hook.name;
    EXPECT_EQ(hook.call((base + "/dev//infiniband").c_str(), &status), 0) << hook.name;
    EXPECT_EQ(hook.call((base + "/dev/../infiniband").c_str(), &status), -1) << hook.name;
  }
  fs::remove_all(base);
}

TEST(StatHooks, LeaveOtherPathsAlone) {
  for (const Stat& hook : all_stats()) {
    struct stat status {};
    ASSERT_EQ(hook.call("/proc", &status), 0) << hook.name;
    EXPECT_TRUE(S_ISDIR(status.st_mode)) << hook.name;
    EXPECT_EQ(hook.call("/no/such/file", &status), -1) << hook.name;
    EXPECT_EQ(errno, ENOENT) << hook.name;
  }
}

#ifdef __x86_64__
TEST(StatHooks, RefuseAnUnknownLayout) {
  struct stat status;
  for (int version : {-1, 2, 3}) {
    EXPECT_EQ(old_name<OldStat>("__xstat")(version, "/", &status), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(old_name<OldFstat>("__fxstat64")(version, 0, &status), -1);
    EXPECT_EQ(errno, EINVAL);
  }
}
#endif

TEST(StatHooks, ADeviceDescriptorIsACharacterDevice) {
  const int fd = open(kNode, O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const std::pair<const char*, std::function<int(struct stat*)>> calls[] = {
      {"fstat", [&](struct stat* s) { return fstat(fd, s); }},
      {"fstat64", [&](struct stat* s) { return fstat64(fd, as64(s)); }},
      {"fstatat", [&](struct stat* s) { return fstatat(fd, "", s, AT_EMPTY_PATH); }},
      {"fstatat64", [&](struct stat* s) { return fstatat64(fd, "", as64(s), AT_EMPTY_PATH); }},
#ifdef __x86_64__
      {"__fxstat", [&](struct stat* s) { return old_name<OldFstat>("__fxstat")(1, fd, s); }},
      {"__fxstat64", [&](struct stat* s) { return old_name<OldFstat>("__fxstat64")(1, fd, s); }},
#endif
  };
  for (const auto& [name, call] : calls) {
    struct stat status {};
    ASSERT_EQ(call(&status), 0) << name;
    EXPECT_TRUE(S_ISCHR(status.st_mode)) << name;
  }
  struct stat status {};
  struct statx extended {};
  EXPECT_EQ(fstat(fd, &status), 0);
  EXPECT_EQ(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended), 0);
  EXPECT_EQ(extended.stx_mode, status.st_mode);
  EXPECT_EQ(makedev(extended.stx_rdev_major, extended.stx_rdev_minor), status.st_rdev);
  close(fd);

  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(fstat(ends[0], &status), 0);
  EXPECT_TRUE(S_ISFIFO(status.st_mode));
  EXPECT_EQ(statx(ends[0], "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended), 0);
  EXPECT_EQ(extended.stx_mode, status.st_mode);
  close(ends[0]);
  close(ends[1]);
}

TEST(AccessHooks, SeeTheTree) {
  const std::pair<const char*, std::function<int(const char*)>> calls[] = {
      {"access", [](const char* p) { return access(p, R_OK); }},
      {"faccessat", [](const char* p) { return faccessat(99, p, R_OK, 0); }},
      {"euidaccess", [](const char* p) { return euidaccess(p, R_OK); }},
      {"eaccess", [](const char* p) { return eaccess(p, R_OK); }},
  };
  for (const auto& [name, call] : calls) {
    EXPECT_EQ(call(kDirectory), 0) << name;
    EXPECT_EQ(call(kNode), 0) << name;
    EXPECT_EQ(call("/proc/self/comm"), 0) << name;
    for (const char* missing : {"/sys/class/infiniband/mlx5_0", "/no/such/file"}) {
      EXPECT_EQ(call(missing), -1) << name;
      EXPECT_EQ(errno, ENOENT) << name;
    }
  }
}

// ---- links ----

TEST(ReadlinkHooks, SeeTheTree) {
  using Buffer = char[64];
  const std::pair<const char*, std::function<ssize_t(const char*, Buffer&)>> calls[] = {
      {"readlink", [](const char* p, Buffer& b) { return readlink(p, b, sizeof b); }},
      {"readlinkat", [](const char* p, Buffer& b) { return readlinkat(99, p, b, sizeof b); }},
      {"__readlink_chk",
       [](const char* p, Buffer& b) { return __readlink_chk(p, b, sizeof b, sizeof b); }},
      {"__readlinkat_chk",
       [](const char* p, Buffer& b) { return __readlinkat_chk(99, p, b, sizeof b, sizeof b); }},
  };
  for (const auto& [name, call] : calls) {
    Buffer buffer = "";
    EXPECT_EQ(call(kNode, buffer), 9) << name;
    EXPECT_STREQ(buffer, "/dev/null") << name;
    EXPECT_EQ(call(kDirectory, buffer), -1) << name;
    EXPECT_EQ(errno, EINVAL) << name;  // not a link
    EXPECT_GT(call("/proc/self/exe", buffer), 0) << name;
  }
}

std::vector<std::pair<const char*, std::function<std::string(const char*)>>> all_realpaths() {
  return {
      {"realpath",
       [](const char* p) {
         char out[PATH_MAX];
         const char* found = realpath(p, out);
         EXPECT_TRUE(found == nullptr || found == out);
         return std::string(found == nullptr ? "" : found);
       }},
      {"realpath, allocated",
       [](const char* p) {
         char* found = realpath(p, nullptr);
         std::string text(found == nullptr ? "" : found);
         free(found);
         return text;
       }},
      {"__realpath_chk",
       [](const char* p) {
         char out[PATH_MAX];
         const char* found = __realpath_chk(p, out, sizeof out);
         return std::string(found == nullptr ? "" : found);
       }},
      {"canonicalize_file_name",
       [](const char* p) {
         char* found = canonicalize_file_name(p);
         std::string text(found == nullptr ? "" : found);
         free(found);
         return text;
       }},
  };
}

TEST(RealpathHooks, ShowThePathTheProgramKnows) {
  for (const auto& [name, call] : all_realpaths()) {
    EXPECT_EQ(call(kDirectory), kDirectory) << name;
    EXPECT_EQ(call("/sys/class/infiniband/./uiw_lo/ports/.."), kDirectory) << name;
    EXPECT_EQ(call("/sys/class/infiniband/uiw_lo/device/net/lo/"),
              "/sys/class/infiniband/uiw_lo/device/net/lo")
        << name;
    EXPECT_EQ(call(kNode), kNode) << name;
    EXPECT_EQ(call("/dev/infiniband/../null"), "/dev/null") << name;
    EXPECT_EQ(call("/proc/../proc"), "/proc") << name;
    errno = 0;
    EXPECT_EQ(call("/sys/class/infiniband/mlx5_0"), "") << name;
    EXPECT_EQ(errno, ENOENT) << name;
  }
}

TEST(RealpathHooks, ShowItFromWhereTheProgramIs) {
  const int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(chdir(kDirectory), 0);
  for (const auto& [name, call] : all_realpaths()) {
    EXPECT_EQ(call("."), kDirectory) << name;
    EXPECT_EQ(call("ports/1"), std::string(kDirectory) + "/ports/1") << name;
    EXPECT_EQ(call("ports/2"), "") << name;
  }
  ASSERT_EQ(chdir("/proc"), 0);
  for (const auto& [name, call] : all_realpaths()) EXPECT_EQ(call("."), "/proc") << name;
  EXPECT_EQ(fchdir(before), 0);
  close(before);
}

TEST(XattrHooks, SeeTheTree) {  // or `ls -l` complains
  char value[8];
  EXPECT_EQ(getxattr(kDirectory, "user.none", value, sizeof value), -1);
  EXPECT_NE(errno, ENOENT);
  EXPECT_EQ(lgetxattr(kDirectory, "user.none", value, sizeof value), -1);
  EXPECT_NE(errno, ENOENT);
}

// ---- directories ----

TEST(DirectoryHooks, OpendirListsAndOpensRelativeToIt) {
  DIR* directory = opendir("/sys/class/infiniband");
  ASSERT_NE(directory, nullptr);
  bool seen = false;
  while (const dirent* entry = readdir(directory)) {
    if (strcmp(entry->d_name, "uiw_lo") != 0) continue;
    seen = true;
    struct stat status;
    EXPECT_EQ(fstatat(dirfd(directory), "uiw_lo/node_guid", &status, 0), 0);
  }
  EXPECT_TRUE(seen);
  closedir(directory);
  EXPECT_EQ(opendir("/sys/class/infiniband/mlx5_0"), nullptr);
  EXPECT_EQ(errno, ENOENT);
}

TEST(DirectoryHooks, ChdirGoesThereAndGetcwdKnowsWhere) {
  const int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::pair<const char*, std::function<std::string()>> calls[] = {
      {"getcwd",
       [] {
         char out[PATH_MAX];
         const char* found = getcwd(out, sizeof out);
         EXPECT_EQ(found, out);
         return std::string(out);
       }},
      {"getcwd, allocated",
       [] {
         char* found = getcwd(nullptr, 0);
         std::string text(found == nullptr ? "" : found);
         free(found);
         return text;
       }},
      {"__getcwd_chk",
       [] {
         char out[PATH_MAX];
         const char* found = __getcwd_chk(out, sizeof out, sizeof out);
         return std::string(found == nullptr ? "" : found);
       }},
      {"get_current_dir_name",
       [] {
         char* found = get_current_dir_name();
         std::string text(found == nullptr ? "" : found);
         free(found);
         return text;
       }},
  };
  for (const auto& [name, call] : calls) {
    ASSERT_EQ(chdir("/sys/class/infiniband"), 0);
    EXPECT_EQ(call(), "/sys/class/infiniband") << name;
    // From here on by relative paths.
    EXPECT_EQ(access("uiw_lo/node_type", R_OK), 0);
    ASSERT_EQ(chdir("uiw_lo/ports"), 0);
    EXPECT_EQ(call(), "/sys/class/infiniband/uiw_lo/ports") << name;
    ASSERT_EQ(chdir("../.."), 0);
    EXPECT_EQ(call(), "/sys/class/infiniband") << name;
    ASSERT_EQ(chdir("/proc"), 0);
    EXPECT_EQ(call(), "/proc") << name;
    // By a descriptor.
    const int directory = open(kDirectory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(fchdir(directory), 0);
    close(directory);
    EXPECT_EQ(call(), kDirectory) << name;
    errno = 0;
    EXPECT_EQ(chdir("/sys/class/infiniband/mlx5_0"), -1);
    EXPECT_EQ(errno, ENOENT);
    EXPECT_EQ(chdir("/sys/class/infiniband/uiw_lo/node_type"), -1);
    EXPECT_EQ(errno, ENOTDIR);
    EXPECT_EQ(call(), kDirectory) << name;
  }
  char small[4];
  EXPECT_EQ(getcwd(small, sizeof small), nullptr);
  EXPECT_EQ(errno, ERANGE);
  EXPECT_EQ(fchdir(before), 0);
  close(before);
}

template <class Entry, class Scan>
std::set<std::string> scan(Scan call, const char* path) {
  Entry** entries = nullptr;
  const int count = call(path, &entries, nullptr, nullptr);
  EXPECT_GE(count, 0) << path;
  std::set<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.insert(entries[i]->d_name);
    free(entries[i]);
  }
  free(entries);
  return names;
}

TEST(DirectoryHooks, ScandirLists) {
  for (const auto& names : {scan<dirent>(scandir, "/sys/class/infiniband/uiw_lo/ports"),
                            scan<dirent64>(scandir64, "/sys/class/infiniband/uiw_lo/ports")}) {
    EXPECT_EQ(names, (std::set<std::string>{".", "..", "1"}));
  }
  EXPECT_TRUE(scan<dirent>(scandir, "/proc/self").contains("exe"));
}

template <class Glob, class Call, class Free>
std::vector<std::string> paths(Call call, Free release, const char* pattern, int flags = 0) {
  Glob found{};
  found.gl_offs = 2;
  std::vector<std::string> out;
  if (call(pattern, flags, nullptr, &found) == 0) {
    const size_t skip = (flags & GLOB_DOOFFS) != 0 ? found.gl_offs : 0;
    for (size_t i = 0; i < found.gl_pathc; ++i) out.emplace_back(found.gl_pathv[skip + i]);
    release(&found);
  }
  return out;
}

TEST(DirectoryHooks, GlobShowsThePathTheProgramKnows) {
  const std::vector<std::string> wanted = {"/sys/class/infiniband/uiw_lo/node_desc",
                                           "/sys/class/infiniband/uiw_lo/node_guid",
                                           "/sys/class/infiniband/uiw_lo/node_type"};
  constexpr char kPattern[] = "/sys/class/infiniband/uiw_l[o]/node_*";
  EXPECT_EQ(paths<glob_t>(glob, globfree, kPattern), wanted);
  EXPECT_EQ(paths<glob64_t>(glob64, globfree64, kPattern), wanted);
// The sanitizers' glob() does not know of leading null entries and follows them.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_EQ(paths<glob_t>(glob, globfree, kPattern, GLOB_DOOFFS), wanted);
#endif
  EXPECT_TRUE(paths<glob_t>(glob, globfree, "/sys/class/infiniband/mlx*").empty());
  EXPECT_EQ(paths<glob_t>(glob, globfree, "/proc/sel[f]"), std::vector<std::string>{"/proc/self"});
  EXPECT_EQ(paths<glob_t>(glob, globfree, "/sys/class/infiniband/mlx*", GLOB_NOCHECK),
            std::vector<std::string>{"/sys/class/infiniband/mlx*"});
}

}  // namespace
