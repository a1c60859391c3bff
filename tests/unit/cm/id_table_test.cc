// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Ids that come and go by the million while some stay.
#include "cm/id_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace uiw::cm {
namespace {

class IdTableChurn : public testing::TestWithParam<uint32_t> {};

TEST_P(IdTableChurn, IsAsTheModelSays) {
  const uint32_t staying = GetParam();
  constexpr uint32_t kComing = 2000;
  std::mt19937 random(staying);
  auto table = std::make_unique<IdTable>();
  std::vector<Id> ids(staying + kComing);
  std::vector<Id*> live, gone;
  for (uint32_t i = 0; i < staying; ++i) ASSERT_EQ(table->insert(ids[i]), 0);
  for (uint32_t i = staying; i < ids.size(); ++i) gone.push_back(&ids[i]);
  for (int step = 0; step < 1'000'000; ++step) {
    const bool more = gone.empty() ? false : live.empty() || random() % 2 == 0;
    std::vector<Id*>&from = more ? gone : live, &to = more ? live : gone;
    std::swap(from[random() % from.size()], from.back());
    Id& id = *from.back();
    from.pop_back();
    to.push_back(&id);
    if (more) {
      ASSERT_EQ(table->insert(id), 0);
      ASSERT_EQ(table->find(id.number), &id);
    } else {
      table->remove(id);
      ASSERT_EQ(table->find(id.number), nullptr);
    }
    ASSERT_EQ(table->size(), staying + live.size());
    ASSERT_LE(table->pages(), std::min(table->size(), IdTable::kEnd / 256));
  }
  for (uint32_t i = 0; i < staying; ++i) ASSERT_EQ(table->find(ids[i].number), &ids[i]);
  for (Id* id : live) {
    ASSERT_EQ(table->find(id->number), id);
    table->remove(*id);
  }
  EXPECT_LE(table->pages(), staying);
  uint32_t found = 0;
  for (const Id* id = table->next(0); id; id = table->next(id->number)) ++found;
  EXPECT_EQ(found, staying);
}
INSTANTIATE_TEST_SUITE_P(WhileSomeStay, IdTableChurn, testing::Values(0, 2, 100, 60'000));

}  // namespace
}  // namespace uiw::cm
