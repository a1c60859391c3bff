// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/port_counters.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "core/file_limit.h"
#include "core/raw_sys.h"
#include "device/device.h"
#include "vkernel/counter_files.h"

namespace uiw::vkernel {
namespace {

using counters::Row;

// What is called data the kernel counts in units of 4 octets
// (Documentation/ABI/stable/sysfs-class-infiniband).
constexpr PortCounter kPortCounters[] = {
    {"counters/port_rcv_data", &Row::bytes_received, 4},
    {"counters/port_xmit_data", &Row::bytes_sent, 4},
    {"hw_counters/bytes_received", &Row::bytes_received, 1},
    {"hw_counters/bytes_sent", &Row::bytes_sent, 1},
    {"hw_counters/completed_receives", &Row::completed_receives, 1},
    {"hw_counters/completed_sends", &Row::completed_sends, 1},
    {"hw_counters/failed_receives", &Row::failed_receives, 1},
    {"hw_counters/failed_sends", &Row::failed_sends, 1},
    {"hw_counters/posted_receives", &Row::posted_receives, 1},
    {"hw_counters/posted_sends", &Row::posted_sends, 1},
    {"hw_counters/rnr_waits", &Row::rnr_waits, 1},
};

constexpr std::string_view kDevices = "/sys/class/infiniband/", kPort = "/ports/1/";

// A file of that text that cannot be changed.
int file_of(const std::string& text, int flags) {
  const unsigned kind = MFD_ALLOW_SEALING | ((flags & O_CLOEXEC) ? MFD_CLOEXEC : 0u);
  const int saved = errno;
  const int fd = memfd_create("uiwarp-counter", kind);
  const int error = errno;
  errno = saved;
  if (fd < 0) return -error;
  if (!core::may_write_up_to(text.size()) ||
      core::sys::pwrite(fd, text.data(), text.size(), 0) != static_cast<long>(text.size())) {
    core::sys::close(fd);
    return -EIO;
  }
  core::sys::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  return fd;
}

}  // namespace

std::span<const PortCounter> port_counters() {
  return kPortCounters;
}

uint64_t value_of(const PortCounter& counter, std::span<const Row> counted,
                  std::string_view device) {
  for (const Row& row : counted)
    if (row.device == device) return row.*counter.value / counter.unit;
  return 0;
}

int open_port_counter(std::string_view normalised, int flags) {
  if ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0) return kNoCounter;
  if (!normalised.starts_with(kDevices)) return kNoCounter;
  normalised.remove_prefix(kDevices.size());
  const size_t end = normalised.find('/');
  if (end == std::string_view::npos || !normalised.substr(end).starts_with(kPort))
    return kNoCounter;
  const std::string device(normalised.substr(0, end));
  const std::string_view name = normalised.substr(end + kPort.size());
  for (const PortCounter& counter : kPortCounters) {
    if (name != counter.path) continue;
    if (device::find_by_name(device.c_str()) == nullptr) return kNoCounter;
    const uint64_t value = value_of(counter, counted_by_device(), device);
    return file_of(std::to_string(value) + "\n", flags);
  }
  return kNoCounter;
}

}  // namespace uiw::vkernel
