// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/paths.h"

#include <fcntl.h>

#include <atomic>
#include <charconv>
#include <cstring>
#include <string>
#include <vector>

#include "core/log.h"
#include "core/own_stack.h"
#include "counters/file.h"
#include "device/device.h"
#include "vkernel/counter_files.h"
#include "vkernel/raw_files.h"
#include "vkernel/tree.h"

namespace uiw::vkernel {
namespace {

constexpr std::string_view kAreas[] = {"/sys/class/infiniband", "/sys/class/infiniband_verbs",
                                       "/sys/class/misc/rdma_cm", "/dev/infiniband"};
constexpr char kRealClass[] = "/sys/class/infiniband";
constexpr std::string_view kDeviceDirectory = "/dev/infiniband/";

enum class Activity : int { kUndecided, kActive, kInactive };
constinit std::atomic<Activity> activity{Activity::kUndecided};

// `active` is a bool: whether uiwarp answers.
void decide(void* active) {
  const bool away = stays_away(core::settings().mode, kRealClass);
  const Activity decided = away || tree_root().empty() ? Activity::kInactive : Activity::kActive;
  // Several threads may come here and all decide the same; one of them says so.
  if (decided == Activity::kActive) counters::set_creator(create_counter_file);
  Activity undecided = Activity::kUndecided;
  const bool first =
      activity.compare_exchange_strong(undecided, decided, std::memory_order_acq_rel);
  if (first && away) {
    core::log(core::LogLevel::kInfo,
              "this host has RDMA devices of its own: uiwarp stays away "
              "(UIWARP_MODE=exclusive hides them and shows uiwarp's)");
  }
  *static_cast<bool*>(active) = decided == Activity::kActive;
}

}  // namespace

size_t normalise(std::string_view path, char* out, size_t out_size) {
  if (path.empty() || path[0] != '/' || out_size < 2) return 0;
  size_t length = 0;  // of what is in `out`, which never ends in '/' during the loop
  size_t at = 0;
  bool names_directory = false;  // ends in "/", "/." or "/.."
  while (at < path.size()) {
    const size_t start = path.find_first_not_of('/', at);
    if (start == std::string_view::npos) {
      names_directory = true;
      break;
    }
    size_t end = path.find('/', start);
    if (end == std::string_view::npos) end = path.size();
    const std::string_view part = path.substr(start, end - start);
    at = end;
    names_directory = part == "." || part == "..";
    if (part == ".") continue;
    if (part == "..") {
      while (length > 0 && out[--length] != '/') {
      }
      continue;
    }
    if (length + 1 + part.size() + 2 > out_size) return 0;
    out[length++] = '/';
    std::memcpy(out + length, part.data(), part.size());
    length += part.size();
  }
  if (names_directory || length == 0) out[length++] = '/';
  out[length] = 0;
  return length;
}

bool is_rdma_path(std::string_view normalised) {
  for (std::string_view area : kAreas) {
    if (normalised.starts_with(area) &&
        (normalised.size() == area.size() || normalised[area.size()] == '/')) {
      return true;
    }
  }
  return false;
}

DeviceNode device_node(std::string_view normalised, uint32_t& minor) {
  constexpr std::string_view kUverbs = "uverbs";
  if (!normalised.starts_with(kDeviceDirectory)) return DeviceNode::kNone;
  std::string_view name = normalised.substr(kDeviceDirectory.size());
  if (name == "rdma_cm") return DeviceNode::kRdmaCm;
  if (!name.starts_with(kUverbs)) return DeviceNode::kNone;
  name.remove_prefix(kUverbs.size());
  const auto parsed = std::from_chars(name.begin(), name.end(), minor);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == name.end() && name[0] != '0';
  return is_number && device::find_by_minor(minor) != nullptr ? DeviceNode::kUverbs
                                                              : DeviceNode::kNone;
}

bool lists_devices(std::string_view normalised) {
  if (normalised.ends_with('/')) normalised.remove_suffix(1);
  return normalised == "/sys/class/infiniband_verbs" || normalised == "/sys/class/infiniband" ||
         normalised == "/dev/infiniband";
}

bool stays_away(core::HostMode mode, const char* real_class) {
  if (mode == core::HostMode::kExclusive) return false;
  std::vector<std::string> names;
  return raw::list_directory(AT_FDCWD, real_class, names) == 0 && !names.empty();
}

bool is_active() {
  const Activity known = activity.load(std::memory_order_acquire);
  if (known != Activity::kUndecided) return known == Activity::kActive;
  // Asks for interfaces and writes a tree, for a program that has called no more than open().
  constexpr size_t kEnough = 64 * 1024, kStack = 256 * 1024;
  bool active = false;
  core::run_with_enough_stack(kEnough, kStack, decide, &active);
  return active;
}

}  // namespace uiw::vkernel
