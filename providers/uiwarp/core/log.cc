// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/raw_sys.h"
#include "core/settings.h"
#include "core/standard_error.h"

namespace uiw::core {
namespace {

constexpr char kPrefix[] = "uiwarp: ";
constexpr size_t kPrefixSize = sizeof kPrefix - 1;
constexpr size_t kMaxLine = 1024;  // longer messages are cut off, but keep their newline

// Whether lines are records of a log, with time and process, rather than plain messages for the
// user: in a file, or if more than warnings are shown.
bool is_record() {
  return settings().log_file[0] != 0 || log_enabled(LogLevel::kInfo);
}

// "2026-11-29T02:40:01.123Z uiwarp[4711] debug: ". UTC, by arithmetic: the C library's calendar
// takes a lock and reads files. Returns its size.
size_t put_stamp(char* out, size_t room, LogLevel level) {
  constexpr const char* kNames[] = {"error", "warn", "info", "debug"};
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const std::chrono::sys_seconds time{std::chrono::seconds(now.tv_sec)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  const int size = std::snprintf(
      out, room,
      "%04d-%02u-%02uT%02ld:%02ld:%02ld.%03ldZ uiwarp[%d] %s: ", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<long>(clock.hours().count()), static_cast<long>(clock.minutes().count()),
      static_cast<long>(clock.seconds().count()), now.tv_nsec / 1'000'000, getpid(),
      kNames[static_cast<int>(level)]);
  return static_cast<size_t>(size);
}

// UIWARP_LOG_FILE with each %p replaced by the process id; cut off if too long.
void put_path(char* out, size_t room) {
  std::string_view rest = settings().log_file;
  char pid[16];
  std::snprintf(pid, sizeof pid, "%d", getpid());
  const auto put = [&](std::string_view text) {
    const size_t size = text.copy(out, room - 1);
    out += size;
    room -= size;
  };
  for (size_t at; (at = rest.find("%p")) != rest.npos; rest.remove_prefix(at + 2)) {
    put(rest.substr(0, at));
    put(pid);
  }
  put(rest);
  *out = 0;
}

// Returns a descriptor or -errno. Refuses symbolic links and files of other users: they could make
// us write to a place of their choice, and could read the messages. A FIFO without a reader does
// not block.
int open_log(const char* path) {
  const int fd = sys::open(
      path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW, 0600);
  if (fd < 0) return fd;
  struct stat file {};
  if (fstat(fd, &file) == 0 && (file.st_uid == geteuid() || file.st_uid == 0)) return fd;
  sys::close(fd);
  return -EPERM;
}

void tell_once(const char* path, int error) {
  static constinit std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  const char* const why = error == ELOOP   ? "it is a symbolic link: name the file itself"
                          : error == EPERM ? "it is another user's"
                                           : strerrordesc_np(error);
  log_unfiltered("UIWARP_LOG_FILE: %s: %s; messages go to standard error", path, why);
}

// Opens the file for each line, as the program or its child may close a descriptor that we keep.
// False: the reason was logged.
bool write_to_file(const char* line, size_t size) {
  char path[Settings::kLongestPath + 32];
  put_path(path, sizeof path);
  const int fd = open_log(path);
  long written = fd;
  if (fd >= 0) {
    written = sys::write(fd, line, size);
    sys::close(fd);
  }
  if (written < 0) tell_once(path, static_cast<int>(-written));
  return written >= 0;
}

enum class To { kUser, kLog };

void write_line(To to, LogLevel level, const char* format, va_list arguments) {
  char line[kMaxLine];
  size_t size = kPrefixSize;
  if (to == To::kLog)
    size = put_stamp(line, sizeof line, level);
  else
    std::memcpy(line, kPrefix, kPrefixSize);
  const size_t room = sizeof line - size - 1;
  const int wanted = std::vsnprintf(line + size, room, format, arguments);
  if (wanted < 0) return;
  size += std::min(static_cast<size_t>(wanted), room - 1);
  line[size++] = '\n';
  if (to == To::kLog && settings().log_file[0] != 0 && write_to_file(line, size)) return;
  write_to_standard_error({line, size});
}

}  // namespace

bool log_enabled(LogLevel level) {
  return static_cast<int>(level) <= settings().log_level;
}

void log(LogLevel level, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  log_with(level, format, arguments);
  va_end(arguments);
}

void log_with(LogLevel level, const char* format, va_list arguments) {
  if (log_enabled(level)) write_line(is_record() ? To::kLog : To::kUser, level, format, arguments);
}

void log_unfiltered(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_line(To::kUser, LogLevel::kError, format, arguments);
  va_end(arguments);
}

}  // namespace uiw::core
