// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// STag index -> bucket (buckets.h) -> slot (slots.h), written under a mutex and read without one.
//
// Any pointer that a reader has loaded stays readable. Region::live_stag_ (holding.h) decides
// whether it is the right Region.
//
// A memory window keeps its slot, and so its index, for its whole life. live_stag_ says whether,
// and with which key, it is bound.
#pragma once

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <new>
#include <utility>

#include "core/cpu_relax.h"
#include "core/pause.h"
#include "mem/buckets.h"
#include "mem/slots.h"
#include "mem/table.h"

namespace uiw::mem {

// Unpredictable numbers, fetched from the kernel in batches.
class RandomNumbers {
 public:
  int next(uint32_t& out) {  // 0 or errno
    if (left_ == 0) {
      long got;
      do {
        got = syscall(SYS_getrandom, numbers_, sizeof numbers_, 0);
      } while (got < 0 && errno == EINTR);
      if (got != static_cast<long>(sizeof numbers_)) return EAGAIN;
      left_ = kBatch;
    }
    out = numbers_[--left_];
    return 0;
  }

 private:
  static constexpr size_t kBatch = 64;  // 256 bytes: getrandom never returns fewer
  uint32_t numbers_[kBatch];
  size_t left_ = 0;
};

constexpr unsigned kRoundsOfCopies = 100;  // rounds of waiting for threads that only copy

inline void wait_a_little(unsigned round) {
  if (round < kRoundsOfCopies) {
    core::cpu_relax();
  } else if (round < 200) {
    sched_yield();
  } else {
    constexpr core::Nanoseconds kPause = 50 * core::kMicrosecond;
    core::sleep_until(core::now() + kPause);
  }
}

struct Table::Impl {
  struct Slot;
  struct Window {  // additional state of a memory window's slot
    Slot* slot;
    Slot* bound_to = nullptr;  // the region, while bound
    Window* next = nullptr;    // among the windows bound to a stream
    Window** link = nullptr;   // the pointer to this; null: not in that list
  };
  struct Slot : Region {
    uint32_t number;
    union {
      uint32_t windows;  // a region: how many windows are bound to it
      Window* window;    // a memory window
    };
    std::atomic<RefCount*> counts;
  };
  static_assert(sizeof(Slot) == 64);
  static uint32_t index_of_slot(const Slot& slot) { return index_of(slot.stag); }
  using AllBuckets = Buckets<Slot, &index_of_slot>;
  using AllSlots = Slots<Slot>;
  static_assert(AllSlots::kMost == kCapacity);
  // Half of the buckets are free, so choosing an index takes two tries on average.
  static_assert(kCapacity * 2 == size_t{1} << AllBuckets::kMaxBits);

  mutable std::mutex mutex;  // guards all but `pin_holders`; readers use buckets and slots without
                             // it
  AllBuckets buckets;
  AllSlots slots;
  std::atomic<size_t> regions{0}, windows{0};
  Window* stream_windows = nullptr;  // windows bound to a stream
  uint32_t trim_below = 0;           // number of taken slots: half of their maximum since the last
                                     // trim
  std::mutex pin_holders_mutex;      // not taken together with `mutex` or any other lock of ours
  core::List<PinHolder, &PinHolder::among_pin_holders> pin_holders;
  RandomNumbers random;
  static constexpr size_t kRecent = 1024;
  uint32_t recent[kRecent] = {};  // indices given back last; 0: none
  size_t recent_next = 0;
  // How many of `recent` have these low bits. Most new STags need no search of `recent`.
  static constexpr uint32_t kFilter = 8192;
  uint16_t recent_like[kFilter] = {};
  Reuse reuse = Reuse::kLate;
  uint32_t last_given_back = 0;  // with Reuse::kAtOnce; 0: none

  ~Impl() {
    buckets.for_each([](const Slot* slot) {
      if (slot->is_window()) delete slot->window;
    });
  }

  static size_t of_side(Side side) { return static_cast<size_t>(side) * AllSlots::kOtherCount; }

  // Without the mutex. A miss is reliable only if the buckets were not resized meanwhile.
  RegionRef try_find(uint32_t stag, Side side) const {
    const Slot* slot = buckets.find(index_of(stag));
    if (!slot || slot->live_stag_.load(std::memory_order_relaxed) != stag) return {};
    RefCount* refs = slot->counts.load(std::memory_order_relaxed);
    if (!refs) return {};  // its page was given back just now
    refs += of_side(side);
    return hold(*refs, slot->live_stag_, stag) ? RegionRef(slot, refs) : RegionRef();
  }
  [[gnu::noinline]] RegionRef find_again(uint32_t stag, Side side) const {
    for (;;) {
      const uint32_t resizes = buckets.resizes();
      RegionRef found = try_find(stag, side);
      if (found || buckets.resizes() == resizes) return found;
    }
  }

