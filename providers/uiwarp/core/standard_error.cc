// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/standard_error.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>

#include "core/clock.h"
#include "core/no_cancellation.h"
#include "core/raw_sys.h"

namespace uiw::core {
namespace {

// How long to wait for a slow reader before it counts as one that does not read.
constexpr Nanoseconds kPatience = 200 * kMillisecond;

// While this object lives, signals caused by our write() do not reach the program.
class NoSignalOfWrite {
 public:
  NoSignalOfWrite() {
    sigemptyset(&of_write_);
    sigaddset(&of_write_, SIGPIPE);
    sigaddset(&of_write_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &of_write_, &before_);
    sigset_t pending;
    sigpending(&pending);
    // Signals that were pending before are left to the program.
    if (sigismember(&pending, SIGPIPE)) sigdelset(&of_write_, SIGPIPE);
    if (sigismember(&pending, SIGXFSZ)) sigdelset(&of_write_, SIGXFSZ);
  }
  ~NoSignalOfWrite() {
    const int before = errno;
    constexpr timespec kNow{};
    while (sigtimedwait(&of_write_, nullptr, &kNow) > 0) {
    }
    errno = before;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSignalOfWrite(const NoSignalOfWrite&) = delete;

 private:
  sigset_t of_write_, before_;
};

constinit std::atomic<bool> g_nobody_reads{false};

}  // namespace

void write_to_standard_error(std::string_view text) {
  const NoCancellation whole;  // sigtimedwait() is a cancellation point
  const NoSignalOfWrite quiet;
  // One time limit for everything, no matter how often a signal handler runs.
  const Nanoseconds end = now() + (g_nobody_reads.load(std::memory_order_relaxed) ? 0 : kPatience);
  while (!text.empty()) {
    const long ready = sys::wait_writable(STDERR_FILENO, std::max<Nanoseconds>(end - now(), 0));
    if (ready == -EINTR) continue;
    // An error of ppoll(), as with RLIMIT_NOFILE of 0, does not mean that there is no room.
    const bool has_room = ready != 0;
    g_nobody_reads.store(!has_room, std::memory_order_relaxed);
    if (!has_room) return;
    // A pipe that is writable takes this much at once.
    const std::string_view part = text.substr(0, PIPE_BUF);
    const long written = sys::write(STDERR_FILENO, part.data(), part.size());
    if (written == -EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace uiw::core
