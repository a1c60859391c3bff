// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/last_writes.h"

#include <gmock/gmock.h>

#include <vector>

#include "check/rules.h"

namespace uiw::check {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Request write_of(uint64_t wr_id, uint64_t address, uint32_t length) {
  Request request;
  request.wr_id = wr_id;
  request.role = Role::kSource;
  request.rkey = 0x77;
  request.remote_address = address;
  static ibv_sge sge;
  sge = {0x1000, length, 1};
  request.sges = {&sge, 1};
  return request;
}

std::vector<uint64_t> with(const LastWrites& writes, uint32_t rkey, uint64_t address) {
  std::vector<uint64_t> found;
  writes.each_with(rkey, address, [&](const DoneWrite& write) { found.push_back(write.wr_id); });
  return found;
}

TEST(LastWrites, AreFoundByASegment) {
  LastWrites writes;
  writes.add(write_of(1, 0x100, 0x20));
  writes.add(write_of(2, 0x110, 0x20));
  Request read = write_of(3, 0x100, 0x20);
  read.role = Role::kSink;
  writes.add(read);
  Request send = write_of(4, 0x100, 0x20);
  send.rkey = 0;
  writes.add(send);
  EXPECT_THAT(with(writes, 0x77, 0x100), ElementsAre(1));
  EXPECT_THAT(with(writes, 0x77, 0x120), ElementsAre(1, 2));
  EXPECT_THAT(with(writes, 0x77, 0xff), ElementsAre());
  EXPECT_THAT(with(writes, 0x78, 0x100), ElementsAre());
}

TEST(LastWrites, AreTheLastOnes) {
  LastWrites writes;
  for (uint64_t i = 0; i < 20; ++i) writes.add(write_of(i, 0x1000 * i, 1));
  EXPECT_THAT(with(writes, 0x77, 0x3000), ElementsAre());
  EXPECT_THAT(with(writes, 0x77, 0x4000), ElementsAre(4));
  EXPECT_THAT(with(writes, 0x77, 0x13000), ElementsAre(19));
}

TEST(LastWrites, AreNamedWhereOneOnlyMayBeMeant) {
  const DoneWrite write = done_write_of(write_of(1, 0x100, 0x20));
  const auto code = core::TermCode::kRemoteInvalidStag;
  EXPECT_THAT(why_write_refused(write, 1, 0x110, code),
              HasSubstr("refused a Write of 32 bytes, rkey 0x77, remote address 0x100, which had"));
  EXPECT_THAT(why_write_refused(write, 3, 0x110, code),
              HasSubstr("refused one of the last 3 Writes to rkey 0x77, address 0x110, which had"));
}

}  // namespace
}  // namespace uiw::check
