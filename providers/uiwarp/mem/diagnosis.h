// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Finds out why memory may not be used as requested, after the fact, for messages and vendor_err.
// Slow (it may search all regions), and it describes the state at the time of this call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cause.h"
#include "mem/table.h"

namespace uiw::mem {

// An access requested by an SGE or by the peer.
struct Wanted {
  uint32_t key = 0;
  uint64_t address = 0, length = 0;
  uint32_t rights = 0;  // Access
};

enum class Trouble : uint8_t {
  kNone,          // it is allowed now
  kUnknown,       // no region or bound window has this key
  kDeregistered,  // a region had it not long ago
  kUnbound,       // of a memory window that is not bound, or is bound with another key
  kWindow,        // of a memory window, which has no local key
  kOtherDomain,
  kOtherStream,  // of a memory window that is bound to another queue pair
  kRights,       // the region or window lacks them
  kStream,       // the region has them, qp_access_flags lacks them
  kWraps,
  kBounds,
  kSwappedKey,      // the key of a region with its bytes in the other order
  kSwappedAddress,  // an address within the region, likewise
};

struct Diagnosis {
  Trouble trouble = Trouble::kNone;
  uint32_t missing = 0;  // kRights, kStream: Access
  // The region that has the key, or the key with its bytes swapped; else the region of the
  // protection domain that is nearest to the address.
  struct Place {
    uint32_t key = 0;  // 0: there is none
    uint64_t start = 0, length = 0;
    uint32_t access = 0;
  } region;
  bool has_key = false;  // `region` is what the key names
};

// For an SGE in that protection domain; for a request of the peer of `stream`. The caller must hold
// no reference to a memory window. Thread: any.
Diagnosis diagnose_local(const Table& table, uint32_t pd, const Wanted& wanted);
Diagnosis diagnose_remote(const Table& table, const Stream& stream, const Wanted& wanted);

// Returns a clause such as "it ends 96 bytes behind the region, ..."; `key`: "lkey" or "rkey".
struct DiagnosisText {
  char text[256];
};
DiagnosisText describe(const Diagnosis& diagnosis, const Wanted& wanted, const char* key);

// The vendor_err of the request with that SGE.
core::Cause cause_of(Trouble trouble);

}  // namespace uiw::mem
