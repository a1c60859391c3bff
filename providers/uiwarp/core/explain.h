// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Messages, at the default log level, about why a call or a work request failed. Each sentence is
// logged once per object, so that a program that retries does not flood the log, and for at most
// tuning::kMostExplained objects, so that many connections do not either. Allocates nothing and
// takes no lock. Runs only when something fails. As with log(), do not call it with a lock of the
// data path held.
#pragma once

#include <atomic>
#include <cstdarg>
#include <cstddef>

namespace uiw::core {

// The sentences that were logged for one object. A sentence is identified by the address of its
// format. Thread: any.
class Told {
 public:
  // True if the sentence should be logged now; marks it as logged.
  bool first(const char* sentence);
  // Copies the marks of `other`. Call it before any other thread uses this object.
  void take_over(const Told& other);

 private:
  static constexpr size_t kMost = 16;  // per object; further sentences are not logged
  std::atomic<const char*> sentences_[kMost] = {};
};

// Forgets for how many objects each sentence was logged. For tests. Thread: one at a time.
void forget_explained();

// Logs a warning, printf-like.
void explain(Told& told, const char* sentence, ...) __attribute__((format(printf, 2, 3)));
// The same for a call that fails; returns `error`.
int refuse(Told& told, int error, const char* sentence, ...) __attribute__((format(printf, 3, 4)));
// Logs "CALLER: WHY", once for each `why`, which must be a literal; returns `error`.
int refuse_because(Told& told, int error, const char* caller, const char* why);
// ENODEV, for a call in a forked child on its parent's objects; logged once per process.
int refuse_in_child();
void explain_with(Told& told, const char* sentence, va_list arguments);

}  // namespace uiw::core
