// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/settings.h"
#include "descriptor.h"

namespace uiw::tool {
namespace {

// Of one folder; another user may have put there what he likes.
constexpr size_t kMostNames = 1u << 14;

std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  const int copy = dup(folder);
  DIR* const directory = copy < 0 ? nullptr : fdopendir(copy);
  if (!directory) {
    if (copy >= 0) close(copy);
    return names;
  }
  while (const dirent* entry = readdir(directory)) {
    if (names.size() == kMostNames) break;
    names.emplace_back(entry->d_name);
  }
  closedir(directory);
  return names;
}

// Links are not followed, and nothing waits for what is no plain file.
int open_in(int folder, const char* name, int flags) {
  return openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags);
}

// Who holds it; 0: nobody, or nobody of this PID namespace.
pid_t holder(int fd) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return 0;
  return std::max(lock.l_pid, 0);
}

void find_in(int counters, std::vector<Process>& found) {
  for (const std::string& name : names_in(counters)) {
    if (name.size() != 16 || name.find_first_not_of("0123456789abcdef") != std::string::npos)
      continue;
    const Descriptor file(open_in(counters, name.c_str(), 0));
    struct stat status;
    if (file.get() < 0 || fstat(file.get(), &status) != 0) continue;
    const pid_t pid = holder(file.get());
    // One for each: thousands of names may be those of one large file.
    const bool is_known =
        std::ranges::any_of(found, [pid](const Process& other) { return other.pid == pid; });
    counters::Snapshot snapshot;
    if (pid == 0 || is_known || !counters::read(file.get(), snapshot)) continue;
    found.push_back({pid, status.st_uid, std::move(snapshot.program), std::move(snapshot.rows)});
  }
}

void add_once(std::vector<std::string>& list, const char* path) {
  if (path && path[0] == '/' && std::find(list.begin(), list.end(), path) == list.end())
    list.emplace_back(path);
}

}  // namespace

std::vector<Process> find_processes(const std::vector<std::string>& folders) {
  std::vector<Process> found;
  for (const std::string& path : folders) {
    const Descriptor base(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (base.get() < 0) continue;
    for (const std::string& name : names_in(base.get())) {
      if (!name.starts_with("uiwarp-")) continue;
      const Descriptor folder(open_in(base.get(), name.c_str(), O_DIRECTORY));
      if (folder.get() < 0) continue;
      const Descriptor counters(open_in(folder.get(), "counters", O_DIRECTORY));
      if (counters.get() >= 0) find_in(counters.get(), found);
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Process& a, const Process& b) { return a.pid < b.pid; });
  return found;
}

std::vector<std::string> runtime_folders() {
  std::vector<std::string> folders;
  add_once(folders, core::settings().runtime_dir);
  add_once(folders, getenv("XDG_RUNTIME_DIR"));
  add_once(folders, "/dev/shm");
  add_once(folders, "/tmp");
  if (geteuid() != 0) return folders;
  const Descriptor users(open("/run/user", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (users.get() < 0) return folders;
  for (const std::string& name : names_in(users.get()))
    if (name[0] != '.') add_once(folders, ("/run/user/" + name).c_str());
  return folders;
}

}  // namespace uiw::tool
