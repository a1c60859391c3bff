// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the library is made of and brings into the process.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace {

std::set<std::string> mapped(const std::string& name) {
  std::set<std::string> paths;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t slash = line.find('/');
    if (slash != std::string::npos && line.find(name, slash) != std::string::npos) {
      paths.insert(line.substr(slash));
    }
  }
  return paths;
}

TEST(Library, TheProviderGetsTheSameInstance) {
  struct stat status;
  ASSERT_EQ(stat("/sys/class/infiniband", &status), 0);
  ASSERT_EQ(mapped("libuiwarp.so").size(), 1u);
  void* core =
      dlopen("libuiwarp.so.0", RTLD_NOW | RTLD_NOLOAD);  // by its soname, as DT_NEEDED does
  ASSERT_NE(core, nullptr) << dlerror();
  using FdFlags = const uint8_t*();
  auto* fd_flags = reinterpret_cast<FdFlags*>(dlsym(core, "uiwarp_vk_fd_flags"));
  ASSERT_NE(fd_flags, nullptr);
  const int rdma_cm = open("/dev/infiniband/rdma_cm", O_RDWR);
  ASSERT_GE(rdma_cm, 0);
  EXPECT_NE(fd_flags()[rdma_cm], 0);  // the instance that answered the open() above
  close(rdma_cm);

  void* provider = dlopen(UIWARP_TEST_LIBRARY_DIR "/" UIWARP_TEST_PROVIDER, RTLD_NOW);
  ASSERT_NE(provider, nullptr) << dlerror();
  EXPECT_EQ(mapped("libuiwarp.so").size(), 1u);
  dlclose(provider);
  dlclose(core);
}

TEST(Library, StaysOutOfTheProgramsSymbols) {
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "uiwarp_vk_redirect"), nullptr);
  void* preload = dlopen("libuiwarp-preload.so", RTLD_NOW | RTLD_NOLOAD);
  if (preload == nullptr) {
    preload = dlopen(UIWARP_TEST_LIBRARY_DIR "/libuiwarp-preload.so", RTLD_NOW | RTLD_NOLOAD);
  }
  ASSERT_NE(preload, nullptr) << dlerror();
  for (const char* internal : {"load_core", "redirect_into", "find_real_calls", "real_calls"}) {
    EXPECT_EQ(dlsym(preload, internal), nullptr) << internal;
  }
  dlclose(preload);
}

// dlopen() searches where the RUNPATH of the object that calls it says, which a hook must not
// become.
TEST(Library, AProgramsOwnSearchPathCounts) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's own dlopen() stands between";
#endif
  void* preload = dlopen(UIWARP_TEST_LIBRARY_DIR "/libuiwarp-preload.so", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(preload, nullptr) << dlerror();
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "dlopen"), dlsym(preload, "dlopen"));  // the hook is in use
  dlclose(preload);
  for (int flags : {RTLD_NOW, RTLD_NOW | RTLD_DEEPBIND}) {
    void* found = dlopen("libuiwarp-only-here.so", flags);
    ASSERT_NE(found, nullptr) << dlerror();
    EXPECT_NE(dlsym(found, "uiwarp_test_found"), nullptr);
    dlclose(found);
  }
}

std::vector<std::string> libraries_until(const char* last) {
  struct Visit {
    const char* last;
    std::vector<std::string> names;
  } visit{last, {}};
  const int result = dl_iterate_phdr(
      [](dl_phdr_info* info, size_t size, void* data) {
        auto* into = static_cast<Visit*>(data);
        EXPECT_EQ(size, sizeof *info);
        into->names.push_back(info->dlpi_name);
        return into->names.back().find(into->last) != std::string::npos ? 7 : 0;
      },
      &visit);
  EXPECT_EQ(result, visit.names.back().find(last) != std::string::npos ? 7 : 0);
  return visit.names;
}

// The runtime of AddressSanitizer wants to be the first library that is named.
TEST(Library, ComesLastInTheListOfLibraries) {
  const std::vector<std::string> names = libraries_until("no library's name");
  EXPECT_EQ(names.front(), "");  // the program
  EXPECT_NE(names.back().find("libuiwarp-preload.so"), std::string::npos) << names.back();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_GT(names.size(), 3u);
  // A callback that has found what it looks for sees no more.
  EXPECT_LT(libraries_until("libc.so").size(), names.size());
  EXPECT_EQ(libraries_until("libuiwarp-preload.so"), names);
}

}  // namespace
