// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// An open-addressed hash from STag index to Region, written under a mutex and read without one.
//
// Regions live in slots that are reused but never freed while the table lives, and bucket arrays
// that were outgrown are kept too (their sizes add up to less than the current one). So whatever
// pointer a reader has loaded stays readable; whether it is the right Region is decided by
// Region::live_stag_:
//
//   reader: refs += 1; live_stag_ == stag ? a hit : refs -= 1, a miss
//   revoke: live_stag_ = 0; wait until refs == 0, of one side, then of the other
//
// All of these are sequentially consistent: either the reader sees that the STag is gone, or
// revoke() sees the reader's reference and waits for it. The other fields are written only while
// live_stag_ is 0 and nobody who saw it otherwise holds a reference.
//
// A memory window keeps its slot, and so its index, from allocation on; live_stag_ says whether,
// and with which key, it is bound.
#pragma once

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <new>

#include "mem/table.h"

namespace uiw::mem {

// Numbers nobody can guess, fetched from the kernel by the batch.
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
  static constexpr size_t kBatch = 64;  // 256 octets: getrandom never returns fewer
  uint32_t numbers_[kBatch];
  size_t left_ = 0;
};

constexpr unsigned kRoundsOfCopies = 100;  // of waiting for who only copies

inline void wait_a_little(unsigned round) {
  if (round < kRoundsOfCopies) {
    __builtin_ia32_pause();
  } else if (round < 200) {
    sched_yield();
  } else {
    const timespec pause{0, 50'000};
    nanosleep(&pause, nullptr);
  }
}

struct Table::Impl {
  struct Slot;
  struct Window {  // what a memory window's slot has besides
    Slot* slot;
    Slot* bound_to = nullptr;  // the region, while bound
    Window* next = nullptr;    // among the windows bound to a stream
    Window** link = nullptr;   // what points here; null: not among them
  };
  struct Slot : Region {
    uint32_t windows = 0;  // bound to this region
    union {
      Slot* next_free = nullptr;  // while it is nobody's
      Window* window;             // while it is a memory window's
    };
  };
  static_assert(sizeof(Slot) == 3 * 64);
  static constexpr size_t kSlotsPerChunk = 64;
  struct Chunk {
    Slot slots[kSlotsPerChunk];
    Chunk* next;
  };
  using Bucket = std::atomic<Slot*>;
  struct Buckets {
    size_t mask;     // number of buckets - 1
    Buckets* older;  // outgrown
    std::unique_ptr<Bucket[]> at;
  };

  static Slot* removed() { return reinterpret_cast<Slot*>(uintptr_t{1}); }

  mutable std::mutex mutex;  // all but `buckets`, which readers load without it, and `keepers`
  std::atomic<Buckets*> buckets{nullptr};
  std::atomic<size_t> regions{0}, windows{0};
  Window* stream_windows = nullptr;  // those bound to a stream
  Chunk* chunks = nullptr;
  Slot* free_slots = nullptr;
  std::mutex keepers_mutex;  // never with `mutex`; nothing of ours is taken inside
  core::List<Keeper, &Keeper::among_keepers> keepers;
  RandomNumbers random;
  static constexpr size_t kRecent = 1024;
  uint32_t recent[kRecent] = {};  // indices given back last; 0: none
  size_t recent_next = 0;
  // How many of `recent` have these low bits: most new STags need no closer look.
  static constexpr uint32_t kFilter = 8192;
  uint16_t recent_like[kFilter] = {};

  ~Impl() {
    if (const Buckets* b = buckets.load(std::memory_order_relaxed)) {
      for (size_t i = 0; i <= b->mask; ++i) {
        const Slot* slot = b->at[i].load(std::memory_order_relaxed);
        if (slot && slot != removed() && slot->is_window()) delete slot->window;
      }
    }
    for (Buckets* b = buckets.load(std::memory_order_relaxed); b;) {
      Buckets* older = b->older;
      delete b;
      b = older;
    }
    while (chunks) {
      Chunk* next = chunks->next;
      delete chunks;
      chunks = next;
    }
  }

  // STags are random, so their index is as good a hash as any.
  static size_t home(const Buckets& b, uint32_t stag) { return (stag >> 8) & b.mask; }

  // The valid region or window of that STag.
  static Slot* look_up(const Buckets& b, uint32_t stag) {
    for (size_t i = home(b, stag);; i = (i + 1) & b.mask) {
      Slot* slot = b.at[i].load(std::memory_order_acquire);
      if (!slot) return nullptr;
      if (slot != removed() && slot->live_stag_.load(std::memory_order_relaxed) == stag)
        return slot;
    }
  }

  // Under the mutex. Null: that STag is no region's.
  Slot* valid_region(uint32_t stag) const {
    Slot* slot = stag ? with_index(stag) : nullptr;
    return slot && slot->live_stag_.load(std::memory_order_relaxed) == stag && !slot->is_window()
               ? slot
               : nullptr;
  }

  // Whoever has that index, whatever the key, valid or not. Under the mutex.
  Slot* with_index(uint32_t stag) const {
    const Buckets* b = buckets.load(std::memory_order_relaxed);
    if (!b) return nullptr;
    for (size_t i = home(*b, stag);; i = (i + 1) & b->mask) {
      Slot* slot = b->at[i].load(std::memory_order_relaxed);
      if (!slot) return nullptr;
      if (slot != removed() && index_of(slot->stag) == index_of(stag)) return slot;
    }
  }

  static void insert(Buckets& b, Slot* slot) {
    for (size_t i = home(b, slot->stag);; i = (i + 1) & b.mask) {
      Slot* there = b.at[i].load(std::memory_order_relaxed);
      if (!there || there == removed()) {
        b.at[i].store(slot, std::memory_order_release);
        return;
      }
    }
  }

  static void erase(Buckets& b, const Slot* slot) {
    size_t i = home(b, slot->stag);
    while (b.at[i].load(std::memory_order_relaxed) != slot) i = (i + 1) & b.mask;
    b.at[i].store(removed(), std::memory_order_relaxed);
    // A run of removed buckets in front of an empty one ends every search just the same when it
    // is empty: so the array never fills up with them.
    if (b.at[(i + 1) & b.mask].load(std::memory_order_relaxed)) return;
    while (b.at[i].load(std::memory_order_relaxed) == removed()) {
      b.at[i].store(nullptr, std::memory_order_relaxed);
      i = (i - 1) & b.mask;
    }
  }

  // Keeps at least three buckets of four without a live Region.
  bool make_room() {
    Buckets* old = buckets.load(std::memory_order_relaxed);
    const size_t size = old ? old->mask + 1 : 0;
    const size_t taken =
        regions.load(std::memory_order_relaxed) + windows.load(std::memory_order_relaxed);
    if ((taken + 1) * 4 <= size) return true;
    const size_t wanted = size ? size * 2 : 64;
    auto* grown = new (std::nothrow) Buckets{wanted - 1, old, nullptr};
    if (!grown) return false;
    grown->at.reset(new (std::nothrow) Bucket[wanted]);
    if (!grown->at) {
      delete grown;
      return false;
    }
    for (size_t i = 0; i < size; ++i) {
      Slot* slot = old->at[i].load(std::memory_order_relaxed);
      if (slot && slot != removed()) insert(*grown, slot);
    }
    buckets.store(grown, std::memory_order_release);
    return true;
  }

  Slot* take_slot() {
    if (!free_slots) {
      auto* chunk = new (std::nothrow) Chunk;
      if (!chunk) return nullptr;
      chunk->next = chunks;
      chunks = chunk;
      for (Slot& slot : chunk->slots) give_slot(&slot);
    }
    Slot* slot = free_slots;
    free_slots = slot->next_free;
    return slot;
  }

  void give_slot(Slot* slot) {
    slot->next_free = free_slots;
    free_slots = slot;
  }

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
    do {
      if (const int error = random.next(stag)) return error;
    } while (index_of(stag) == 0 || with_index(stag) || given_back_recently(index_of(stag)));
    return 0;
  }

  // A slot with a new STag that is not valid yet, and not to be found. ENOMEM, EAGAIN.
  core::Result<Slot*> new_slot() {
    if (!make_room()) return core::Errno{ENOMEM};
    Slot* slot = take_slot();
    if (!slot) return core::Errno{ENOMEM};
    if (const int error = choose_stag(slot->stag)) {
      give_slot(slot);
      return core::Errno{error};
    }
    return slot;
  }

  // Nobody finds it any more, and nobody has it.
  void revoke(Slot* slot) {
    slot->live_stag_.store(0, std::memory_order_seq_cst);
    for (const Side side : {Side::kSend, Side::kReceive}) {
      for (unsigned round = 0; slot->refs(side).load(std::memory_order_seq_cst) != 0; ++round) {
        // Whoever copies a little is done by then. Once is enough: who keeps a reference for long
        // has joined before, or finds out when it joins. None is kept of a memory window.
        if (round == kRoundsOfCopies && !slot->is_window()) ask_keepers();
        wait_a_little(round);
      }
    }
  }

  void ask_keepers();

  void link_to_stream(Window* window) {
    window->next = stream_windows;
    window->link = &stream_windows;
    if (window->next) window->next->link = &window->next;
    stream_windows = window;
  }

  // Ends a window's binding, if it has one. Waits with the mutex held: whoever holds a reference of
  // a window takes no lock and lets go after one copy.
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
