// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What is kept is enough for those who are busy, and no more.
#include "core/stock.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace uiw::core {
namespace {

struct Thing {
  Thing* next_in_stock = nullptr;
};

struct StockTest : testing::Test {
  Thing* take() {
    return stock.take([this] {
      ++made;
      return new Thing;
    });
  }
  void give(Thing* thing) {
    stock.give(thing, [this](Thing* surplus) {
      ++freed;
      delete surplus;
    });
  }
  ~StockTest() override {
    while (stock.kept() > 0) delete take();
  }

  Stock<Thing> stock;
  size_t made = 0, freed = 0;
};

TEST_F(StockTest, WhoComesAndGoesAmongManyAllocatesNothing) {
  std::vector<Thing*> busy;
  for (int i = 0; i < 1000; ++i) busy.push_back(take());
  for (int i = 0; i < 100; ++i) {
    give(busy.back());
    busy.back() = take();
  }
  EXPECT_EQ(made, 1000u);
  EXPECT_EQ(freed, 0u);
  for (Thing* thing : busy) give(thing);
}

TEST_F(StockTest, KeepsAFewWhenNobodyIsBusy) {
  std::vector<Thing*> busy;
  for (int i = 0; i < 1000; ++i) busy.push_back(take());
  for (Thing* thing : busy) give(thing);
  EXPECT_EQ(stock.kept(), Stock<Thing>::kFew);
  EXPECT_EQ(freed, made - Stock<Thing>::kFew);
}

TEST_F(StockTest, WhatCouldNotBeMadeIsNotInUse) {
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(stock.take([]() -> Thing* { return nullptr; }), nullptr);
  std::vector<Thing*> busy;
  for (int i = 0; i < 100; ++i) busy.push_back(take());
  for (Thing* thing : busy) give(thing);
  EXPECT_EQ(stock.kept(), Stock<Thing>::kFew);
}

TEST_F(StockTest, ChurnIsAsTheModelSays) {
  std::mt19937 random(1);
  std::vector<Thing*> busy;
  std::set<Thing*> unique;
  for (int step = 0; step < 1'000'000; ++step) {
    const size_t wanted = step / 10'000 % 2 == 0 ? 500 : 5;
    if (busy.empty() || random() % (2 * wanted) > busy.size()) {
      busy.push_back(take());
      ASSERT_TRUE(unique.insert(busy.back()).second) << "two have the same";
    } else {
      std::swap(busy[random() % busy.size()], busy.back());
      unique.erase(busy.back());
      give(busy.back());
      busy.pop_back();
    }
    ASSERT_LE(stock.kept(), std::max(busy.size() + 1, Stock<Thing>::kFew));
    ASSERT_EQ(made - freed, busy.size() + stock.kept());
  }
  for (Thing* thing : busy) give(thing);
}

}  // namespace
}  // namespace uiw::core
