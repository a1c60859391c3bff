// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/objects.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>

namespace uiw::check {
namespace {

class ListOfObjects : public testing::Test {
 protected:
  Context context_{std::make_shared<CommandSpace>()};
  const int domain_ = 0, queue_ = 0, other_ = 0;
};

TEST_F(ListOfObjects, KnowsWhoUsesOneInTheOrderOfCreation) {
  Objects objects;
  objects.add(context_, &domain_, "protection domain");
  objects.add(context_, &queue_, "queue pair", {&domain_});
  objects.add(context_, &other_, "memory region", {&domain_});
  const auto users = objects.users_of(&domain_);
  ASSERT_EQ(users.size(), 2u);
  EXPECT_EQ(users[0].name, "queue pair");
  EXPECT_EQ(users[1].name, "memory region");
  objects.remove(&queue_);
  EXPECT_EQ(objects.users_of(&domain_).size(), 1u);
  EXPECT_EQ(objects.all_of(&context_).size(), 2u);
}

TEST_F(ListOfObjects, OfAChildFindsItsParentsButDoesNotListThem) {
  Objects parents, childs, grandchilds;
  parents.add(context_, &queue_, "queue pair");
  childs.inherit(parents);
  childs.add(context_, &domain_, "protection domain");
  grandchilds.inherit(childs);
  EXPECT_EQ(grandchilds.find(&queue_).name, "queue pair");
  EXPECT_EQ(grandchilds.find(&domain_).name, "protection domain");
  EXPECT_EQ(grandchilds.find(&other_).object, nullptr);
  EXPECT_TRUE(grandchilds.all_of(nullptr).empty());
}

}  // namespace
}  // namespace uiw::check
