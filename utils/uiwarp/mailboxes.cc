// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "mailboxes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string_view>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "descriptor.h"

namespace uiw::tool {
namespace {

using faults::Mailbox;
using faults::Turn;

// In all, for other commands that ask the same process, and for its answer.
constexpr core::Nanoseconds kLimit = 5 * core::kSecond;
// How long it is waited until what the process does is looked at again.
constexpr core::Nanoseconds kLook = 100 * core::kMillisecond;

std::string below_proc(pid_t pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

// What follows that word in /proc/PID/status.
std::string status_line(pid_t pid, const std::string& word) {
  std::ifstream file(below_proc(pid, "status"));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(word + ":")) return line.substr(word.size() + 1);
  return "";
}

// The number by which the process knows itself, in the innermost of its PID namespaces.
pid_t own_number(pid_t pid) {
  const std::string numbers = status_line(pid, "NSpid");
  const size_t last = numbers.find_last_of("\t ");
  pid_t number = pid;
  if (last != numbers.npos)
    std::from_chars(numbers.data() + last + 1, numbers.data() + numbers.size(), number);
  return number;
}

char state_of(pid_t pid) {
  const std::string state = status_line(pid, "State");
  const size_t at = state.find_first_not_of("\t ");
  return at == state.npos ? 'X' : state[at];
}
bool has_ended(pid_t pid) {
  return std::strchr("ZX", state_of(pid)) != nullptr;
}
bool is_stopped(pid_t pid) {
  return std::strchr("Tt", state_of(pid)) != nullptr;
}

struct Opened {
  Mailbox* mailbox = nullptr;
  Descriptor file{-1};
};

// The descriptors of another user's process the kernel does not show.
Opened open_mailbox(pid_t pid) {
  Opened opened;
  const std::string folder = below_proc(pid, "fd");
  DIR* const directory = opendir(folder.c_str());
  if (!directory) return opened;
  const pid_t owner = own_number(pid);
  while (const dirent* const entry = readdir(directory)) {
    char target[64];
    const ssize_t size = readlinkat(dirfd(directory), entry->d_name, target, sizeof target);
    if (size < 0 ||
        !std::string_view(target, static_cast<size_t>(size)).starts_with(faults::kMailboxLink))
      continue;
    Descriptor file(openat(dirfd(directory), entry->d_name, O_RDWR | O_CLOEXEC | O_NONBLOCK));
    Mailbox* const mailbox = file.get() < 0 ? nullptr : faults::map_mailbox(file.get());
    if (!mailbox) continue;
    if (mailbox->owner == owner) {
      opened.mailbox = mailbox;
      opened.file = std::move(file);
      break;
    }
    faults::unmap_mailbox(mailbox);
  }
  closedir(directory);
  return opened;
}

bool is_this_users(pid_t pid) {
  struct stat status {};
  return ::stat(below_proc(pid, "").c_str(), &status) == 0 && status.st_uid == geteuid();
}

std::string why_not_found(pid_t pid) {
  const std::string process = "process " + std::to_string(pid);
  if (has_ended(pid)) return "there is no process " + std::to_string(pid);
  if (!is_this_users(pid))
    return process +
           " is another user's, or has other rights than you: only its own user can "
           "look at its rules and change them. Run this as that user";
  return process + " (" + program_of(pid) +
         ") has opened no device under --faults. Start it by `uiwarp run --faults none`, or with "
         "rules; of a script name the program that it has started (`uiwarp faults` lists those "
         "that can be asked)";
}

std::string why_silent(pid_t pid) {
  const std::string process = "process " + std::to_string(pid);
  if (has_ended(pid)) return process + " has ended; nothing was changed";
  if (is_stopped(pid))
    return process + " is stopped; nothing was changed. Let it go on (kill -CONT " +
           std::to_string(pid) + ") and ask again";
  return process +
         " did not answer for 5 s; nothing was changed. Look whether it runs, as in a "
         "debugger or with all processors taken, and ask again";
}

// Waits until nobody else asks, and nothing is left of who asked and went away.
bool take_mailbox(pid_t pid, const Opened& opened, core::Nanoseconds limit) {
  Mailbox& mailbox = *opened.mailbox;
  while (flock(opened.file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (core::now() > limit || has_ended(pid)) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  faults::pass_turn(mailbox, Turn::kAsked, Turn::kFree);
  while (faults::wait_while(mailbox, Turn::kTaken, kLook) == Turn::kTaken)
    if (core::now() > limit || has_ended(pid) || is_stopped(pid)) return false;
  faults::pass_turn(mailbox, Turn::kAnswered, Turn::kFree);
  return true;
}

Reply ask_in(pid_t pid, const Opened& opened, const faults::Question& question) {
  const core::Nanoseconds limit = core::now() + kLimit;
  if (!take_mailbox(pid, opened, limit)) return {false, why_silent(pid)};
  Mailbox& mailbox = *opened.mailbox;
  faults::write_text(mailbox, faults::written(question));
  faults::pass_turn(mailbox, Turn::kFree, Turn::kAsked);
  for (Turn turn = Turn::kAsked; turn != Turn::kAnswered;) {
    turn = faults::wait_while(mailbox, turn, kLook);
    if (turn == Turn::kAnswered) break;
    if (core::now() < limit && !has_ended(pid) && !is_stopped(pid)) continue;
    if (turn == Turn::kTaken)
      return {false, "process " + std::to_string(pid) +
                         " has read the question and not answered it; whether the rules are "
                         "changed its own messages say"};
    if (faults::pass_turn(mailbox, Turn::kAsked, Turn::kFree)) return {false, why_silent(pid)};
  }
  Reply reply{true, faults::read_text(mailbox)};
  faults::pass_turn(mailbox, Turn::kAnswered, Turn::kFree);
  return reply;
}

}  // namespace

std::string program_of(pid_t pid) {
  std::ifstream file(below_proc(pid, "comm"));
  std::string name;
  return std::getline(file, name) ? name : "?";
}

Reply ask(pid_t pid, const faults::Question& question) {
  // Root could ask others' processes, whose memory is not to be relied on.
  const Opened opened = is_this_users(pid) ? open_mailbox(pid) : Opened{};
  if (!opened.mailbox) return {false, why_not_found(pid)};
  Reply reply = ask_in(pid, opened, question);
  faults::unmap_mailbox(opened.mailbox);
  return reply;
}

std::vector<pid_t> processes_under_faults() {
  std::vector<pid_t> found;
  DIR* const directory = opendir("/proc");
  if (!directory) return found;
  while (const dirent* const entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc() ||
        !is_this_users(pid))
      continue;
    const Opened opened = open_mailbox(pid);
    if (!opened.mailbox) continue;
    faults::unmap_mailbox(opened.mailbox);
    found.push_back(pid);
  }
  closedir(directory);
  std::ranges::sort(found);
  return found;
}

}  // namespace uiw::tool
