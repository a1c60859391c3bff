// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// By which a process under --faults is asked for its rules, and given others, while it runs: memory
// that it shares by a file without a name. Others reach that only below /proc/PID/fd, where the
// kernel lets in who may trace the process: nobody but its user, and root.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/clock.h"

namespace uiw::faults {

// Whose turn it is. Each change wakes whoever waits for one.
enum class Turn : uint32_t {
  kFree,      // nothing is asked
  kAsked,     // a question is there; whoever asked may still take it back
  kTaken,     // the process has read it and is at it
  kAnswered,  // the answer is there
};

struct Mailbox {
  static constexpr uint64_t kMagic = 0x3130'746c'7561'6601;  // changes with the layout
  static constexpr uint32_t kMostText = 128 << 10;           // bytes of a question or an answer

  uint64_t magic = kMagic;
  // As the process sees itself: a fork that has not opened a device holds its parent's file.
  pid_t owner = 0;
  std::atomic<Turn> turn{Turn::kFree};
  std::atomic<uint32_t> size{0};
  char text[kMostText];
};
static_assert(std::atomic<Turn>::is_always_lock_free && sizeof(Turn) == 4);

// What links to such a file begin with below /proc/PID/fd.
inline constexpr char kMailboxLink[] = "/memfd:uiwarp-faults";

// One of this process, whose descriptor stays open. Null: there is none; `error` says why. Thread:
// any.
Mailbox* make_mailbox(int& error);
// Another process' that is open for reading and writing. Null: it is none, or its owner could make
// it shorter.
Mailbox* map_mailbox(int fd);
void unmap_mailbox(Mailbox* mailbox);

// Waits until the turn is another one than `turn`, or `limit` nanoseconds have passed; negative: no
// limit. May return early. The turn then.
Turn wait_while(Mailbox& mailbox, Turn turn, core::Nanoseconds limit);
// Whether the turn was `from` and is `to` now.
bool pass_turn(Mailbox& mailbox, Turn from, Turn to);

// What is beyond kMostText is cut off. Only in one's own turn.
void write_text(Mailbox& mailbox, std::string_view text);
std::string read_text(const Mailbox& mailbox);

// A question: what rules there are, or others to be put in force.
struct Question {
  bool changes = false;  // else it only asks
  std::string name;      // where the rules come from
  std::string text;      // the rules; empty: none
};
std::string written(const Question& question);
Question question_of(std::string_view text);

}  // namespace uiw::faults
