// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <utility>
#include <vector>

#include "core/descriptors.h"
#include "core/file_limit.h"
#include "core/raw_sys.h"
#include "vkernel/raw_files.h"

namespace uiw::vkernel {
namespace {

namespace sys = core::sys;

constexpr unsigned kDirectoryMode = 0755;
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
// How the kernel shows owners that the user namespace does not know (user_namespaces(7)).
constexpr uid_t kUnknownUser = 65534;

bool is_mapped(uid_t uid) {
  char text[4096];
  const int fd = sys::open("/proc/thread-self/uid_map", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  const long size = sys::read(fd, text, sizeof text - 1);
  sys::close(fd);
  text[size > 0 ? size : 0] = 0;
  unsigned first, outside, count;
  int length;
  for (const char* at = text; std::sscanf(at, "%u %u %u%n", &first, &outside, &count, &length) == 3;
       at += length) {
    if (uid - first < count) return true;
  }
  return false;
}

// Root, who may do everything anyway, or this user. In a user namespace that does not know root,
// root's directories are those of an unknown user, as /tmp is there.
bool is_trusted(uid_t uid) {
  return uid == 0 || uid == geteuid() || (uid == kUnknownUser && !is_mapped(uid));
}

// Whether nobody else can rename or remove what this user or root has made in a directory: in a
// sticky one only the owners can.
bool keeps_entries(const struct stat& status) {
  return is_trusted(status.st_uid) &&
         ((status.st_mode & kOthersWrite) == 0 || (status.st_mode & S_ISVTX) != 0);
}

// The same for a directory above. Many users' own have a group of their own, which may write.
bool keeps_directories(const struct stat& status) {
  struct stat without = status;
  if (status.st_uid == geteuid()) without.st_mode &= ~static_cast<mode_t>(S_IWGRP);
  return keeps_entries(without);
}

// As many links as the kernel follows.
constexpr int kMostLinks = 40;

}  // namespace

Folder::~Folder() {
  if (fd_ >= 0) sys::close(fd_);
}

// From / downwards: when an entry is looked at, nobody can exchange it any more, be it a directory
// or a link.
core::Result<Folder> Folder::open_base(const std::string& path) {
  const int root = sys::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return core::Errno{-root};
  std::vector<Folder> way;  // what ".." goes back
  way.push_back(Folder(root, ""));
  std::string rest = path;
  int links = 0;
  for (;;) {
    Folder& at = way.back();
    struct stat status;
    if (int result = sys::fstat(at.fd_, &status); result < 0) return core::Errno{-result};
    const size_t start = rest.find_first_not_of('/');
    if (start == std::string::npos) {
      if (!keeps_entries(status)) return core::Errno{EPERM};
      return std::move(at);
    }
    if (!keeps_directories(status)) return core::Errno{EPERM};
    const size_t end = std::min(rest.find('/', start), rest.size());
    const std::string name = rest.substr(start, end - start);
    rest.erase(0, end);
    if (name == ".") continue;
    if (name == "..") {
      if (way.size() > 1) way.pop_back();
      continue;
    }
    if (int result = at.status(name, status); result < 0) return core::Errno{-result};
    if (!S_ISLNK(status.st_mode)) {
      core::Result<Folder> next = at.open(name);
      if (!next) return next;
      way.push_back(std::move(*next));
      continue;
    }
    if (!is_trusted(status.st_uid)) return core::Errno{EPERM};
    if (++links > kMostLinks) return core::Errno{ELOOP};
    char target[PATH_MAX];
    const long size = raw::readlink(at.fd_, name.c_str(), target, sizeof target);
    if (size < 0) return core::Errno{static_cast<int>(-size)};
    if (size == 0 || size == sizeof target) return core::Errno{ENAMETOOLONG};
    rest.insert(0, target, static_cast<size_t>(size));
    if (target[0] == '/') way.erase(way.begin() + 1, way.end());
  }
}

core::Result<Folder> Folder::open(const std::string& name) const {
  const int fd = raw::open(fd_, name.c_str(), O_PATH | O_DIRECTORY);
  if (fd < 0) return core::Errno{-fd};
  return Folder(fd, path_ + "/" + name);
}

core::Result<Folder> Folder::hold(const std::string& name) const {
  const int fd = raw::open(fd_, name.c_str(), O_RDONLY | O_DIRECTORY);
  if (fd < 0) return core::Errno{-fd};
  Folder folder(fd, path_ + "/" + name);
  if (int result = raw::flock(fd, LOCK_EX | LOCK_NB); result < 0) return core::Errno{-result};
  // Whoever held it before may have removed it.
  struct stat held, there;
  if (sys::fstat(fd, &held) < 0 || status(name, there) < 0 || held.st_ino != there.st_ino)
    return core::Errno{ENOENT};
  return folder;
}

core::Result<Folder> Folder::make(const std::string& name) const {
  if (int result = make_directory(name); result < 0) return core::Errno{-result};
  return open(name);
}

int Folder::make_directory(const std::string& name) const {
  if (int result = raw::mkdir(fd_, name.c_str(), kDirectoryMode); result < 0) return result;
  // It is ours and stays where it is (open_base), so no link has come in its place.
  return raw::chmod(fd_, name.c_str(), kDirectoryMode);
}

int Folder::make_file(const std::string& name, std::string_view content, unsigned mode) const {
  if (!core::may_write_up_to(content.size())) return -EFBIG;
  const int fd = raw::open(fd_, name.c_str(), O_WRONLY | O_CREAT | O_EXCL, mode);
  if (fd < 0) return fd;
  const long written = sys::write(fd, content.data(), content.size());
  sys::close(fd);
  if (written < 0) return static_cast<int>(written);
  if (static_cast<size_t>(written) != content.size()) return -ENOSPC;
  return raw::chmod(fd_, name.c_str(), mode);
}

core::Result<int> Folder::open_file(const std::string& name, int flags, unsigned mode) const {
  const int fd = raw::open(fd_, name.c_str(), flags, mode);
  if (fd < 0) return core::Errno{-fd};
  core::adopt_descriptor(fd);
  return fd;
}

int Folder::make_link(const std::string& name, const std::string& target) const {
  return raw::symlink(target.c_str(), fd_, name.c_str());
}

int Folder::set_times(const std::string& name, long seconds) const {
  return raw::set_times(fd_, name.c_str(), seconds);
}

int Folder::rename(const std::string& from, const std::string& to) const {
  return raw::rename(fd_, from.c_str(), to.c_str());
}

void Folder::remove(const std::string& name) const {
  if (raw::unlink(fd_, name.c_str()) == 0) return;
  if (core::Result<Folder> folder = open(name)) {
    for (const std::string& inside : folder->names()) folder->remove(inside);
    raw::unlink(fd_, name.c_str(), AT_REMOVEDIR);
  }
}

int Folder::status(const std::string& name, struct stat& out) const {
  return raw::lstat(fd_, name.c_str(), &out);
}

std::vector<std::string> Folder::names() const {
  std::vector<std::string> found;
  raw::list_directory(fd_, ".", found);
  return found;
}

bool Folder::is_ours_alone() const {
  struct stat status;
  return sys::fstat(fd_, &status) == 0 && status.st_uid == geteuid() &&
         (status.st_mode & kOthersWrite) == 0;
}

}  // namespace uiw::vkernel
