// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Directories by their descriptors. A path is looked up anew at each call, and between two calls
// another user may put a link in place of one of its parts; what a descriptor names stays the same.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"

struct stat;

namespace uiw::vkernel {

// An open directory. Names are of its entries, or paths below it of which this user made every
// part; links are never followed. Calls return 0 or -errno. Not thread-safe.
class Folder {
 public:
  // The directory to which an absolute path leads, links followed. EPERM: a user other than this
  // one and root could put another in its place, or rename or remove what we make in it: it, a
  // directory or link on the way to it is theirs, or others may write there and it is not sticky
  // (as /tmp is). ELOOP: too many links.
  static core::Result<Folder> open_base(const std::string& path);

  Folder(Folder&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}
  Folder& operator=(Folder&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(path_, other.path_);
    return *this;
  }
  ~Folder();

  // Absolute and without links, as long as nobody renames.
  const std::string& path() const { return path_; }

  core::Result<Folder> open(const std::string& name) const;
  // The same, held until it is destroyed or the process ends: in the meantime nobody else gets it
  // by this call. EWOULDBLOCK: somebody holds it. ENOENT: it is not there any more. A fork's child
  // holds it too.
  core::Result<Folder> hold(const std::string& name) const;
  // A new one with mode 0755, whatever the umask. EEXIST: there is something of that name.
  core::Result<Folder> make(const std::string& name) const;
  int make_directory(const std::string& name) const;
  // EFBIG: it is larger than RLIMIT_FSIZE.
  int make_file(const std::string& name, std::string_view content, unsigned mode) const;
  // A descriptor, of the stack's own. `flags` as of open().
  core::Result<int> open_file(const std::string& name, int flags, unsigned mode = 0) const;
  int make_link(const std::string& name, const std::string& target) const;
  int set_times(const std::string& name, long seconds) const;
  int rename(const std::string& from, const std::string& to) const;
  // A directory with all that is in it; whatever cannot be removed stays.
  void remove(const std::string& name) const;

  int status(const std::string& name, struct stat& out) const;
  std::vector<std::string> names() const;
  // Whether it belongs to this user and nobody else may write to it.
  bool is_ours_alone() const;

 private:
  Folder(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  int fd_;  // O_PATH unless it is held
  std::string path_;
};

}  // namespace uiw::vkernel
