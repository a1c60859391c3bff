// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/tree.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/per_process.h"
#include "core/raw_sys.h"
#include "core/settings.h"
#include "vkernel/folder.h"
#include "vkernel/raw_files.h"

namespace uiw::vkernel {
namespace {

constexpr unsigned kFileMode = 0444;

// Trees besides the one that was just placed, however young they are. Each has 0.1 to 1.3 MB, and
// /dev/shm of a container has 64 MB as a rule; more programs with different lists of devices than
// this share a directory rarely, and what they lose they place anew.
constexpr size_t kKeepTrees = 8;

// What processes that were killed left behind is removed by those that place trees later, so many
// at a time.
constexpr int kMostLeftovers = 16;

// A tree that its process holds (Folder::hold) while it writes it, and one that nobody uses.
constexpr std::string_view kNewPrefix = "new-", kOldPrefix = "old-";

std::string random_suffix() {
  uint64_t value = 0;
  // Without entropy the name is a fixed one; making it then still refuses what exists.
  if (!core::sys::random(&value, sizeof value)) value = raw::getpid();
  char out[17];
  std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(value));
  return out;
}

// Of a tree's hash and of a random suffix, both hexadecimal.
constexpr size_t kDigits = 16;

bool is_hexadecimal(std::string_view text) {
  return text.size() == kDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

int write_entries(const Folder& root, std::span<const TreeEntry> entries) {
  for (const TreeEntry& entry : entries) {
    int result = 0;
    switch (entry.kind) {
      case TreeEntry::Kind::kDirectory:
        result = root.make_directory(entry.path);
        break;
      case TreeEntry::Kind::kFile:
        result = root.make_file(entry.path, entry.content, kFileMode);
        break;
      case TreeEntry::Kind::kLink:
        result = root.make_link(entry.path, entry.content);
        break;
    }
    if (result < 0) return result;
  }
  // Last, since making an entry changes the time of its directory.
  for (const TreeEntry& entry : entries) root.set_times(entry.path, kTreeTime);
  return 0;
}

bool is_complete(const Folder& root, std::span<const TreeEntry> entries) {
  for (const TreeEntry& entry : entries) {
    struct stat status;
    if (root.status(entry.path, status) != 0) return false;
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

bool is_usable(const Folder& parent, const std::string& name, std::span<const TreeEntry> entries) {
  core::Result<Folder> root = parent.open(name);
  return root && root->is_ours_alone() && is_complete(*root, entries);
}

bool is_older(const Folder& parent, const std::string& name, long seconds) {
  struct stat status;
  return parent.status(name, status) == 0 && time(nullptr) - status.st_ctime > seconds;
}

std::string user_folder_name() {
  return "uiwarp-" + std::to_string(geteuid());
}

// The directories of ours in `base` whose names user_folder() chose at random, in order.
std::vector<std::string> spare_folders(const Folder& base) {
  const std::string prefix = user_folder_name() + "-";
  std::vector<std::string> found;
  for (std::string& name : base.names()) {
    if (!name.starts_with(prefix) || !is_hexadecimal(name.substr(prefix.size()))) continue;
    core::Result<Folder> folder = base.open(name);
    if (folder && folder->is_ours_alone()) found.push_back(std::move(name));
  }
  std::sort(found.begin(), found.end());
  return found;
}

// <base>/uiwarp-<uid>. Where somebody else has taken that name: one with a name that nobody could
// foresee, which the next process finds and uses too.
core::Result<Folder> user_folder(const Folder& base) {
  const std::string name = user_folder_name();
  core::Result<Folder> folder = base.make(name);
  if (folder || folder.error() != EEXIST) return folder;
  folder = base.open(name);
  if (folder && folder->is_ours_alone()) return folder;
  const std::vector<std::string> spare = spare_folders(base);
  return spare.empty() ? base.make(name + "-" + random_suffix()) : base.open(spare.front());
}

// By one rename first: a process that is reading looks whether its tree is there before each path,
// and none is there in part.
void remove_tree(const Folder& parent, const std::string& name) {
  const std::string gone = std::string(kOldPrefix) + random_suffix();
  parent.remove(parent.rename(name, gone) == 0 ? gone : name);
}

// Makes one to write a tree to, and holds it. Between the two somebody may take it for a leftover.
core::Result<Folder> make_new(const Folder& parent, std::string& name) {
  constexpr int kTries = 10;
  core::Result<Folder> folder = core::Errno{EAGAIN};
  for (int i = 0; i < kTries; ++i) {
    name = std::string(kNewPrefix) + random_suffix();
    const int result = parent.make_directory(name);
    if (result == -ENOENT) continue;
    if (result < 0) return core::Errno{-result};
    folder = parent.hold(name);
    if (folder) return folder;
    // Where a file system has no locks nobody holds it, and nobody takes it for a leftover.
    if (folder.error() != EWOULDBLOCK && folder.error() != ENOENT) return parent.open(name);
  }
  return folder;
}

// True when it was one.
bool remove_leftover(const Folder& parent, const std::string& name) {
  const std::string_view text = name;
  if (text.size() != kNewPrefix.size() + kDigits || !is_hexadecimal(text.substr(kNewPrefix.size())))
    return false;
  // Whoever began to remove it goes on, or was killed.
  if (text.starts_with(kOldPrefix)) {
    parent.remove(name);
    return true;
  }
  if (!text.starts_with(kNewPrefix)) return false;
  if (core::Result<Folder> held = parent.hold(name)) {
    parent.remove(name);
    return true;
  }
  return false;
}

// Trees but `keep` that are older than that or more than kKeepTrees, those that were placed or
// found last stay; leftovers of killed processes; and user's folders that nobody needs any more: of
// processes that came at the same time, or while the name was taken.
void remove_old(const Folder& base, const Folder& parent, const std::string& keep,
                long keep_seconds) {
  struct Tree {
    timespec used;
    std::string name;
  };
  std::vector<Tree> trees;
  int leftovers = 0;
  for (std::string& name : parent.names()) {
    if (name == keep || name == kCountersFolder) continue;
    struct stat status;
    if (leftovers < kMostLeftovers && remove_leftover(parent, name)) {
      ++leftovers;
    } else if (is_older(parent, name, keep_seconds)) {
      remove_tree(parent, name);
    } else if (is_hexadecimal(name) && parent.status(name, status) == 0) {
      trees.push_back({status.st_ctim, std::move(name)});
    }
  }
  std::sort(trees.begin(), trees.end(), [](const Tree& a, const Tree& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) > std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (size_t i = kKeepTrees; i < trees.size(); ++i) remove_tree(parent, trees[i].name);
  for (const std::string& name : spare_folders(base)) {
    if (base.path() + "/" + name != parent.path() && is_older(base, name, keep_seconds))
      base.remove(name);
  }
}

}  // namespace

core::Result<std::string> place_tree(const std::string& path, std::span<const TreeEntry> entries,
                                     long keep_seconds) {
  core::Result<Folder> base = Folder::open_base(path);
  if (!base) return core::Errno{base.error()};
  core::Result<Folder> parent = user_folder(*base);
  if (!parent) return core::Errno{parent.error()};
  const std::string hash = tree_hash(entries);
  const std::string root = parent->path() + "/" + hash;
  if (is_usable(*parent, hash, entries)) {
    parent->set_times(hash, kTreeTime);  // changes its ctime, by which the oldest is found
    return root;
  }

  std::string fresh;
  core::Result<Folder> folder = make_new(*parent, fresh);
  int result = folder ? write_entries(*folder, entries) : -folder.error();
  if (result == 0) {
    result = parent->rename(fresh, hash);
    if (result == -EEXIST || result == -ENOTEMPTY || result == -ENOTDIR) {
      // Another process was faster, or what lies there is damaged: then out of the way with it.
      if (!is_usable(*parent, hash, entries)) {
        remove_tree(*parent, hash);
        parent->rename(fresh, hash);
      }
      result = is_usable(*parent, hash, entries) ? 0 : result;
    }
  }
  parent->remove(fresh);
  if (result < 0) return core::Errno{-result};
  remove_old(*base, *parent, hash, keep_seconds);
  return root;
}

namespace {

// Where a tree lies. Lives as long as the process, for whoever was given the path.
struct Root {
  std::string base;
  std::string path;  // empty: nowhere could be written to
  const Root* next;
};

// The user's folder of trees: one, or a few where bases or names are taken while the process runs.
struct Parent {
  std::string path;
  const Parent* next;
};

constinit std::atomic<const Parent*> all_parents{nullptr};  // a list, which only grows
constinit const Root* all_roots = nullptr;                  // the same, with `placing` held
constinit std::atomic<const Root*> current_root{nullptr};
constinit std::atomic<uint64_t> placed_version{0};  // of the devices, which `current_root` shows
constinit core::PerProcess<std::mutex> placing;     // a fork may come while a thread holds it
constinit std::atomic<bool> complained{false};

// With `placing` held. False when memory is short.
bool remember_parent(std::string_view path) {
  const Parent* first = all_parents.load(std::memory_order_relaxed);
  for (const Parent* parent = first; parent != nullptr; parent = parent->next) {
    if (parent->path == path) return true;
  }
  auto* parent = new (std::nothrow) Parent{std::string(path), first};
  if (parent != nullptr) all_parents.store(parent, std::memory_order_release);
  return parent != nullptr;
}

// The one of that path: interfaces go to and fro between few states. With `placing` held.
const Root* remember(std::string base, std::string path) {
  for (const Root* root = all_roots; root != nullptr; root = root->next) {
    if (root->path == path) return root;
  }
  if (!path.empty() && !remember_parent(std::string_view(path).substr(0, path.rfind('/'))))
    return nullptr;
  auto* root = new (std::nothrow) Root{std::move(base), std::move(path), all_roots};
  if (root != nullptr) all_roots = root;
  return root;
}

const char* reason(int error) {
  return error == EPERM ? "other users can change it, or a directory or link on the way to it"
                        : strerrordesc_np(error);
}

// Null when memory is short.
const Root* place_anywhere(std::span<const TreeEntry> entries) {
  const char* chosen = core::settings().runtime_dir;
  const char* runtime = secure_getenv("XDG_RUNTIME_DIR");
  std::string tried;
  bool lacks_descriptors = false;
  for (const char* base : {chosen, runtime, "/dev/shm", "/tmp"}) {
    if (base == nullptr || base[0] != '/') continue;
    core::Result<std::string> path = place_tree(base, entries);
    if (path) return remember(base, std::move(*path));
    lacks_descriptors = path.error() == EMFILE;
    const std::string why = std::string(base) + ": " + reason(path.error());
    if (base == chosen) {
      core::log(core::LogLevel::kWarn, "UIWARP_RUNTIME_DIR is not used, another directory is. %s",
                why.c_str());
    }
    tried += (tried.empty() ? "" : "; ") + why;
  }
  core::log(core::LogLevel::kError,
            "no RDMA device: there is no directory for the files that tell of them (%s); %s",
            tried.c_str(),
            lacks_descriptors ? "raise the limit of descriptors (ulimit -n)"
                              : "set UIWARP_RUNTIME_DIR to one that you, and you alone, may write "
                                "to");
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
  const std::vector<TreeEntry> entries = tree_content(device::devices(), device::face());
  const Root* root = nullptr;
  if (last == nullptr) {
    root = place_anywhere(entries);
  } else if (core::Result<std::string> path = place_tree(last->base, entries)) {
    root = remember(last->base, std::move(*path));
  } else if (!complained.exchange(true)) {
    core::log(core::LogLevel::kWarn,
              "changes of RDMA devices do not show: cannot write below %s: %s", last->base.c_str(),
              reason(path.error()));
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

// However many trees there have been: all of a parent's are named alike.
size_t root_length(std::string_view path) {
  for (const Parent* parent = all_parents.load(std::memory_order_acquire); parent != nullptr;
       parent = parent->next) {
    const size_t before = parent->path.size(), length = before + 1 + kDigits;
    if (path.size() > length && path[before] == '/' && path[length] == '/' &&
        path.starts_with(parent->path) && is_hexadecimal(path.substr(before + 1, kDigits)))
      return length;
  }
  return 0;
}

}  // namespace uiw::vkernel
