// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How JSON is printed.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace uiw::tool {

// For people to read, too. What the system says, names of files among it, need not be UTF-8.
inline void print_json(const nlohmann::ordered_json& all) {
  printf("%s\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

// An array with one element a line, so that none needs all of the memory.
class JsonArray {
 public:
  explicit JsonArray(FILE* out) : out_(out) { fputs("[", out_); }
  ~JsonArray() { fputs("\n]", out_); }
  JsonArray(const JsonArray&) = delete;
  void add(const nlohmann::ordered_json& element) {
    fprintf(out_, "%s\n%s", is_first_ ? "" : ",", element.dump().c_str());
    is_first_ = false;
  }

 private:
  FILE* const out_;
  bool is_first_ = true;
};

}  // namespace uiw::tool
