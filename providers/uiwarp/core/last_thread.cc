// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/last_thread.h"

#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "core/own_thread.h"
#include "core/raw_sys.h"
#include "core/read_file.h"
#include "core/tuning.h"

namespace uiw::core {
namespace {

enum class Task {
  kProgram,
  kOurs,   // or a worker of io_uring
  kEnded,  // such as main()'s, which the kernel keeps until the others have ended
};

// /proc/self/task/TID/stat: "TID (name) S ...".
Task task_of(const char* tid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%s/stat", tid);
  char room[128];
  const std::string_view text = beginning_of(path, room);
  if (text.empty()) return Task::kEnded;
  const size_t from = text.find('('), to = text.rfind(") ");
  if (from == text.npos || to == text.npos || to + 2 >= text.size()) return Task::kProgram;
  const char state = text[to + 2];
  if (state == 'Z' || state == 'X') return Task::kEnded;
  const std::string_view name = text.substr(from + 1, to - from - 1);
  return is_own_thread(name) || name.starts_with("iou-") ? Task::kOurs : Task::kProgram;
}

// How many threads of the program run, counted up to `most`, which is the answer also where the
// kernel does not say.
unsigned programs_threads(unsigned most) {
  DIR* const tasks = opendir("/proc/self/task");
  if (!tasks) return most;
  unsigned found = 0;
  while (const dirent* const entry = found == most ? nullptr : readdir(tasks))
    found += entry->d_name[0] != '.' && task_of(entry->d_name) == Task::kProgram ? 1 : 0;
  closedir(tasks);
  return found;
}

void wait_for_the_last(void*) {
  constexpr timespec kPause{0, tuning::kLastThreadLook};
  while (programs_threads(1) > 0) nanosleep(&kPause, nullptr);
  std::exit(0);
}

void on_end(void*) {
  static std::atomic<bool> waits{false};
  char leader[16];
  std::snprintf(leader, sizeof leader, "%d", getpid());
  if (sys::gettid() != getpid() && task_of(leader) != Task::kEnded) return;
  if (!waits.exchange(true)) start_thread(OwnThread::kLast, wait_for_the_last, nullptr);
}

}  // namespace

void end_with_last_thread() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static pthread_key_t key;
  static bool is_valid;
  pthread_once(&once, [] { is_valid = pthread_key_create(&key, on_end) == 0; });
  if (is_valid) pthread_setspecific(key, &key);
}

bool program_has_one_thread() {
  return programs_threads(2) == 1;
}

}  // namespace uiw::core
