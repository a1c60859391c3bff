// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/tree.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <vector>

#include "core/log.h"
#include "core/per_process.h"
#include "core/raw_sys.h"
#include "vkernel/raw_files.h"

namespace uiw::vkernel {
namespace {

namespace sys = core::sys;

constexpr unsigned kDirectoryMode = 0755;
constexpr unsigned kFileMode = 0444;

std::string random_suffix() {
  uint64_t value = 0;
  // Without entropy the name is a fixed one; mkdir() then still refuses what exists.
  if (getrandom(&value, sizeof value, GRND_NONBLOCK) != sizeof value) value = raw::getpid();
  char out[17];
  std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(value));
  return out;
}

// A directory that belongs to us and that nobody else can write to.
bool is_trusted_directory(const std::string& path) {
  struct stat status;
  return raw::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// mkdir() whose mode does not depend on the application's umask. 0 or -errno.
int make_directory(const std::string& path) {
  if (int result = sys::mkdir(path.c_str(), kDirectoryMode); result < 0) return result;
  return raw::chmod(path.c_str(), kDirectoryMode);
}

int write_file(const std::string& path, const std::string& content) {
  const int fd = sys::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
  if (fd < 0) return fd;
  const long written = sys::write(fd, content.data(), content.size());
  sys::close(fd);
  if (written < 0) return static_cast<int>(written);
  if (static_cast<size_t>(written) != content.size()) return -ENOSPC;
  return raw::chmod(path.c_str(), kFileMode);
}

int write_entries(const std::string& root, std::span<const TreeEntry> entries) {
  for (const TreeEntry& entry : entries) {
    const std::string path = root + "/" + entry.path;
    int result = 0;
    switch (entry.kind) {
      case TreeEntry::Kind::kDirectory:
        result = make_directory(path);
        break;
      case TreeEntry::Kind::kFile:
        result = write_file(path, entry.content);
        break;
      case TreeEntry::Kind::kLink:
        result = sys::symlink(entry.content.c_str(), path.c_str());
        break;
    }
    if (result < 0) return result;
  }
  // Last, since making an entry changes the time of its directory.
  for (const TreeEntry& entry : entries) {
    raw::set_times((root + "/" + entry.path).c_str(), kTreeTime);
  }
  return 0;
}

bool is_complete(const std::string& root, std::span<const TreeEntry> entries) {
  for (const TreeEntry& entry : entries) {
    struct stat status;
    if (raw::lstat((root + "/" + entry.path).c_str(), &status) != 0) return false;
    switch (entry.kind) {
      case TreeEntry::Kind::kDirectory:
        if (!S_ISDIR(status.st_mode) || status.st_mtime != kTreeTime) return false;
        break;
      case TreeEntry::Kind::kFile:
        if (!S_ISREG(status.st_mode) || status.st_size != static_cast<off_t>(entry.content.size()))
          return false;
        break;
      case TreeEntry::Kind::kLink:
        if (!S_ISLNK(status.st_mode)) return false;
        break;
    }
  }
  return true;
}

bool is_usable(const std::string& root, std::span<const TreeEntry> entries) {
  return is_trusted_directory(root) && is_complete(root, entries);
}

// <base>/uiwarp-<uid>, or one with an unpredictable name when that is not safely ours.
core::Result<std::string> user_directory(std::string_view base) {
  std::string path = std::string(base) + "/uiwarp-" + std::to_string(geteuid());
  const int made = make_directory(path);
  if (made < 0 && made != -EEXIST) return core::Errno{-made};
  if (is_trusted_directory(path)) return path;
  path += "-" + random_suffix();
  if (int result = make_directory(path); result < 0) return core::Errno{-result};
  return path;
}

// All in `parent` but `keep` that are older than `keep_seconds`.
void remove_old_trees(const std::string& parent, const std::string& keep, long keep_seconds) {
  std::vector<std::string> names;
  if (raw::list_directory(parent.c_str(), names) != 0) return;
  const time_t now = time(nullptr);
  for (const std::string& name : names) {
    const std::string path = parent + "/" + name;
    struct stat status;
    if (name == keep || raw::lstat(path.c_str(), &status) != 0) continue;
    if (now - status.st_ctime > keep_seconds) raw::remove_recursively(path);
  }
}

core::Result<std::string> resolve(const std::string& root) {
  const int fd = sys::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return core::Errno{-fd};
  char link[32], path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long size = raw::readlink(link, path, sizeof path);
  sys::close(fd);
  if (size <= 0 || size == sizeof path || path[0] != '/') return root;  // without /proc
  return std::string(path, static_cast<size_t>(size));
}

}  // namespace

core::Result<std::string> place_tree(std::string_view base, std::span<const TreeEntry> entries,
                                     long keep_seconds) {
  core::Result<std::string> parent = user_directory(base);
  if (!parent) return parent;
  const std::string hash = tree_hash(entries);
  const std::string root = *parent + "/" + hash;
  if (is_usable(root, entries)) return resolve(root);

  const std::string fresh = *parent + "/new-" + random_suffix();
  int result = make_directory(fresh);
  if (result == 0) result = write_entries(fresh, entries);
  if (result == 0) {
    result = sys::rename(fresh.c_str(), root.c_str());
    if (result == -EEXIST || result == -ENOTEMPTY || result == -ENOTDIR) {
      // Another process was faster, or what lies there is damaged: then out of the way with it.
      if (!is_usable(root, entries)) {
        const std::string damaged = *parent + "/old-" + random_suffix();
        sys::rename(root.c_str(), damaged.c_str());
        raw::remove_recursively(damaged);
        sys::rename(fresh.c_str(), root.c_str());
      }
      result = is_usable(root, entries) ? 0 : result;
    }
  }
  raw::remove_recursively(fresh);
  if (result < 0) return core::Errno{-result};
  remove_old_trees(*parent, hash, keep_seconds);
  return resolve(root);
}

namespace {

// Where a tree lies. Lives as long as the process, for whoever was given the path.
struct Root {
  std::string base;
  std::string path;  // empty: nowhere could be written to
  const Root* next;
};

constinit std::atomic<const Root*> all_roots{nullptr};  // a list, which only grows
constinit std::atomic<const Root*> current_root{nullptr};
constinit std::atomic<uint64_t> placed_version{0};  // of the devices, which `current_root` shows
constinit core::PerProcess<std::mutex> placing;     // a fork may come while a thread holds it
constinit std::atomic<bool> complained{false};

// The one of that path: interfaces go to and fro between few states. With `placing` held.
const Root* remember(std::string base, std::string path) {
  const Root* first = all_roots.load(std::memory_order_relaxed);
  for (const Root* root = first; root != nullptr; root = root->next) {
    if (root->path == path) return root;
  }
  auto* root = new (std::nothrow) Root{std::move(base), std::move(path), first};
  if (root != nullptr) all_roots.store(root, std::memory_order_release);
  return root;
}

// Null when memory is short.
const Root* place_anywhere(std::span<const TreeEntry> entries) {
  const char* chosen = secure_getenv("UIWARP_RUNTIME_DIR");
  const char* runtime = secure_getenv("XDG_RUNTIME_DIR");
  int error = 0;
  std::string tried;
  for (const char* base : {chosen, runtime, "/dev/shm", "/tmp"}) {
    if (base == nullptr || base[0] != '/') continue;
    core::Result<std::string> path = place_tree(base, entries);
    if (path) return remember(base, std::move(*path));
    error = path.error();
    tried += std::string(tried.empty() ? "" : ", ") + base;
  }
  core::log(core::LogLevel::kError,
            "no RDMA device: cannot write below any of %s (last error: %s); set UIWARP_RUNTIME_DIR "
            "to a directory you may write to",
            tried.c_str(), strerrordesc_np(error));
  return remember("", "");
}

bool has_vanished(const Root& root) {
  struct stat status;
  return raw::lstat((root.path + "/sys/class/infiniband_verbs/abi_version").c_str(), &status) ==
         -ENOENT;
}

bool is_right(const Root* root) {
  return root != nullptr && (root->path.empty() ||
                             (placed_version.load(std::memory_order_acquire) == device::version() &&
                              !has_vanished(*root)));
}

// With `placing` held. Where the next tree cannot be placed the last one stays.
void place(const Root* last) {
  const uint64_t version = device::version();  // first: what is read next may be younger
  const std::vector<TreeEntry> entries = tree_content(device::devices());
  const Root* root = nullptr;
  if (last == nullptr) {
    root = place_anywhere(entries);
  } else if (core::Result<std::string> path = place_tree(last->base, entries)) {
    root = remember(last->base, std::move(*path));
  } else if (!complained.exchange(true)) {
    core::log(core::LogLevel::kWarn,
              "changes of RDMA devices do not show: cannot write below %s: %s", last->base.c_str(),
              strerrordesc_np(path.error()));
  }
  if (root != nullptr) current_root.store(root, std::memory_order_release);
  placed_version.store(version, std::memory_order_release);
}

}  // namespace

std::string_view tree_root() {
  if (!is_right(current_root.load(std::memory_order_acquire))) {
    std::mutex* mutex = placing.get();
    if (mutex == nullptr) return "";
    std::lock_guard lock(*mutex);
    const Root* last = current_root.load(std::memory_order_relaxed);
    if (!is_right(last)) place(last);
  }
  const Root* root = current_root.load(std::memory_order_acquire);
  return root == nullptr ? std::string_view("") : root->path;
}

size_t root_length(std::string_view path) {
  for (const Root* root = all_roots.load(std::memory_order_acquire); root != nullptr;
       root = root->next) {
    const size_t length = root->path.size();
    if (length > 0 && path.size() > length && path[length] == '/' && path.starts_with(root->path)) {
      return length;
    }
  }
  return 0;
}

}  // namespace uiw::vkernel
