// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "mem/diagnosis.h"

#include <cinttypes>
#include <cstdio>

#include "mem/table_impl.h"

namespace uiw::mem {

namespace {

Diagnosis::Place place_of(const Region& region) {
  return {region.stag, region.start, region.length, region.access};
}

bool within(const Diagnosis::Place& region, uint64_t address, uint64_t length) {
  return address >= region.start && length <= region.length &&
         address - region.start <= region.length - length;
}

// Bytes between the wanted range and the region; 0 if they touch or overlap.
uint64_t distance(const Diagnosis::Place& region, const Wanted& wanted) {
  if (wanted.address >= region.start + region.length)
    return wanted.address - (region.start + region.length);
  const uint64_t end = wanted.address + wanted.length;
  return end < region.start ? region.start - end : 0;
}

Trouble trouble_of(Fault fault, const Region& region, const Stream& stream, const Wanted& wanted,
                   Diagnosis& out) {
  switch (fault) {
    case Fault::kNone:
      return Trouble::kNone;
    case Fault::kProtectionDomain:
      return region.pd != stream.pd ? Trouble::kOtherDomain : Trouble::kOtherStream;
    case Fault::kRights:
      out.missing = wanted.rights & ~region.access;
      if (out.missing) return Trouble::kRights;
      out.missing = wanted.rights & ~stream.rights;
      return Trouble::kStream;
    case Fault::kWrap:
      return Trouble::kWraps;
    case Fault::kBounds:
      return within(place_of(region), __builtin_bswap64(wanted.address), wanted.length)
                 ? Trouble::kSwappedAddress
                 : Trouble::kBounds;
  }
  return Trouble::kNone;
}

struct Right {
  uint32_t bit;
  const char* name;
};
constexpr Right kRights[] = {{kLocalWrite, "IBV_ACCESS_LOCAL_WRITE"},
                             {kRemoteWrite, "IBV_ACCESS_REMOTE_WRITE"},
                             {kRemoteRead, "IBV_ACCESS_REMOTE_READ"},
                             {kRemoteAtomic, "IBV_ACCESS_REMOTE_ATOMIC"}};

const char* name_of(uint32_t missing) {
  for (const Right& right : kRights)
    if (missing & right.bit) return right.name;
  return "a right";
}

}  // namespace

// Looks for the region or window that has the key, and for the nearest region.
class Diagnostician {
 public:
  template <class Check>
  static Diagnosis look(const Table& table, const Stream& stream, const Wanted& wanted,
                        Check&& check) {
    Diagnosis out;
    if (!table.impl_) return out;
    Table::Impl& impl = *table.impl_;
    const std::lock_guard lock(impl.mutex);
    const Table::Impl::Slot* const slot = wanted.key ? impl.with_index(wanted.key) : nullptr;
    if (has(slot, wanted.key)) {
      out.has_key = true;
      out.region = place_of(*slot);
      out.trouble = check(*slot, out);
      return out;
    }
    const uint32_t swapped = __builtin_bswap32(wanted.key);
    const Table::Impl::Slot* const other = swapped ? impl.with_index(swapped) : nullptr;
    if (has(other, swapped)) {
      out.trouble = Trouble::kSwappedKey;
      out.region = place_of(*other);
      return out;
    }
    if (slot && slot->is_window()) {
      out.trouble = Trouble::kUnbound;
      return out;
    }
    out.trouble = wanted.key && impl.given_back_recently(index_of(wanted.key))
                      ? Trouble::kDeregistered
                      : Trouble::kUnknown;
    out.region = nearest(impl, stream.pd, wanted);
    return out;
  }

