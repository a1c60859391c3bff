// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Why memory may not be used as was asked: looked up after the fact, for messages and vendor_err.
// Slow (it may look at every region), and what it finds is how things are by now.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cause.h"
#include "mem/table.h"

namespace uiw::mem {

// What was asked for, by an SGE or by the peer.
struct Wanted {
  uint32_t key = 0;
  uint64_t address = 0, length = 0;
  uint32_t rights = 0;  // Access
};

enum class Trouble : uint8_t {
  kNone,          // it would be allowed by now
  kUnknown,       // no region or bound window has this key
  kDeregistered,  // one had, not long ago
  kUnbound,       // it is a memory window's that is not bound, or was bound with another key
  kWindow,        // it is a memory window's, and those have no local key
  kOtherDomain,
  kOtherStream,  // it is a memory window's that is bound to another queue pair
  kRights,       // the region, or window, does not have them
  kStream,       // the region has them, qp_access_flags do not
  kWraps,
  kBounds,
  kSwappedKey,      // the key of a region with its bytes in the other order
  kSwappedAddress,  // an address within the region, likewise
};

struct Diagnosis {
  Trouble trouble = Trouble::kNone;
  uint32_t missing = 0;  // kRights, kStream: Access
  // What has the key, or would have it with its bytes in the other order; else that region of the
  // protection domain that is nearest to the address.
  struct Place {
    uint32_t key = 0;  // 0: there is none
    uint64_t start = 0, length = 0;
    uint32_t access = 0;
  } region;
  bool has_key = false;  // `region` is what the key names
};

// Of an SGE of that protection domain; of what the peer at the other end of `stream` asks for. The
// caller holds no reference of a memory window. Thread: any.
Diagnosis diagnose_local(const Table& table, uint32_t pd, const Wanted& wanted);
Diagnosis diagnose_remote(const Table& table, const Stream& stream, const Wanted& wanted);

// Writes a sentence without its end, "ends 96 bytes behind its region, ..."; `key`: "lkey" or
// "rkey". Returns `text`.
struct DiagnosisText {
  char text[256];
};
DiagnosisText describe(const Diagnosis& diagnosis, const Wanted& wanted, const char* key);

// vendor_err of the request whose SGE it was.
core::Cause cause_of(Trouble trouble);

}  // namespace uiw::mem
