// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What ibv_modify_qp with IBV_QP_ACCESS_FLAGS forbids the peer is forbidden, whatever the region
// allows.
#include <gtest/gtest.h>

#include "support/machine.h"

namespace uiw::test {
namespace {

using qp::RxStatus;

struct Operation {
  const char* name;
  uint32_t right;
  uint16_t code;  // of the Terminate for an STag without the right (conformance 3.4)
};
constexpr Operation kOperations[] = {{"write", mem::kRemoteWrite, 0x1100},
                                     {"read", mem::kRemoteRead, 0x0102},
                                     {"atomic", mem::kRemoteAtomic, 0x0102}};

Octets request(const Operation& operation, const Buffer& target) {
  switch (operation.right) {
    case mem::kRemoteWrite:
      return fpdu(tagged(0, target.stag(), target.start(), pattern(8, 5)));
    case mem::kRemoteRead:
      return fpdu(untagged(1, 1, 1, 0, read_request(9, 0, 8, target.stag(), target.start())));
    default:
      return fpdu(untagged(10, 1, 1, 0, atomic_request(0, 9, target.stag(), target.start(), 1, 0)));
  }
}

TEST(AccessFlags, ForbidEachOperationOfThePeer) {
  constexpr uint32_t kAll = mem::kRemoteWrite | mem::kRemoteRead | mem::kRemoteAtomic;
  for (const Operation& operation : kOperations) {
    for (const uint32_t rights :
         {kAll, operation.right, kAll & ~operation.right, uint32_t{mem::kLocalWrite}, 0u}) {
      SCOPED_TRACE(operation.name + (" with rights " + std::to_string(rights)));
      Machine m({.initiator = false});
      Buffer target(m.memory, pattern(8), kAll | mem::kLocalWrite);
      m.connection->shared.remote_rights = rights;
      const RxStatus status = m.feed(request(operation, target));
      if (rights & operation.right) {
        EXPECT_EQ(status, RxStatus::kOk);
        continue;
      }
      ASSERT_EQ(status, RxStatus::kFault);
      EXPECT_EQ(static_cast<uint16_t>(m.rx().fault().terminate.code), operation.code);
      EXPECT_EQ(m.rx().fault().event, IBV_EVENT_QP_ACCESS_ERR);
      EXPECT_EQ(target.content(), pattern(8));
    }
  }
}

}  // namespace
}  // namespace uiw::test