 private:
  static bool has(const Table::Impl::Slot* slot, uint32_t key) {
    return slot && slot->live_stag_.load(std::memory_order_relaxed) == key;
  }
  static Diagnosis::Place nearest(const Table::Impl& impl, uint32_t pd, const Wanted& wanted) {
    Diagnosis::Place found;
    uint64_t least = ~uint64_t{0};
    impl.buckets.for_each([&](const Table::Impl::Slot* slot) {
      if (slot->is_window() || slot->pd != pd) return;
      const Diagnosis::Place place = place_of(*slot);
      const uint64_t away = distance(place, wanted);
      if (found.key != 0 && away >= least) return;
      found = place;
      least = away;
    });
    return found;
  }
};

Diagnosis diagnose_local(const Table& table, uint32_t pd, const Wanted& wanted) {
  const Stream stream{.pd = pd};
  return Diagnostician::look(table, stream, wanted, [&](const Region& region, Diagnosis& out) {
    if (region.is_window()) return Trouble::kWindow;
    const Fault fault = check(region, pd, wanted.address, wanted.length, wanted.rights);
    return trouble_of(fault, region, stream, wanted, out);
  });
}

Diagnosis diagnose_remote(const Table& table, const Stream& stream, const Wanted& wanted) {
  return Diagnostician::look(table, stream, wanted, [&](const Region& region, Diagnosis& out) {
    const Fault fault = check_remote(region, stream, wanted.address, wanted.length, wanted.rights);
    return trouble_of(fault, region, stream, wanted, out);
  });
}

DiagnosisText describe(const Diagnosis& diagnosis, const Wanted& wanted, const char* key) {
  DiagnosisText out;
  const Diagnosis::Place& region = diagnosis.region;
  const auto say = [&](const char* what) {
    std::snprintf(out.text, sizeof out.text, "%s", what);
    return out;
  };
  // The region as it was registered, or the nearest one.
  char place[96] = "";
  if (region.key != 0)
    std::snprintf(place, sizeof place, "%" PRIu64 " bytes from 0x%" PRIx64, region.length,
                  region.start);
  const auto say_nearest = [&](const char* what) {
    if (region.key == 0)
      std::snprintf(out.text, sizeof out.text,
                    "%s, and no region is registered in this protection domain", what);
    else
      std::snprintf(out.text, sizeof out.text,
                    "%s; the nearest region of this protection domain is %s 0x%08x, %s", what, key,
                    region.key, place);
    return out;
  };
  switch (diagnosis.trouble) {
    case Trouble::kNone:
      return say("it would be allowed by now: the region has been changed meanwhile");
    case Trouble::kUnknown:
      return say_nearest("no memory region has this key");
    case Trouble::kDeregistered:
      return say_nearest("the region was deregistered (ibv_dereg_mr) before");
    case Trouble::kUnbound:
      return say(
          "the memory window is not bound, or with another key: it was invalidated, or "
          "bound anew");
    case Trouble::kWindow:
      return say(
          "this is the key of a memory window, which has no lkey: name the region that it is "
          "bound to");
    case Trouble::kOtherDomain:
      return say("the region belongs to another protection domain than the queue pair");
    case Trouble::kOtherStream:
      return say("the memory window is bound to another queue pair");
    case Trouble::kRights:
      std::snprintf(out.text, sizeof out.text, "the region (%s) was registered without %s", place,
                    name_of(diagnosis.missing));
      return out;
    case Trouble::kStream:
      std::snprintf(out.text, sizeof out.text,
                    "the region has %s, but qp_access_flags of the queue pair do not "
                    "(ibv_modify_qp with IBV_QP_ACCESS_FLAGS)",
                    name_of(diagnosis.missing));
      return out;
    case Trouble::kWraps:
      return say("address and length go beyond the end of the address space");
    case Trouble::kSwappedKey:
      std::snprintf(out.text, sizeof out.text,
                    "no memory region has this key, but with its bytes in the other order it is "
                    "%s 0x%08x, %s: give it in one byte order at both ends (htonl, ntohl)",
                    key, region.key, place);
      return out;
    case Trouble::kSwappedAddress:
      std::snprintf(out.text, sizeof out.text,
                    "with its bytes in the other order, 0x%" PRIx64
                    ", the address lies within the region, which has %s: give it in one byte order "
                    "at both ends (htobe64, be64toh)",
                    __builtin_bswap64(wanted.address), place);
      return out;
    case Trouble::kBounds:
      if (wanted.address < region.start) {
        std::snprintf(out.text, sizeof out.text,
                      "it begins %" PRIu64 " bytes before the region, which has %s",
                      region.start - wanted.address, place);
      } else {
        std::snprintf(out.text, sizeof out.text,
                      "it ends %" PRIu64 " bytes behind the region, which has %s",
                      wanted.address - region.start + wanted.length - region.length, place);
      }
      return out;
  }
  return out;
}

core::Cause cause_of(Trouble trouble) {
  switch (trouble) {
    case Trouble::kNone:
      return core::Cause::kKeyChanged;
    case Trouble::kUnknown:
    case Trouble::kSwappedKey:
      return core::Cause::kKeyUnknown;
    case Trouble::kDeregistered:
      return core::Cause::kKeyDeregistered;
    case Trouble::kUnbound:
    case Trouble::kWindow:
      return core::Cause::kKeyOfWindow;
    case Trouble::kOtherDomain:
    case Trouble::kOtherStream:
      return core::Cause::kKeyOfOtherDomain;
    case Trouble::kRights:
    case Trouble::kStream:
      return core::Cause::kRightMissing;
    case Trouble::kWraps:
      return core::Cause::kAddressWraps;
    case Trouble::kBounds:
    case Trouble::kSwappedAddress:
      return core::Cause::kOutOfBounds;
  }
  return core::Cause::kNone;
}

}  // namespace uiw::mem
