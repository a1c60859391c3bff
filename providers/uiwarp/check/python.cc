// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/python.h"

#include <dlfcn.h>

#include <cstddef>
#include <mutex>
#include <set>
#include <utility>

#include "core/per_process.h"

namespace uiw::check {
namespace {

struct Object;  // PyObject and what derives from it
struct Thread;  // PyThreadState

// As <Python.h> declares them. The thread state that is current has the interpreter's lock.
struct Interpreter {
  int (*is_initialized)();
  Thread* (*current)();
  Thread* (*of_this_thread)();
  Object* (*frame)();  // borrowed
  Object* (*caller)(Object* frame);
  Object* (*code)(Object* frame);
  int (*line)(Object* frame);
  Object* (*attribute)(Object*, const char* name);
  const char* (*text)(Object*);
  void (*let_go)(Object*);
  void (*take_error)(Object**, Object**, Object**);
  void (*put_error)(Object*, Object*, Object*);
  int (*collect)();
  int (*collect_not)();
  bool complete = true;
};

template <class Function>
void find(Interpreter& python, Function*& function, const char* name,
          const char* or_name = nullptr) {
  function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  if (!function && or_name) function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, or_name));
  if (!function) python.complete = false;
}

Interpreter look_up() {
  Interpreter python;
  find(python, python.is_initialized, "Py_IsInitialized");
  if (!python.complete) return python;
  find(python, python.current, "PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet");
  find(python, python.of_this_thread, "PyGILState_GetThisThreadState");
  find(python, python.frame, "PyEval_GetFrame");
  find(python, python.caller, "PyFrame_GetBack");
  find(python, python.code, "PyFrame_GetCode");
  find(python, python.line, "PyFrame_GetLineNumber");
  find(python, python.attribute, "PyObject_GetAttrString");
  find(python, python.text, "PyUnicode_AsUTF8");
  find(python, python.let_go, "Py_DecRef");
  find(python, python.take_error, "PyErr_Fetch");
  find(python, python.put_error, "PyErr_Restore");
  // Of 3.10; before, nothing that is called here makes objects which are collected.
  const auto nothing = [] { return 0; };
  python.collect = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGC_Enable"));
  python.collect_not = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGC_Disable"));
  if (!python.collect || !python.collect_not) python.collect = python.collect_not = nothing;
  return python;
}

const Interpreter& interpreter() {
  static std::once_flag once;
  static constinit Interpreter python{};
  std::call_once(once, [] { python = look_up(); });
  return python;
}

// While it lives no finalizer of the program runs, and an exception that is on its way stays aside.
class Undisturbed {
 public:
  explicit Undisturbed(const Interpreter& python)
      : python_(python), collects_(python.collect_not() != 0) {
    python_.take_error(&type_, &value_, &trace_);
  }
  ~Undisturbed() {
    python_.put_error(type_, value_, trace_);
    if (collects_) python_.collect();
  }
  Undisturbed(const Undisturbed&) = delete;

 private:
  const Interpreter& python_;
  bool collects_;
  Object *type_ = nullptr, *value_ = nullptr, *trace_ = nullptr;
};

std::string text_of(const Interpreter& python, Object* object, const char* name) {
  Object* const value = python.attribute(object, name);
  const char* const text = value ? python.text(value) : nullptr;
  std::string copy = text ? text : "?";
  if (value) python.let_go(value);
  return copy;
}

PythonFrame describe(const Interpreter& python, Object* frame) {
  PythonFrame described;
  described.line = python.line(frame);
  if (Object* const code = python.code(frame)) {
    described.function = text_of(python, code, "co_name");
    described.file = text_of(python, code, "co_filename");
    python.let_go(code);
  }
  return described;
}

PythonStack walk(const Interpreter& python) {
  const Undisturbed undisturbed(python);
  PythonStack stack;
  Object* owned = nullptr;
  for (Object* frame = python.frame(); frame && stack.size() < kMostPython;) {
    stack.push_back(describe(python, frame));
    Object* const caller = python.caller(frame);
    if (owned) python.let_go(owned);
    owned = frame = caller;
  }
  if (owned) python.let_go(owned);
  // What could not be told leaves an exception of its own.
  Object *type, *value, *trace;
  python.take_error(&type, &value, &trace);
  for (Object* each : {type, value, trace})
    if (each) python.let_go(each);
  return stack;
}

// Each different stack once, for good: findings name them when the code may be gone.
class Known {
 public:
  const PythonStack* keep(PythonStack stack) {
    const std::lock_guard lock(mutex_);
    if (stacks_.size() >= kMost) {
      const auto found = stacks_.find(stack);
      return found == stacks_.end() ? nullptr : &*found;
    }
    return &*stacks_.insert(std::move(stack)).first;
  }

 private:
  static constexpr size_t kMost = 10000;
  std::mutex mutex_;
  std::set<PythonStack> stacks_;  // under mutex_
};

}  // namespace

const PythonStack* python_stack() {
  const Interpreter& python = interpreter();
  if (!python.complete || !python.is_initialized()) return nullptr;
  // Another thread's may be the current one: it is not equal to ours.
  Thread* const ours = python.of_this_thread();
  if (!ours || python.current() != ours) return nullptr;
  PythonStack stack = walk(python);
  static constinit core::PerProcess<Known> known;
  return stack.empty() ? nullptr : known.get()->keep(std::move(stack));
}

}  // namespace uiw::check
