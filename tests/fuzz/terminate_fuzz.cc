// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The body of a Terminate from a stranger.
#include <vector>

#include "check.h"
#include "rdmap/terminate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace uiw;
  rdmap::Terminate first;
  bool whole = rdmap::decode({data, size}, first);
  CHECK(core::describe(first.code) != nullptr);
  CHECK(!first.has_read_header || first.has_ddp_header);
  CHECK(!first.has_ddp_header || first.has_length);

  // What was understood survives the way out and in again, unless siw's order makes more sense of
  // it.
  std::vector<uint8_t> body(rdmap::kMaxTerminateBody);
  body.resize(rdmap::encode(body.data(), first));
  if (whole && !first.siw_layout) CHECK(body.size() <= size);
  rdmap::Terminate second;
  CHECK(rdmap::decode(body, second));
  if (second.siw_layout) return 0;
  CHECK(second.code == first.code);
  std::vector<uint8_t> same(rdmap::kMaxTerminateBody);
  same.resize(rdmap::encode(same.data(), second));
  CHECK(same == body);
  return 0;
}
