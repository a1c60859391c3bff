// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the provider's handles are under --check: objects of ours that hold the handle of the next
// table, so that post and poll look nothing up but keys. Address handles, memory windows and thread
// domains, on which nothing depends, are the next table's own.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "check/last_writes.h"
#include "check/life.h"
#include "check/lost_event.h"
#include "check/moves.h"
#include "check/one_thread.h"
#include "check/regions.h"
#include "check/requests.h"
#include "check/turn.h"
#include "core/fork_mutex.h"
#include "core/generation.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::check {

struct Qp;

struct Pd;

struct Srq;

// A queue pair that is destroyed and had a shared receive queue.
struct Departed {
  // Enough for all that are destroyed while another thread is between the stack's poll and ours.
  static constexpr size_t kMost = 64;

  uint32_t number;
  Srq* srq;
};

// What the contexts of one command descriptor share.
struct CommandSpace {
  std::shared_mutex mutex;
  Regions regions;  // under mutex
};

struct Context {
  explicit Context(std::shared_ptr<CommandSpace> shared) : space(std::move(shared)) {}

  uiwarp_context* next = nullptr;
  int async_fd = -1;  // that libibverbs reads asynchronous events from
  const unsigned process = core::generation();

  const std::shared_ptr<CommandSpace> space;
  std::shared_mutex& mutex = space->mutex;
  Regions& regions = space->regions;            // under mutex
  std::unordered_map<uint32_t, Qp*> qps;        // by number; under mutex
  std::deque<Departed> departed;                // the newest first; under mutex
  std::vector<std::unique_ptr<Pd>> unimported;  // which queue pairs may still use; under mutex

  // In a child of the process that opened it locks may be held for good: all is passed on as it is.
  bool foreign() const { return process != core::generation(); }
};

struct Pd {
  uiwarp_pd* next = nullptr;
  Context* context = nullptr;
  const void* root = nullptr;  // the same for all that stand for one: made of its handle
  // Of a parent domain with a thread domain: one thread at a time is in a queue made with it.
  const char* promise = nullptr;
};

struct Mr {
  uiwarp_mr* next = nullptr;
  Pd* pd = nullptr;
  std::shared_ptr<Region> region;
};

struct Cq {
  uiwarp_cq* next = nullptr;
  const void* user = nullptr;  // the ibv_cq
  Life life;
  Context* context = nullptr;
  int entries = 0;                        // as asked; there may be more
  std::atomic<int64_t> promised{0};       // depths of the work queues that complete here
  std::atomic<bool> is_overflown{false};  // and that was said
  const char* promise = nullptr;          // as a domain's
  OneAtATime polling;
  // Of one with a completion channel, for check/watch.h.
  int channel_fd = -1;
  int maker = 0;  // the thread
  Usage usage;
  struct Armed {
    Arming last;
    Stack where{};
  };
  Armed armed();
  void set_armed(const Armed& now);
  // A poll has found fewer than it asked for.
  void set_emptied() {
    if (held_ != 0) held_ = 0;
  }

 private:
  std::mutex mutex_;
  Armed armed_;                    // under mutex_, but for last.held
  std::atomic<uint32_t> held_{0};  // see Arming
};

struct Srq {
  uiwarp_srq* next = nullptr;
  const void* user = nullptr;  // the ibv_srq
  Life life;
  Pd* pd = nullptr;
  OneAtATime receiving;
  Turn post;  // before mutex
  std::mutex mutex;
  Requests receives{Requests::Of::kReceives};  // under mutex
};

struct Qp {
  uiwarp_qp* next = nullptr;
  const void* user = nullptr;  // the ibv_qp
  Life life;
  Pd* pd = nullptr;
  Cq* send_cq = nullptr;
  Cq* recv_cq = nullptr;
  Srq* srq = nullptr;
  uint32_t number = 0;
  ibv_qp_cap cap{};  // as granted, but max_inline_data as asked
  bool signal_all = false;
  ibv_qp_type type = IBV_QPT_RC;
  std::atomic<bool> is_in_rtr{false};  // moved there with a peer's number, and not on
  Section section;
  OneAtATime sending, receiving;
  Turn post_send, post_receive;  // before mutex
  std::mutex mutex;
  Requests sends{Requests::Of::kSends}, receives{Requests::Of::kReceives};  // under mutex
  LastWrites writes;                                                        // under mutex
  Moves moves;                                                              // under mutex; of RC
  std::vector<uint32_t> batch;  // sequence numbers; of who is between batch_begin and batch_end

  std::string name() const;
  Stack created() const;  // by the list of objects
};

// A handle is the object's address, and the other way round.
#define UIW_HANDLES(Object, Handle)            \
  inline Object& of(Handle* handle) {          \
    return *reinterpret_cast<Object*>(handle); \
  }                                            \
  inline Handle* handle_of(Object* object) {   \
    return reinterpret_cast<Handle*>(object);  \
  }
UIW_HANDLES(Context, uiwarp_context)
UIW_HANDLES(Pd, uiwarp_pd)
UIW_HANDLES(Mr, uiwarp_mr)
UIW_HANDLES(Cq, uiwarp_cq)
UIW_HANDLES(Srq, uiwarp_srq)
UIW_HANDLES(Qp, uiwarp_qp)
#undef UIW_HANDLES

template <class Object, class Handle>
auto next_of(Handle* handle) {
  return handle ? reinterpret_cast<Object*>(handle)->next : nullptr;
}

// What a program has made and not destroyed, with where it did. Thread: any.
class Objects {
 public:
  static Objects& instance();

  struct Entry {
    const void* object = nullptr;
    const Context* context = nullptr;
    std::string name;
    Stack created;
    std::vector<const void*> uses;  // other objects
    uint64_t number = 0;            // in the order of creation
  };
  // Captures where.
  void add(const Context& context, const void* object, std::string name,
           std::vector<const void*> uses = {});
  void remove(const void* object);
  // Takes it out, if this process has added it; and puts it back.
  std::optional<Entry> extract(const void* object);
  void put_back(Entry entry);
  // As it was added, by this process or one that it was forked off; one without a name when it was
  // not.
  Entry find(const void* object);
  // Of a context, or of all (null), the oldest first.
  std::vector<Entry> all_of(const Context* context);
  // Who uses that one.
  std::vector<Entry> users_of(const void* object);

  // Around a fork: nobody is within.
  void hold() { mutex_.lock(); }
  void let_go() { mutex_.unlock(); }
  // In the child, of its parent's.
  void inherit(Objects& parents) { parents_ = &parents; }

 private:
  std::vector<Entry> sorted(std::vector<Entry> entries);

  core::QuietMutex mutex_;
  std::unordered_map<const void*, Entry> entries_;  // under mutex_
  uint64_t last_ = 0;
  Objects* parents_ = nullptr;
};

}  // namespace uiw::check
