// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Why a call, or a work request, failed: said at the default log level, once for each object and
// sentence, so that a program that tries again and again does not flood; and not of more than
// tuning::kMostExplained objects, so that neither do many connections. Allocates nothing, takes no
// lock. Nothing of it runs where nothing fails. As log(): not with a lock of the data path held.
#pragma once

#include <atomic>
#include <cstdarg>
#include <cstddef>

namespace uiw::core {

// What has been said of one object. A sentence is known by where its format lies. Thread: any.
class Told {
 public:
  // Whether it is to be said now, and from now on not again.
  bool first(const char* sentence);
  // What was said by the other one was said by this one. Thread: nobody uses it yet.
  void take_over(const Told& other);

 private:
  static constexpr size_t kMost = 16;  // of one object; no more than these are said
  std::atomic<const char*> sentences_[kMost] = {};
};

// As if this process had said nothing yet of any object. For tests. Thread: one at a time.
void forget_explained();

// printf-like, a warning.
void explain(Told& told, const char* sentence, ...) __attribute__((format(printf, 2, 3)));
// The same, for a call that ends by it; returns `error`.
int refuse(Told& told, int error, const char* sentence, ...) __attribute__((format(printf, 3, 4)));
// "CALLER: WHY", once for each `why`, which is a literal.
int refuse_because(Told& told, int error, const char* caller, const char* why);
// ENODEV, for a call of a child on what its parent has made: said once by each such process.
int refuse_in_child();
void explain_with(Told& told, const char* sentence, va_list arguments);

}  // namespace uiw::core
