// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/kinds.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace uiw::check {
namespace {

// Its words without what fills lines.
std::string words(const std::string& text) {
  std::istringstream in(text);
  std::string all, word;
  while (in >> word) all += word + " ";
  return all;
}

TEST(Kinds, HaveASectionInTheManualThatSaysTheSame) {
  std::ostringstream read;
  read << std::ifstream(UIWARP_CHECK_MANUAL).rdbuf();
  const std::string manual = words(read.str());
  for (const KindInfo& kind : kinds()) {
    std::string title = kind.title;
    title[0] = static_cast<char>(std::toupper(title[0]));
    EXPECT_NE(manual.find(words(std::string("### ") + kind.name + " " + title + ". On adapters: " +
                                kind.on_adapters + " What to do: " + kind.remedy)),
              manual.npos)
        << kind.name;
  }
}

}  // namespace
}  // namespace uiw::check
