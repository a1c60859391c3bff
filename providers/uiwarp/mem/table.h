// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The memory table: STag -> registered memory. Lookups are lock-free and hold a reference, so that
// deregistration returns only when no byte can be placed into the memory any more (RFC
// 5042 6.2.2).
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
  kOnDemand = 1u << 6,  // without meaning here: ibv_advise_mr asks
};

enum class Kind : uint8_t { kRegion, kWindow1, kWindow2 };
enum class WindowType : uint8_t { kType1 = 1, kType2 = 2 };  // values of ibv_mw_type

// An STag is an index, which the table chooses, and a key, which changes from binding to binding of
// a memory window (ibv_inc_rkey).
inline constexpr uint32_t kKeyMask = 0xff;
inline constexpr uint32_t index_of(uint32_t stag) {
  return stag >> 8;
}

// Who asks: RFC 5041 8.2 knows STags that belong to a protection domain and STags that belong to a
// single stream. `id` is the number of the queue pair whose stream it is, never 0.
struct Stream {
  uint32_t pd = 0;
  uint32_t id = 0;
  uint32_t rights =
      ~0u;  // what its peer may do at all, whatever the region allows: qp_access_flags
};

// What holds a reference. Each side counts in a cache line of its own: programs send from and
// receive to one region, and on two processors the line would go to and fro with every message.
enum class Side : uint8_t { kReceive, kSend };

// One registration, or one bound memory window. All fields are constant while the STag is valid.
struct alignas(64) Region {
  uint32_t stag = 0;
  uint32_t pd = 0;      // protection domain id
  uint32_t stream = 0;  // the only one that may use it; 0: all of the protection domain

 private:
  friend class Table;
  friend class Diagnostician;
  LiveStag live_stag_{0};  // == stag while valid, 0 otherwise

 public:
  uint64_t start = 0;  // first TO / virtual address as the peer and SGEs name it (iova)
  uint64_t length = 0;
  uint8_t* memory = nullptr;  // where `start` lies in this process
  Kind kind = Kind::kRegion;
  uint8_t access = 0;  // Access bits; a window has remote rights only

  bool is_window() const { return kind != Kind::kRegion; }
  // Whether that STag still names it. For a holder of a reference.
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
  RefCount* count_ = nullptr;  // of the references, this one among them
};

// Holds references of regions for longer than a copy takes, until others have done something: a
// sender whose socket is full.
class PinHolder {
 public:
  // Somebody waits for a region that is no longer valid, perhaps one that is held here: to be given
  // back soon. Must neither block nor call the table. Thread: any.
  virtual void give_back() = 0;

  core::ListLink<PinHolder> among_pin_holders;  // the table's

 protected:
  ~PinHolder() = default;
};

// What a memory window is to show of a region.
struct Binding {
  uint32_t window = 0;  // an STag that the window has or had; its index counts
  uint32_t stag = 0;    // the one it gets: same index, any key
  uint32_t region = 0;  // STag of the region; without meaning when a type 1 window is unbound
  uint32_t access = 0;  // kRemoteWrite, kRemoteRead, kRemoteAtomic; kZeroBased: TOs begin at 0
  uint64_t start = 0;   // as SGEs would name it
  uint64_t length = 0;
};

enum class Invalidation {
  kDone,
  kNotAssociated,  // it belongs to another protection domain or stream
  kNotPossible,    // not valid, or not an STag that may be invalidated
};

// When an STag that was given back is another registration's or window's.
enum class Reuse : uint8_t {
  kLate,    // as late as can be
  kAtOnce,  // the last one given back is the next one's, with its key: for programs under --shake,
            // which may rely on a stale one to be refused. RFC 5040 8.1.1 only recommends otherwise
};

class Table {
 public:
  explicit Table(Reuse reuse = Reuse::kLate);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // Regions and memory windows at the same time, whatever `max` says.
  static constexpr size_t kCapacity = 1u << 21;

