// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The memory table: STag -> registered memory. Look-ups are lock-free and take a reference. So
// deregistration returns only when no byte can be placed into the memory any more (RFC 5042 6.2.2).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/list.h"
#include "core/result.h"
#include "mem/holding.h"

namespace uiw::mem {

enum Access : uint32_t {  // values of ibv_access_flags
  kLocalWrite = 1u << 0,
  kRemoteWrite = 1u << 1,
  kRemoteRead = 1u << 2,
  kRemoteAtomic = 1u << 3,
  kMwBind = 1u << 4,
  kZeroBased = 1u << 5,
  kOnDemand = 1u << 6,  // no effect in the table; ibv_advise_mr checks it
};

enum class Kind : uint8_t { kRegion, kWindow1, kWindow2 };
enum class WindowType : uint8_t { kType1 = 1, kType2 = 2 };  // values of ibv_mw_type

// An STag is an index, which the table chooses, and a key, which changes from binding to binding of
// a memory window (ibv_inc_rkey).
inline constexpr uint32_t kKeyMask = 0xff;
inline constexpr uint32_t index_of(uint32_t stag) {
  return stag >> 8;
}

// The requester: by RFC 5041 8.2 an STag belongs to a protection domain or to a single stream. `id`
// is the number of the queue pair whose stream it is, never 0.
struct Stream {
  uint32_t pd = 0;
  uint32_t id = 0;
  uint32_t rights = ~0u;  // limit of the peer's rights on all regions: qp_access_flags
};

// The side that holds a reference. Each side counts in a cache line of its own: programs send from
// and receive to one region, and with two processors a shared line would move between them with
// every message.
enum class Side : uint8_t { kReceive, kSend };

// One registration, or one bound memory window. All fields are constant while the STag is valid.
struct alignas(64) Region {
  uint32_t stag = 0;
  uint32_t pd = 0;      // protection domain id
  uint32_t stream = 0;  // the only stream that may use it; 0: all streams of the protection domain

 private:
  friend class Table;
  friend class Diagnostician;
  LiveStag live_stag_{0};  // == stag while valid, 0 otherwise

 public:
  uint64_t start = 0;  // first TO or virtual address in SGEs and for the peer (iova)
  uint64_t length = 0;
  uint8_t* memory = nullptr;  // address of `start` in this process
  Kind kind = Kind::kRegion;
  uint8_t access = 0;  // Access bits; a window has remote rights only

  bool is_window() const { return kind != Kind::kRegion; }
  // Whether that STag is still valid. For a holder of a reference.
  bool is_live(uint32_t wanted) const {
    return live_stag_.load(std::memory_order_relaxed) == wanted;
  }
};

// Keeps a Region valid; movable, releases on destruction.
class RegionRef {
 public:
  RegionRef() = default;
  RegionRef(RegionRef&& other) noexcept : region_(other.region_), count_(other.count_) {
    other.region_ = nullptr;
  }
  RegionRef& operator=(RegionRef&& other) noexcept {
    if (this != &other) {
      reset();
      region_ = other.region_;
      count_ = other.count_;
      other.region_ = nullptr;
    }
    return *this;
  }
  ~RegionRef() { reset(); }
  void reset() {
    if (region_) let_go(*count_);
    region_ = nullptr;
  }
  explicit operator bool() const { return region_; }
  const Region* operator->() const { return region_; }
  const Region& operator*() const { return *region_; }

 private:
  friend class Table;
  RegionRef(const Region* region, RefCount* count) : region_(region), count_(count) {}
  const Region* region_ = nullptr;
  RefCount* count_ = nullptr;  // counts the references, with this one
};

// An object that holds references to regions for longer than a copy takes, as it waits for others:
// a sender whose socket is full.
class PinHolder {
 public:
  // A thread waits for a revoked region, perhaps one that is held here: give references back soon.
  // Must neither block nor call the table. Thread: any.
  virtual void give_back() = 0;

  core::ListLink<PinHolder> among_pin_holders;  // used by the table

 protected:
  ~PinHolder() = default;
};

// The part of a region that a memory window opens.
struct Binding {
  uint32_t window = 0;  // an STag that the window has or had; only the index is used
  uint32_t stag = 0;    // its new STag: same index, any key
  uint32_t region = 0;  // STag of the region; ignored when a type 1 window is unbound
  uint32_t access = 0;  // kRemoteWrite, kRemoteRead, kRemoteAtomic; kZeroBased: TOs begin at 0
  uint64_t start = 0;   // address as in SGEs
  uint64_t length = 0;
};

enum class Invalidation {
  kDone,
  kNotAssociated,  // it belongs to another protection domain or stream
  kNotPossible,    // not valid, or not an STag that may be invalidated
};

// When an STag that was given back is reused.
enum class Reuse : uint8_t {
  kLate,    // as late as possible
  kAtOnce,  // the next registration gets the last STag given back, with its key: for programs under
            // --shake, which may rely on stale STags being refused. RFC 5040 8.1.1 only recommends
            // that
};

class Table {
 public:
  explicit Table(Reuse reuse = Reuse::kLate);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // Limit of regions and memory windows together, regardless of `max`.
  static constexpr size_t kCapacity = 1u << 21;

