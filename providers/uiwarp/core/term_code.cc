// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/term_code.h"

namespace uiw::core {
namespace {

// RFC 5040 fig. 9: any code octet may go with a local catastrophic error.
bool is_local_catastrophic(TermCode code) {
  return layer_of(code) == 0 && etype_of(code) == 0;
}

// Null for codes that no RFC defines. The compiler warns about a missing case.
const char* name_of(TermCode code) {
  switch (code) {
    case TermCode::kLocalCatastrophic:
      return "RDMAP: local catastrophic error of the end that says so";
    case TermCode::kRemoteInvalidStag:
      return "RDMAP: remote protection error, invalid STag";
    case TermCode::kRemoteBounds:
      return "RDMAP: remote protection error, outside the bounds of the memory region";
    case TermCode::kRemoteAccess:
      return "RDMAP: remote protection error, access right missing";
    case TermCode::kRemoteStagNotAssociated:
      return "RDMAP: remote protection error, STag belongs to another stream";
    case TermCode::kRemoteToWrap:
      return "RDMAP: remote protection error, tagged offset wraps";
    case TermCode::kRemoteCannotInvalidate:
      return "RDMAP: remote protection error, STag cannot be invalidated";
    case TermCode::kRemoteProtectionUnspecified:
      return "RDMAP: remote protection error, unspecified";
    case TermCode::kInvalidRdmapVersion:
      return "RDMAP: invalid RDMAP version";
    case TermCode::kUnexpectedOpcode:
      return "RDMAP: unexpected opcode";
    case TermCode::kStreamCatastrophic:
      return "RDMAP: catastrophic error of this stream";
    case TermCode::kGlobalCatastrophic:
      return "RDMAP: catastrophic error of the whole device";
    case TermCode::kOperationCannotInvalidate:
      return "RDMAP: remote operation error, STag cannot be invalidated";
    case TermCode::kRemoteOperationUnspecified:
      return "RDMAP: remote operation error, unspecified";
    case TermCode::kDdpLocalCatastrophic:
      return "DDP: local catastrophic error of the end that says so";
    case TermCode::kTaggedInvalidStag:
      return "DDP: tagged message with an invalid STag";
    case TermCode::kTaggedBounds:
      return "DDP: tagged message outside the bounds of the memory region";
    case TermCode::kTaggedStagNotAssociated:
      return "DDP: tagged message, STag belongs to another stream";
    case TermCode::kTaggedToWrap:
      return "DDP: tagged message, tagged offset wraps";
    case TermCode::kTaggedInvalidVersion:
      return "DDP: tagged message with an invalid DDP version";
    case TermCode::kUntaggedInvalidQn:
      return "DDP: untagged message with an invalid queue number";
    case TermCode::kUntaggedNoBuffer:
      return "DDP: untagged message for which no buffer was posted";
    case TermCode::kUntaggedMsnRange:
      return "DDP: untagged message with an unexpected sequence number";
    case TermCode::kUntaggedInvalidMo:
      return "DDP: untagged message with an invalid message offset";
    case TermCode::kUntaggedTooLong:
      return "DDP: untagged message longer than the buffer posted for it";
    case TermCode::kUntaggedInvalidVersion:
      return "DDP: untagged message with an invalid DDP version";
    case TermCode::kMpaConnectionLost:
      return "MPA: TCP connection closed, terminated or lost";
    case TermCode::kMpaCrc:
      return "MPA: CRC error";
    case TermCode::kMpaMarker:
      return "MPA: marker and FPDU length disagree";
    case TermCode::kMpaStartupFrame:
      return "MPA: invalid MPA Request or Reply frame";
    case TermCode::kMpaLocalCatastrophic:
      return "MPA: local catastrophic error of the end that says so";
    case TermCode::kMpaInsufficientIrd:
      return "MPA: insufficient inbound read resources (IRD)";
    case TermCode::kMpaNoMatchingRtr:
      return "MPA: no ready-to-receive frame that both ends can use";
  }
  return nullptr;
}

// For codes that no RFC defines: a peer may send anything (conformance TE-17).
const char* describe_layer(TermCode code) {
  switch (layer_of(code)) {
    case 0:
      return "RDMAP: error that RFC 5040 does not define";
    case 1:
      return "DDP: error that RFC 5041 does not define";
    case 2:
      return "MPA: error that RFC 5044 and RFC 6581 do not define";
    default:
      return "error of a layer that RFC 5040 does not define";
  }
}

}  // namespace

bool is_defined(TermCode code) {
  return is_local_catastrophic(code) || name_of(code) != nullptr;
}

const char* describe(TermCode code) {
  if (is_local_catastrophic(code)) code = TermCode::kLocalCatastrophic;
  const char* name = name_of(code);
  return name != nullptr ? name : describe_layer(code);
}

const char* advice(TermCode code) {
  switch (code) {
    case TermCode::kLocalCatastrophic:
      return "it found an error of its own, which nothing sent from here is to blame for: its own "
             "messages say which";
    case TermCode::kRemoteInvalidStag:
    case TermCode::kTaggedInvalidStag:
      return "is it the rkey of a region that is still registered there, with remote access?";
    case TermCode::kRemoteBounds:
    case TermCode::kTaggedBounds:
    case TermCode::kRemoteToWrap:
    case TermCode::kTaggedToWrap:
      return "do remote address and length lie within the region there?";
    case TermCode::kRemoteAccess:
      return "was it registered there with IBV_ACCESS_REMOTE_READ, _WRITE or _ATOMIC?";
    case TermCode::kRemoteStagNotAssociated:
    case TermCode::kTaggedStagNotAssociated:
      return "are region and queue pair there of one protection domain?";
    case TermCode::kUntaggedNoBuffer:
      return "the peer has to post receives before it is sent to, and to answer as many Reads as "
             "are outstanding";
    case TermCode::kUntaggedTooLong:
      return "the receive there is shorter than the message";
    case TermCode::kStreamCatastrophic:
      return "the receive there names memory that may not be written to, or the target of an "
             "atomic is misaligned";
    default:
      return "the peer's own messages may say more";
  }
}

}  // namespace uiw::core
