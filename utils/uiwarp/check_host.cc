// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <errno.h>
#include <linux/io_uring.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "checks.h"
#include "core/settings.h"

namespace uiw::tool {
namespace {

// The first line of a file, or empty.
std::string line_of(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

void check_kernel(Report& report) {
  utsname name = {};
  int major = 0, minor = 0;
  if (uname(&name) == 0) {
    report.version("kernel", name.release);
    report.version("architecture", name.machine);
  }
  if (sscanf(name.release, "%d.%d", &major, &minor) != 2) {
    report.warn("kernel", "kernel version unknown", "uiwarp is made for Linux 6.1 or newer.");
    return;
  }
  const std::string what = std::string("kernel ") + name.release;
  if (major > 5 || (major == 5 && minor >= 19))
    report.ok("kernel", what);
  else
    report.warn("kernel", what + " is older than 5.19",
                "The io_uring of this kernel lacks what uiwarp needs: uiwarp will use epoll, which "
                "is slower.");
}

// Is a seccomp filter active in this process?
bool filtered() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("Seccomp:", 0) == 0) return line.find('2') != std::string::npos;
  }
  return false;
}

// Why io_uring failed with `error`, and what would change it.
std::string cure(int error) {
  const std::string disabled = line_of("/proc/sys/kernel/io_uring_disabled");
  if (error == ENOSYS)
    return "The kernel was built without io_uring, or a seccomp filter hides it "
           "(containers: --security-opt seccomp=unconfined, or a profile that allows io_uring_*).";
  if (error == EPERM && (disabled == "1" || disabled == "2"))
    return "kernel.io_uring_disabled is " + disabled +
           ". As root: sysctl kernel.io_uring_disabled=0 (or, for 1, join the group in "
           "kernel.io_uring_group).";
  if ((error == EPERM || error == EACCES) && filtered())
    return "A seccomp filter forbids it, as in Docker's default profile: run the container with "
           "--security-opt seccomp=unconfined, or with a profile that allows io_uring_setup, "
           "io_uring_enter and io_uring_register.";
  if (error == EINVAL) return "The kernel's io_uring is too old: use Linux 5.19 or newer.";
  return "Look for a security module, or a limit (ulimit -l, ulimit -n), that forbids it.";
}

// 0, or what the first of its three calls that is refused says: a filter may list some of them.
int try_io_uring() {
  io_uring_params params = {};
  params.flags = IORING_SETUP_COOP_TASKRUN;
  const long fd = syscall(SYS_io_uring_setup, 8, &params);
  if (fd < 0) return errno;
  io_uring_probe probe = {};
  const bool works = syscall(SYS_io_uring_register, fd, IORING_REGISTER_PROBE, &probe, 0) >= 0 &&
                     syscall(SYS_io_uring_enter, fd, 0, 0, 0, nullptr, 0) >= 0;
  const int error = works ? 0 : errno;
  close(static_cast<int>(fd));
  return error;
}

void check_io_uring(Report& report) {
  const core::EngineKind engine = core::settings().engine;
  if (engine == core::EngineKind::kEpoll) {
    report.ok("engine", "engine: epoll (UIWARP_ENGINE)");
    return;
  }
  const int error = try_io_uring();
  if (error == 0) {
    report.ok("engine", "engine: io_uring");
    return;
  }
  const std::string what = std::string("io_uring refused: ") + strerror(error);
  if (engine == core::EngineKind::kIoUring)
    report.fail("engine", what, cure(error) + " Or unset UIWARP_ENGINE, which asks for it.");
  else
    report.warn("engine", what + ": the engine will use epoll, which is slower", cure(error));
}

void check_limits(Report& report) {
  rlimit files = {}, memory = {};
  getrlimit(RLIMIT_NOFILE, &files);
  getrlimit(RLIMIT_MEMLOCK, &memory);
  const std::string count = std::to_string(files.rlim_cur);
  if (files.rlim_cur < 256)
    report.warn("open_files", "only " + count + " open files allowed",
                "Every queue pair needs a TCP connection. Raise the limit: ulimit -n 4096.");
  else
    report.ok("open_files", "open files: " + count);
  // libibverbs prints a warning of its own at 32 KiB and below; uiwarp pins nothing.
  if (geteuid() != 0 && memory.rlim_cur <= 32768)
    report.warn("locked_memory",
                "locked memory limited to " + std::to_string(memory.rlim_cur) + " bytes",
                "uiwarp does not need more, but libibverbs will print a warning. Raise the limit: "
                "ulimit -l unlimited.");
  else
    report.ok("locked_memory", memory.rlim_cur == RLIM_INFINITY
                                   ? std::string("locked memory: unlimited (uiwarp pins nothing)")
                                   : "locked memory: " + std::to_string(memory.rlim_cur / 1024) +
                                         " KiB (uiwarp pins nothing)");
}

void check_tcp(Report& report) {
  const std::string control = line_of("/proc/sys/net/ipv4/tcp_congestion_control");
  const std::string allowed =
      " " + line_of("/proc/sys/net/ipv4/tcp_allowed_congestion_control") + " ";
  if (control == "bbr" && allowed.find(" reno ") == std::string::npos)
    report.warn("congestion_control", "congestion control is bbr and reno is not allowed",
                "bbr limits even loopback to half its bandwidth. As root: sysctl "
                "net.ipv4.tcp_allowed_congestion_control='reno bbr'.");
  else
    report.ok("congestion_control",
              "congestion control: " + control +
                  (control == "reno" ? "" : "; connections within this host use reno"));
}

}  // namespace

void check_host(Report& report) {
  check_kernel(report);
  check_io_uring(report);
  check_limits(report);
  check_tcp(report);
}

}  // namespace uiw::tool