  // Adds a registration and chooses its STag: 24 random bits of index, 8 of key, never 0; no index
  // that is among the last 1,024 given back (RFC 5040 8.1.1(8)), but of Reuse::kAtOnce. ENOMEM at
  // the limit of `max`.
  // Thread: any. Does not check that the memory is mapped: see mapping.h.
  core::Result<uint32_t> add(uint32_t pd, uint8_t* memory, uint64_t start, uint64_t length,
                             uint32_t access, size_t max);

  // Revokes and waits until there is no reference. EINVAL when there is no such region; EBUSY
  // while a memory window is bound to it.
  // Thread: any that holds no RegionRef of it, and that no PinHolder needs to give it back.
  // Unbounded only if a reference is never dropped, though the pin holders were asked.
  int remove(uint32_t stag);

  // Grants and revokes rights of a region that keeps its STag, which is not valid meanwhile. Waits,
  // and errors, as remove().
  int change_access(uint32_t stag, uint32_t access);

  // From join() until leave() has returned `holder` is asked by threads that wait. What was revoked
  // a moment before join() it finds itself (Region::is_live). Not twice. Thread: any.
  void join(PinHolder& holder);
  void leave(PinHolder& holder);

  // A new memory window, not bound. Its STag is not valid but names the window. ENOMEM at the limit
  // of `max` windows. Thread: any, as all of the following.
  core::Result<uint32_t> add_window(uint32_t pd, WindowType type, size_t max);
  // Any STag of that index. Ends its binding. EINVAL: no such window.
  int remove_window(uint32_t stag);
  // The same index with another, unpredictable key.
  core::Result<uint32_t> other_key(uint32_t stag);

  // Binds a window on behalf of `stream`, whose own a type 2 one becomes. With a length of 0 a type
  // 1 window is unbound. EINVAL: no such window or region, range, access or index; EPERM: of
  // another protection domain; EACCES: the region does not allow it (kMwBind; kLocalWrite for
  // writes and atomics); EBUSY: of type 2 and bound.
  int bind(const Stream& stream, const Binding& binding);
  // Ends the binding of the type 2 window that has this STag. As with remove(), no byte is placed
  // through it afterwards. The caller holds no RegionRef of a window; nobody keeps one for longer
  // than a copy takes.
  Invalidation invalidate(const Stream& stream, uint32_t stag);
  // The queue pair is no more: ends the bindings of its windows.
  void end_stream(uint32_t id);

  // Lock-free. An empty ref when the STag is unknown, stale or 0. Thread: any.
  RegionRef find(uint32_t stag, Side side = Side::kReceive) const;

  size_t size() const;  // regions
  size_t windows() const;

  // Bytes of memory that are in use by what grows and shrinks with the number of regions. Thread:
  // any.
  size_t footprint() const;

 private:
  friend class Diagnostician;  // diagnosis.h
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What can be wrong with an access, in the order RFC 5041 7.1 / conformance A14 wants it told.
// kProtectionDomain: not associated with this stream, by its domain or otherwise.
enum class Fault { kNone, kProtectionDomain, kRights, kWrap, kBounds };

inline Fault check_range(const Region& region, uint64_t to, uint64_t length) {
  if (to + length < to) return Fault::kWrap;
  if (to < region.start || length > region.length || to - region.start > region.length - length)
    return Fault::kBounds;
  return Fault::kNone;
}

// Checks [to, to+length) of `region` as the SGE of a queue pair of protection domain `pd`. A memory
// window has no local key.
inline Fault check(const Region& region, uint32_t pd, uint64_t to, uint64_t length,
                   uint32_t needed) {
  if (region.pd != pd) return Fault::kProtectionDomain;
  if (region.is_window() || (region.access & needed) != needed) return Fault::kRights;
  return check_range(region, to, length);
}

// Checks what the peer at the other end of `stream` wants.
inline Fault check_remote(const Region& region, const Stream& stream, uint64_t to, uint64_t length,
                          uint32_t needed) {
  if (region.pd != stream.pd) return Fault::kProtectionDomain;
  if (region.stream != 0 && region.stream != stream.id) return Fault::kProtectionDomain;
  if ((region.access & stream.rights & needed) != needed) return Fault::kRights;
  return check_range(region, to, length);
}

}  // namespace uiw::mem