  // Under the mutex. Null: no region has that STag.
  Slot* valid_region(uint32_t stag) const {
    Slot* slot = stag ? with_index(stag) : nullptr;
    return slot && slot->live_stag_.load(std::memory_order_relaxed) == stag && !slot->is_window()
               ? slot
               : nullptr;
  }

  // The slot with that index, with any key, valid or not. Under the mutex.
  Slot* with_index(uint32_t stag) const {
    Slot* slot = buckets.find(index_of(stag));
    return slot && index_of(slot->stag) == index_of(stag) ? slot : nullptr;
  }

  // Frees the index, which is not reused soon.
  void erase(const Slot* slot) {
    buckets.erase(*slot);
    remember(index_of(slot->stag));
  }

  // Keeps half of the buckets free.
  bool make_room() {
    if ((slots.taken() + 1) * 2 <= buckets.size()) return true;
    return buckets.grow();
  }

  void give_slot(const Slot* slot) {
    if (reuse == Reuse::kAtOnce) last_given_back = slot->stag;
    slots.give(*slot);
    if (slots.taken() < trim_below) trim();
  }

  // Called only when half of the slots were freed since the last time, so the cost per freed slot
  // is a few steps.
  void trim() {
    trim_below = slots.taken() / 2;
    if (slots.slots_footprint() + buckets.footprint() <= kWorthTrimming) return;
    slots.trim();
    while (buckets.size() >= 8 * size_t{slots.taken()} && buckets.shrink()) {
    }
  }
  static constexpr size_t kWorthTrimming = 256 * 1024;  // bytes; less is not worth it

  uint16_t& like(uint32_t index) { return recent_like[index % kFilter]; }

  bool given_back_recently(uint32_t index) {
    return like(index) > 0 && std::find(recent, recent + kRecent, index) != recent + kRecent;
  }

  void remember(uint32_t index) {
    if (recent[recent_next] != 0) --like(recent[recent_next]);
    recent[recent_next] = index;
    ++like(index);
    recent_next = (recent_next + 1) % kRecent;
  }

  // Index 0 stays unused, so that no key makes it STag 0.
  int choose_stag(uint32_t& stag) {
    stag = std::exchange(last_given_back, 0);
    if (stag != 0 && !buckets.find(index_of(stag))) return 0;
    do {
      if (const int error = random.next(stag)) return error;
    } while (index_of(stag) == 0 || buckets.find(index_of(stag)) ||
             given_back_recently(index_of(stag)));
    return 0;
  }

  // Takes a slot and gives it a new STag, which is not valid yet and cannot be found. ENOMEM,
  // EAGAIN.
  core::Result<Slot*> new_slot() {
    uint32_t stag;
    if (!make_room()) return core::Errno{ENOMEM};
    if (const int error = choose_stag(stag)) return core::Errno{error};
    Slot* slot = slots.take();
    if (!slot) return core::Errno{ENOMEM};
    trim_below = std::max(trim_below, slots.taken() / 2);
    slot->stag = stag;
    return slot;
  }

  // When this returns, look-ups no longer find the slot, and there is no reference to it.
  void revoke(Slot* slot) {
    set_live(slot->live_stag_, 0);
    const RefCount* counts = slot->counts.load(std::memory_order_relaxed);
    for (const Side side : {Side::kSend, Side::kReceive}) {
      const RefCount& refs = counts[of_side(side)];
      for (unsigned round = 0; is_held(refs); ++round) {
        // Short copies are finished by then. Asking once is enough: a holder that keeps a reference
        // for long has joined before, or checks when it joins. No holder keeps a reference to a
        // memory window.
        if (round == kRoundsOfCopies && !slot->is_window()) ask_pin_holders();
        wait_a_little(round);
      }
    }
  }

  void ask_pin_holders();

  void link_to_stream(Window* window) {
    window->next = stream_windows;
    window->link = &stream_windows;
    if (window->next) window->next->link = &window->next;
    stream_windows = window;
  }

  // Ends a window's binding, if it has one. Waits with the mutex held: a thread with a reference to
  // a window takes no lock and drops the reference after one copy.
  void unbind(Slot* slot) {
    Window* window = slot->window;
    if (!window->bound_to) return;
    revoke(slot);
    --window->bound_to->windows;
    window->bound_to = nullptr;
    slot->stream = 0;
    if (window->link) {
      *window->link = window->next;
      if (window->next) window->next->link = window->link;
      window->link = nullptr;
    }
  }
};

}  // namespace uiw::mem
