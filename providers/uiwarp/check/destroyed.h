// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Queues that were destroyed. Their objects stay for a while, so that a thread which goes on using
// one is reported, where it would crash in this library otherwise.
#pragma once

#include "check/objects.h"

namespace uiw::check {

// While it lives its thread is in `call` on `object`. False: that was destroyed, which is reported,
// and nothing else of it may be looked at.
class Inside {
 public:
  Inside(Life& life, const void* object, const char* call);
  ~Inside() {
    if (life_) life_->leave();
  }
  Inside(const Inside&) = delete;
  explicit operator bool() const { return life_ != nullptr; }

 private:
  Life* life_ = nullptr;
};

// `call` is about to destroy `object`: reports who is in a call on it, and waits a moment for its
// end. Then either life.go_on() or bury().
void end_life(Life& life, const void* object, const char* call);

// It is destroyed: takes it from the list of objects. It is deleted when enough others have gone
// after it.
void bury(Cq* cq);
void bury(Srq* srq);
void bury(Qp* qp);

}  // namespace uiw::check
