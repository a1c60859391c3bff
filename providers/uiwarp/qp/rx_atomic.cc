// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Atomic Requests, which are executed when they arrive, and the responses to ours: RFC 7306
// sections 5 and 8.
//
// Executing them at once is "in the order they were delivered" (RFC 7306 5.4(8)), and everything
// that the peer sent before is placed by then (5.4(5)). A Read that the peer posted before an
// atomic is answered before it, but may read its data later (RFC 5040 5.5, RFC 7306 section 7: no
// order of placement).
#include <atomic>

#include "qp/remote_protection.h"
#include "qp/rx.h"
#include "queue/scatter.h"

namespace uiw::qp {

using core::TermCode;

namespace {

constexpr uint64_t kWordSize = sizeof(uint64_t);

// Uses the CPU's atomic instructions, so the operation is indivisible for all other queue pairs,
// all processes that map the memory and all threads of the program (IBV_ATOMIC_GLOB). RFC 7306 5.1:
// in the byte order of the memory. Returns the previous value.
uint64_t execute(uint64_t* at, const rdmap::AtomicRequest& request) {
  const std::atomic_ref<uint64_t> word(*at);
  if (request.op == rdmap::AtomicOp::kFetchAdd && request.add_or_swap_mask == 0)
    return word.fetch_add(request.add_or_swap);
  uint64_t original = word.load(), result;
  do {
    result = rdmap::atomic_result(request, original);
  } while (result != original && !word.compare_exchange_weak(original, result));
  return original;
}

}  // namespace

RxStatus Rx::on_atomic_request(const Segment& segment, const ddp::UntaggedHeader& header) {
  if (header.msn != request_msn_) return raise(TermCode::kUntaggedMsnRange, &segment);
  // RFC 7306 5.2.2(4): as many buffers as requests were agreed on, Reads included.
  if (shared_->inbound_requests.size() >= shared_->agreement.ird) {
    explain_too_many_requests();
    return raise(TermCode::kUntaggedNoBuffer, &segment, IBV_EVENT_QP_REQ_ERR);
  }
  if (header.mo != 0 || !header.last) return raise(TermCode::kUntaggedInvalidMo, &segment);
  if (segment.payload().size() != rdmap::kAtomicRequestSize)
    return raise(TermCode::kRemoteOperationUnspecified, &segment);
  const rdmap::AtomicRequest request = rdmap::decode_atomic_request(segment.payload().data());
  // RFC 7306 5.2.1: an error, but no code is given for it.
  if (!is_defined(request.op))
    return raise(TermCode::kUnexpectedOpcode, &segment, IBV_EVENT_QP_REQ_ERR);
  mem::RegionRef region = shared_->memory->find(request.stag);
  const auto refuse = [&](TermCode code) {
    region.reset();  // a reference through a window must not be held during the search of the table
    explain_access("an atomic", {request.stag, request.to, kWordSize, mem::kRemoteAtomic});
    return raise(code, &segment, IBV_EVENT_QP_ACCESS_ERR);
  };
  if (!region) return refuse(TermCode::kRemoteInvalidStag);
  const mem::Fault fault =
      mem::check_remote(*region, shared_->stream(), request.to, kWordSize, mem::kRemoteAtomic);
  if (fault != mem::Fault::kNone) return refuse(remote_protection_code(fault));
  // RFC 7306 8.2: the address in memory must be aligned; the TO may differ from it.
  uint8_t* const at = region->memory + (request.to - region->start);
  if (reinterpret_cast<uintptr_t>(at) % kWordSize != 0) {
    explain_misaligned(request.to);
    return raise(TermCode::kStreamCatastrophic, &segment, IBV_EVENT_QP_REQ_ERR);
  }
  InboundRequest inbound;
  inbound.atomic = true;
  inbound.answer = {request.id, execute(reinterpret_cast<uint64_t*>(at), request)};
  return accept(inbound);
}

RxStatus Rx::on_atomic_response(const Segment& segment, const ddp::UntaggedHeader& header) {
  const OutstandingRequest* request = shared_->outstanding_requests.front();
  const auto refuse = [&](TermCode code) {
    return request ? raise_response(code, segment, IBV_WC_BAD_RESP_ERR) : raise(code, &segment);
  };
  if (header.msn != atomic_msn_) return refuse(TermCode::kUntaggedMsnRange);
  // RFC 7306 5.2.2(5): queue 3 has one buffer for each outstanding atomic and no other.
  if (!request) return refuse(TermCode::kUntaggedNoBuffer);
  // RFC 7306 section 7: an earlier Read is answered first, and completely.
  if (!request->atomic) return refuse(TermCode::kUnexpectedOpcode);
  if (header.mo != 0 || !header.last) return refuse(TermCode::kUntaggedInvalidMo);
  if (segment.payload().size() != rdmap::kAtomicResponseSize)
    return refuse(TermCode::kRemoteOperationUnspecified);
  const rdmap::AtomicResponse response = rdmap::decode_atomic_response(segment.payload().data());
  if (response.id != request->cookie) return refuse(TermCode::kRemoteOperationUnspecified);
  const SendWqe& wr = shared_->send_queue->slot(request->slot);
  // Verbs return it in host order.
  const core::Bytes original(reinterpret_cast<const uint8_t*>(&response.original),
                             sizeof response.original);
  if (!queue::scatter(regions_, *shared_->memory, shared_->pd, wr.sges(), wr.sge_count, 0,
                      original))
    return raise_sink(request->slot, original.size());
  ++atomic_msn_;
  finish_request();
  return RxStatus::kOk;
}

}  // namespace uiw::qp
