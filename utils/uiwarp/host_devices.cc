// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "host_devices.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/settings.h"

namespace uiw::tool {

std::string host_devices() {
  std::string names;
  // Not opendir(), behind which our own devices may stand.
  const long fd =
      syscall(SYS_openat, AT_FDCWD, "/sys/class/infiniband", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return names;
  DIR* directory = fdopendir(static_cast<int>(fd));
  if (directory == nullptr) {
    close(static_cast<int>(fd));
    return names;
  }
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') names += std::string(" ") + entry->d_name;
  }
  closedir(directory);
  return names;
}

bool stays_away() {
  return core::settings().mode == core::HostMode::kAuto && !host_devices().empty();
}

}  // namespace uiw::tool
