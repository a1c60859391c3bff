// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Rules that are changed while the program runs, by `uiwarp faults PID`: a thread waits for what is
// asked in the process' mailbox. What it asks for happens on the thread of later(), as all does
// that rules have a time for.
#include <mutex>

#include "core/log.h"
#include "core/own_thread.h"
#include "core/per_process.h"
#include "faults/files.h"
#include "faults/later.h"
#include "faults/mailbox.h"
#include "faults/wraps.h"

namespace uiw::faults {
namespace {

struct Listener {
  std::once_flag once;
  Mailbox* mailbox = nullptr;
};
constinit core::PerProcess<Listener> all;

void change(Rules fresh) {
  let_ports_go();
  const std::string name = fresh.name;
  const size_t count = fresh.list.size();
  put_in_force(std::move(fresh));
  if (count == 0)
    core::log(core::LogLevel::kWarn, "faults: no rule is in force any more");
  else
    core::log(core::LogLevel::kWarn, "faults: now in force: %zu rule%s of %s", count,
              count == 1 ? "" : "s", name.c_str());
  start_clock();
}

// The answer: "", or what is wrong, in the first line; then those that are in force.
std::string answer_to(const std::string& text) {
  const Question question = question_of(text);
  if (!question.changes) return "\n" + report();
  Rules fresh;
  // Before the change, which changes nothing when they are wrong.
  const std::string problem = question.text.empty() ? "" : parse(question.text, fresh);
  if (!problem.empty()) return question.name + ": " + problem + "\n" + report();
  fresh.name = question.name;
  change(std::move(fresh));
  return "\n" + report();
}

void answer(Mailbox& mailbox) {
  write_text(mailbox, answer_to(read_text(mailbox)));
  pass_turn(mailbox, Turn::kTaken, Turn::kAnswered);
}

void listen(void* argument) {
  Mailbox& mailbox = *static_cast<Mailbox*>(argument);
  for (;;) {
    const Turn turn = mailbox.turn.load(std::memory_order_acquire);
    if (turn != Turn::kAsked || !pass_turn(mailbox, Turn::kAsked, Turn::kTaken))
      wait_while(mailbox, turn, -1);
    else if (!later(core::now(), [&mailbox] { answer(mailbox); }))
      answer(mailbox);
  }
}

void begin(Listener& listener) {
  int error = 0;
  listener.mailbox = make_mailbox(error);
  if (listener.mailbox)
    error = core::start_thread(core::OwnThread::kFaults, listen, listener.mailbox);
  if (error == 0) return;
  core::log(core::LogLevel::kWarn,
            "faults: rules cannot be changed while the program runs, `uiwarp faults` does not find "
            "it: %s",
            strerrordesc_np(error));
}

}  // namespace

void listen_for_changes() {
  Listener* const listener = all.get();
  if (listener) std::call_once(listener->once, begin, *listener);
}

}  // namespace uiw::faults
