// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/rewritten.h"

#include <gtest/gtest.h>

#include <vector>

namespace uiw::check {
namespace {

constexpr uint32_t kStag = 77;

struct Keys {
  Keys() {
    Region region;
    region.stag = kStag;
    lkey = regions.add(region).lkey;
  }
  Regions regions;
  uint32_t lkey;
};

TEST(Rewritten, NamesMemoryByTheKeysOfTheNextTable) {
  const Keys keys;
  ibv_sge sges[] = {{1, 2, keys.lkey}, {3, 4, 5}};
  ibv_recv_wr wr{};
  wr.wr_id = 9;
  wr.sg_list = sges;
  wr.num_sge = 2;
  Rewritten<ibv_recv_wr> part(&wr, keys.regions);
  ASSERT_EQ(part.count(), 1u);
  EXPECT_EQ(part.first()->wr_id, 9u);
  EXPECT_EQ(part.first()->sg_list[0].lkey, kStag);
  EXPECT_EQ(part.first()->sg_list[0].addr, 1u);
  EXPECT_EQ(part.first()->sg_list[1].lkey, 0u);  // there is none
  EXPECT_EQ(sges[0].lkey, keys.lkey);
  EXPECT_EQ(part.rest(), nullptr);
}

TEST(Rewritten, TakesALongListWhole) {
  const Keys keys;
  ibv_sge sges[10];
  for (ibv_sge& sge : sges) sge = {0, 1, keys.lkey};
  std::vector<ibv_send_wr> list(40);
  for (size_t i = 0; i < list.size(); ++i) {
    list[i] = {};
    list[i].wr_id = i;
    list[i].sg_list = sges;
    list[i].num_sge = static_cast<int>(i % 11);
    list[i].opcode = IBV_WR_SEND;
    list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
  }
  Rewritten<ibv_send_wr> all(list.data(), keys.regions);
  EXPECT_EQ(all.count(), list.size());
  EXPECT_EQ(all.rest(), nullptr);
  uint64_t seen = 0;
  for (ibv_send_wr* copy = all.first(); copy; copy = copy->next) {
    EXPECT_EQ(copy->wr_id, seen);
    EXPECT_EQ(all.original_of(copy), &list[seen]);
    for (int i = 0; i < copy->num_sge; ++i) EXPECT_EQ(copy->sg_list[i].lkey, kStag);
    ++seen;
  }
  EXPECT_EQ(seen, list.size());
}

TEST(Rewritten, OfAListWithoutEndGoesOnBehindWhatNoQueueHasRoomFor) {
  const Keys keys;
  ibv_recv_wr wr{};
  wr.next = &wr;
  Rewritten<ibv_recv_wr> part(&wr, keys.regions);
  EXPECT_EQ(part.count(), Rewritten<ibv_recv_wr>::kMost);
  EXPECT_EQ(part.rest(), &wr);
}

TEST(Rewritten, LeavesInlineDataAndImpossibleListsAsTheyAre) {
  const Keys keys;
  ibv_sge sge = {0, 1, 123};
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_INLINE;
  EXPECT_EQ(Rewritten<ibv_send_wr>(&wr, keys.regions).first()->sg_list, &sge);
  wr.send_flags = 0;
  for (const int count : {-1, 1 << 20}) {
    wr.num_sge = count;
    Rewritten<ibv_send_wr> part(&wr, keys.regions);
    EXPECT_EQ(part.first()->num_sge, count);
    EXPECT_EQ(part.first()->sg_list, &sge);
  }
}

TEST(Rewritten, BindsTheRegionByItsKey) {
  const Keys keys;
  ibv_mr mr{};
  mr.lkey = keys.lkey;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_BIND_MW;
  wr.bind_mw.bind_info.mr = &mr;
  Rewritten<ibv_send_wr> part(&wr, keys.regions);
  EXPECT_EQ(part.first()->bind_mw.bind_info.mr->lkey, kStag);
  EXPECT_EQ(mr.lkey, keys.lkey);
}

}  // namespace
}  // namespace uiw::check
