// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The Terminate code for a Read or Atomic Request that names memory which the peer may not use.
#pragma once

#include "core/term_code.h"
#include "mem/table.h"

namespace uiw::qp {

// RFC 5040 fig. 9, Remote Protection Error. Not for kNone.
inline core::TermCode remote_protection_code(mem::Fault fault) {
  switch (fault) {
    case mem::Fault::kNone:
      break;
    case mem::Fault::kProtectionDomain:
      return core::TermCode::kRemoteStagNotAssociated;
    case mem::Fault::kRights:
      return core::TermCode::kRemoteAccess;
    case mem::Fault::kWrap:
      return core::TermCode::kRemoteToWrap;
    case mem::Fault::kBounds:
      return core::TermCode::kRemoteBounds;
  }
  return core::TermCode::kRemoteProtectionUnspecified;
}

}  // namespace uiw::qp
