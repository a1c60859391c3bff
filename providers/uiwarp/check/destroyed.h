// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Objects that were destroyed. Ours and the provider's stay for a while, so that a program which
// goes on using one is told so, where it would crash otherwise, or use what came in its place.
#pragma once

#include <cstdint>

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
void bury(Pd* pd);
void bury(Mr* mr);
void bury(Cq* cq);
void bury(Srq* srq);
void bury(Qp* qp);
// The same of a handle of the next table, of an object that is about to be destroyed: behind that
// another thread may be given the same handle for a new one, of which make_way() is told before
// anybody knows it. bring_back(): it could not be destroyed.
void bury_handle(const void* handle);
void bring_back(const void* handle);
void make_way(const void* handle);
// The provider's part of what was buried last by this thread: it is freed no sooner.
void bury_memory(void* memory);

enum class As : uint8_t {
  kItself,  // the call is on it
  kGiven,   // the call is given it for another object
};
// Whether it was destroyed, which is reported then, and nothing of it may be looked at. `object`:
// null, or as in Objects. Not for posting and polling: it looks through all that are buried.
bool is_gone(const void* object, const char* call, As as = As::kItself);
// The same of a handle of the next table.
bool is_handle_gone(const void* handle, const char* call, As as = As::kItself);

}  // namespace uiw::check