  // Adds a registration and chooses its STag: 24 random bits of index, 8 of key, never 0. Except
  // with Reuse::kAtOnce, the index is not among the last 1,024 given back (RFC 5040 8.1.1(8)).
  // ENOMEM at the limit of `max`. Does not check that the memory is mapped: see mapping.h. Thread:
  // any.
  core::Result<uint32_t> add(uint32_t pd, uint8_t* memory, uint64_t start, uint64_t length,
                             uint32_t access, size_t max);

  // Revokes the STag and waits until there is no reference. EINVAL when there is no such region;
  // EBUSY while a memory window is bound to it. Thread: any that holds no RegionRef to it, and that
  // no PinHolder needs to give it back. The wait is unbounded only if a reference is never dropped
  // although the pin holders were asked.
  int remove(uint32_t stag);

  // Changes the rights of a region, which keeps its STag; the STag is not valid meanwhile. Waits
  // and returns errors like remove().
  int change_access(uint32_t stag, uint32_t access);

  // From join() until leave() has returned, waiting threads call holder.give_back(). The holder
  // must find STags that were revoked before join() by itself (Region::is_live). Do not join twice.
  // Thread: any.
  void join(PinHolder& holder);
  void leave(PinHolder& holder);

  // Adds a memory window, not bound. Its STag names the window but is not valid. ENOMEM at the
  // limit of `max` windows. Thread: any; also for all of the following.
  core::Result<uint32_t> add_window(uint32_t pd, WindowType type, size_t max);
  // Removes a window, given any STag with its index. Ends its binding. EINVAL: no such window.
  int remove_window(uint32_t stag);
  // An STag with the same index and another, unpredictable key.
  core::Result<uint32_t> other_key(uint32_t stag);

  // Binds a window for `stream`; a type 2 window then belongs to that stream. A length of 0 unbinds
  // a type 1 window. EINVAL: no such window or region, or bad range, access or index; EPERM: of
  // another protection domain; EACCES: the region does not allow it (kMwBind; kLocalWrite for
  // writes and atomics); EBUSY: a type 2 window that is bound.
  int bind(const Stream& stream, const Binding& binding);
  // Ends the binding of the type 2 window with this STag. As with remove(), no byte is placed
  // through it afterwards. The caller must hold no RegionRef to a window; no thread keeps one for
  // longer than a copy takes.
  Invalidation invalidate(const Stream& stream, uint32_t stag);
  // The queue pair was destroyed or reset: ends the bindings of its windows.
  void end_stream(uint32_t id);

  // Lock-free. Returns an empty reference when the STag is unknown, stale or 0. Thread: any.
  RegionRef find(uint32_t stag, Side side = Side::kReceive) const;

  size_t size() const;  // regions
  size_t windows() const;

  // Bytes in use by the parts that grow and shrink with the number of regions. Thread: any.
  size_t footprint() const;

 private:
  friend class Diagnostician;  // diagnosis.h
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The errors of an access, in the order in which RFC 5041 7.1 / conformance A14 require them to be
// reported. kProtectionDomain: not associated with this stream, by its domain or otherwise.
enum class Fault { kNone, kProtectionDomain, kRights, kWrap, kBounds };

inline Fault check_range(const Region& region, uint64_t to, uint64_t length) {
  if (to + length < to) return Fault::kWrap;
  if (to < region.start || length > region.length || to - region.start > region.length - length)
    return Fault::kBounds;
  return Fault::kNone;
}

// Checks [to, to+length) of `region` as an SGE of a queue pair in protection domain `pd`. A memory
// window has no local key.
inline Fault check(const Region& region, uint32_t pd, uint64_t to, uint64_t length,
                   uint32_t needed) {
  if (region.pd != pd) return Fault::kProtectionDomain;
  if (region.is_window() || (region.access & needed) != needed) return Fault::kRights;
  return check_range(region, to, length);
}

// Checks a request of the peer of `stream`.
inline Fault check_remote(const Region& region, const Stream& stream, uint64_t to, uint64_t length,
                          uint32_t needed) {
  if (region.pd != stream.pd) return Fault::kProtectionDomain;
  if (region.stream != 0 && region.stream != stream.id) return Fault::kProtectionDomain;
  if ((region.access & stream.rights & needed) != needed) return Fault::kRights;
  return check_range(region, to, length);
}

}  // namespace uiw::mem
