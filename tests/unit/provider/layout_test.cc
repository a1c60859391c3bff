// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which layout of libibverbs' private structures is taken, and the tables of operations made for
// each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
#include "provider/provider.h"
}

namespace {

bool has_nothing(const char*) {
  return false;
}
bool has_port_speed(const char* function) {
  return std::string(function) == "ibv_query_port_speed";
}

std::vector<std::string> names() {
#define NAME(since, name, ...) #name,
  return {UIWARP_OPERATIONS(NAME, NAME)};
#undef NAME
}

// The names of the operations in the order of the table that is made for `layout`.
std::vector<std::string> table_of(const provider_layout* layout) {
  // Each operation is the address of its own name's slot, so that it can be told in the table.
  static char slots[UIWARP_OPERATIONS_MAX];
  void* marked[UIWARP_OPERATIONS_MAX];
  for (size_t i = 0; i < UIWARP_OPERATIONS_MAX; i++) marked[i] = &slots[i];
  verbs_all_ops all;
  static_assert(sizeof all == sizeof marked);
  std::memcpy(&all, marked, sizeof all);
  verbs_other_op table[UIWARP_OPERATIONS_MAX];
  const size_t count = provider_operations(layout, &all, table);
  std::vector<std::string> found;
  for (size_t i = 0; i < count; i++)
    found.push_back(names()[static_cast<size_t>(reinterpret_cast<char*>(table[i]) - slots)]);
  return found;
}

void expect(int pabi, bool (*has)(const char*), size_t operations, size_t context_at) {
  const provider_layout* layout = provider_layout_of(pabi, has);
  ASSERT_NE(layout, nullptr);
  EXPECT_EQ(layout->context_at, context_at);
  const std::vector<std::string> table = table_of(layout);
  EXPECT_EQ(table.size(), operations);
  EXPECT_TRUE(std::is_sorted(table.begin(), table.end()));
}

TEST(Layout, OfEachPrivateAbi) {
  expect(34, has_nothing, 76, 320);
  expect(57, has_nothing, 76, 320);
  expect(59, has_nothing, 79, 344);     // rdma-core 59 to 61
  expect(59, has_port_speed, 81, 352);  // 62, 63
  expect(64, has_port_speed, 83, 368);
}

TEST(Layout, NoneForAnUnknownPrivateAbi) {
  EXPECT_EQ(provider_layout_of(33, has_nothing), nullptr);
  EXPECT_EQ(provider_layout_of(58, has_port_speed), nullptr);
  EXPECT_EQ(provider_layout_of(65, has_port_speed), nullptr);
}

TEST(Layout, WhatIsNewerThanTheLibraryIsNotInItsTable) {
  const auto has = [](const std::vector<std::string>& table, const char* name) {
    return std::find(table.begin(), table.end(), name) != table.end();
  };
  const auto older = table_of(provider_layout_of(59, has_nothing));
  EXPECT_TRUE(has(older, "reg_mr_ex"));
  EXPECT_FALSE(has(older, "query_port_speed"));
  const auto newer = table_of(provider_layout_of(59, has_port_speed));
  EXPECT_TRUE(has(newer, "query_port_speed"));
  EXPECT_FALSE(has(newer, "alloc_buf"));
  EXPECT_EQ(table_of(provider_layout_of(64, has_nothing)), names());
}

TEST(Layout, TheLoadedLibraryHasOneAndItsContextFits) {
  const provider_layout* layout = provider_loaded_layout();
  ASSERT_NE(layout, nullptr);
  EXPECT_EQ(layout->pabi, UIWARP_PABI);
  EXPECT_LE(layout->context_at, offsetof(provider_context, verbs.context));
}

}  // namespace
