// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What events, ids, endpoints, sockets in their last seconds, pending peers and holders of regions
// are kept in, while they come and go by the million.
#include "core/list.h"

#include <gtest/gtest.h>

#include <list>
#include <random>
#include <vector>

namespace uiw::core {
namespace {

struct Element {
  ListLink<Element> by_age, also;
};
using ByAge = List<Element, &Element::by_age>;
using Also = List<Element, &Element::also>;

class ListChurn : public testing::TestWithParam<uint32_t> {};

// An element is in two lists at a time, one of several, and in another one the next time.
TEST_P(ListChurn, IsAsTheModelSays) {
  constexpr size_t kElements = 200;
  std::mt19937 random(GetParam());
  struct Place {
    size_t list;
    std::list<Element*>::iterator at;
    bool in = false;
  };
  ByAge lists[3];
  Also all;
  std::list<Element*> model[3];
  size_t in_all = 0;
  std::vector<Element> elements(kElements);
  std::vector<Place> places(kElements);
  for (int step = 0; step < 1'000'000; ++step) {
    const size_t i = random() % kElements;
    Element& element = elements[i];
    Place& place = places[i];
    if (!place.in) {
      place.list = random() % 3;
      lists[place.list].append(element);
      all.append(element);
      place.at = model[place.list].insert(model[place.list].end(), &element);
      ++in_all;
    } else {
      lists[place.list].remove(element);
      all.remove(element);
      model[place.list].erase(place.at);
      --in_all;
    }
    place.in = !place.in;
    ASSERT_EQ(all.size(), in_all);
    const size_t seen = random() % 3;
    ASSERT_EQ(lists[seen].empty(), model[seen].empty());
    if (!model[seen].empty()) ASSERT_EQ(lists[seen].first(), model[seen].front());
    if (step % 1000 > 0) continue;
    for (size_t list = 0; list < 3; ++list) {
      Element* next = lists[list].first();
      for (Element* expected : model[list]) {
        ASSERT_EQ(next, expected);
        next = ByAge::next(*next);
      }
      ASSERT_EQ(next, nullptr);
      ASSERT_EQ(lists[list].size(), model[list].size());
    }
  }
}
INSTANTIATE_TEST_SUITE_P(BySeed, ListChurn, testing::Values(1, 2));

}  // namespace
}  // namespace uiw::core
