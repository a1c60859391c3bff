// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/steering.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "core/raw_sys.h"

namespace uiw::engine {
namespace {

constexpr uint64_t kSliceNanoseconds = 100'000;

// struct sched_attr of Linux, first version; glibc 2.36 declares neither it nor its calls.
struct SchedAttributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime;  // for the fair policies: the time slice
  uint64_t deadline;
  uint64_t period;
};

}  // namespace

Steering::Steering(bool follow) {
  follow_ = follow && original_.read(0);
  if (follow_) sleeps_ = sleeps_so_far();
}

uint64_t Steering::sleeps_so_far() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_nvcsw);
}

Placement::Action Steering::turn(uint64_t delivered, uint64_t sent, int fd) {
  if (!follow_ || !placement_.turn(delivered, sent)) return Placement::Action::kStay;
  Placement::Window window;
  const uint64_t total = sleeps_so_far();
  window.sleeps = static_cast<uint32_t>(total - std::exchange(sleeps_, total));
  socklen_t size = sizeof window.packets_cpu;
  if (core::sys::getsockopt(fd, SOL_SOCKET, SO_INCOMING_CPU, &window.packets_cpu, &size) < 0)
    window.packets_cpu = -1;
  window.own_cpu = sched_getcpu();
  window.ping_pong = placement_.unclear(window) && is_ping_pong(fd);
  if (placement_.together(window)) {
    window.waited = had_to_wait();
  } else {
    run_time_.reset();
  }
  const Placement::Decision decision = placement_.judge(window);
  switch (decision.action) {
    case Placement::Action::kFollow:
      if (!follow(decision.cpu)) {
        placement_.follow_failed(decision.cpu);
        return Placement::Action::kStay;
      }
      break;
    case Placement::Action::kKeepAway:
      keep_away(decision.cpu);
      break;
    case Placement::Action::kStay:
      break;
  }
  return decision.action;
}

// Whether `fd` has sent at least half as many bytes as it received since the last call for it.
bool Steering::is_ping_pong(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (core::sys::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0) return false;
  const Carried now{info.tcpi_bytes_received, info.tcpi_bytes_acked};
  Carried before = std::exchange(carried_, now);
  // This is another connection, even if it has the same number.
  if (std::exchange(asked_, fd) != fd || now.received < before.received ||
      now.acknowledged < before.acknowledged)
    before = {};
  return now.acknowledged - before.acknowledged >= (now.received - before.received) / 2;
}

// Whether, in the window that ends now, the thread waited for a CPU for more than a quarter of the
// time that it ran. False for the first of consecutive windows.
bool Steering::had_to_wait() {
  const auto before = std::exchange(run_time_, core::run_time());
  if (!before || !run_time_) return false;
  return run_time_->waited - before->waited > (run_time_->ran - before->ran) / 4;
}

// If something else changed the thread's CPUs (a cpuset, taskset), adopts that as the new limit.
bool Steering::learn_limits() {
  core::CpuMask now;
  if (!now.read(0)) return false;
  if (now != ours_) original_ = now;
  return true;
}

bool Steering::follow(int cpu) {
  if (!learn_limits()) return false;
  core::CpuMask wanted;
  if (original_.contains(cpu)) {
    wanted.add(cpu);
    if (wanted.write()) {
      ours_ = wanted;
      return true;
    }
  }
  if (original_.write()) ours_ = original_;
  return false;
}

void Steering::keep_away(int cpu) {
  if (!learn_limits()) return;
  core::CpuMask wanted = original_;
  wanted.remove(cpu);
  if (wanted == core::CpuMask{}) wanted = original_;
  if (wanted.write()) ours_ = wanted;
}

void Steering::shorten_slice() {
  SchedAttributes attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER && attributes.policy != SCHED_BATCH) return;
  attributes.size = sizeof attributes;
  attributes.runtime = kSliceNanoseconds;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace uiw::engine
