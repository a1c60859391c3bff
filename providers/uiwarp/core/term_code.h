// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Terminate coordinates: Layer(4) | EType(4) | Error Code(8), as RFC 5040 section 4.8 puts them
// on the wire. The one list of all errors that RFC 5040 fig. 9, RFC 5041 section 7.2,
// RFC 5044 section 8 and RFC 6581 section 8 define.
#pragma once

#include <cstdint>

namespace uiw::core {

enum class TermCode : uint16_t {
  // RDMAP layer
  kLocalCatastrophic = 0x0000,
  kRemoteInvalidStag = 0x0100,
  kRemoteBounds = 0x0101,
  kRemoteAccess = 0x0102,
  kRemoteStagNotAssociated = 0x0103,
  kRemoteToWrap = 0x0104,
  kRemoteCannotInvalidate = 0x0109,
  kRemoteProtectionUnspecified = 0x01ff,
  kInvalidRdmapVersion = 0x0205,
  kUnexpectedOpcode = 0x0206,
  kStreamCatastrophic = 0x0207,
  kGlobalCatastrophic = 0x0208,
  kOperationCannotInvalidate = 0x0209,
  kRemoteOperationUnspecified = 0x02ff,
  // DDP layer
  kDdpLocalCatastrophic = 0x1000,
  kTaggedInvalidStag = 0x1100,
  kTaggedBounds = 0x1101,
  kTaggedStagNotAssociated = 0x1102,
  kTaggedToWrap = 0x1103,
  kTaggedInvalidVersion = 0x1104,
  kUntaggedInvalidQn = 0x1201,
  kUntaggedNoBuffer = 0x1202,
  kUntaggedMsnRange = 0x1203,
  kUntaggedInvalidMo = 0x1204,
  kUntaggedTooLong = 0x1205,
  kUntaggedInvalidVersion = 0x1206,
  // MPA layer
  kMpaConnectionLost = 0x2001,  // reported locally, never sent
  kMpaCrc = 0x2002,
  kMpaMarker = 0x2003,
  kMpaStartupFrame = 0x2004,  // reported locally: RFC 5044 section 8 closes without a Terminate
  kMpaLocalCatastrophic = 0x2005,
  kMpaInsufficientIrd = 0x2006,
  kMpaNoMatchingRtr = 0x2007,
};

constexpr uint8_t layer_of(TermCode c) {
  return static_cast<uint16_t>(c) >> 12;
}
constexpr uint8_t etype_of(TermCode c) {
  return (static_cast<uint16_t>(c) >> 8) & 0xf;
}
constexpr uint8_t code_of(TermCode c) {
  return static_cast<uint16_t>(c) & 0xff;
}

// Whether an RFC defines this code. With an RDMAP local catastrophic error any code octet is valid.
bool is_defined(TermCode code);

// A sentence for logs and error messages; never null, even for codes that no RFC defines.
const char* describe(TermCode code);

// A clause that says what the receiver of the Terminate can check; never null.
const char* advice(TermCode code);

}  // namespace uiw::core
