// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "support/vectors.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

#define JSON_NOEXCEPTION
#include <nlohmann/json.hpp>

namespace uiw::test {
namespace {

const nlohmann::json& document() {
  static const nlohmann::json json = [] {
    std::ifstream file(UIWARP_TEST_VECTORS);
    if (!file) die("cannot open", UIWARP_TEST_VECTORS);
    return nlohmann::json::parse(file);
  }();
  return json;
}

std::string text_of(const nlohmann::json& item, const char* name) {
  return item.at(name).get<std::string>();
}

uint64_t number_of(const nlohmann::json& item, const char* name) {
  auto found = item.find(name);
  if (found == item.end()) return 0;
  if (found->is_number()) return found->get<uint64_t>();
  return std::strtoull(found->get<std::string>().c_str(), nullptr, 0);
}

}  // namespace

uint64_t Vector::field(std::string_view name) const {
  auto found = fields.find(name);
  if (found == fields.end()) die(id + " has no field", name);
  return found->second;
}

const std::vector<Vector>& vectors() {
  static const std::vector<Vector> all = [] {
    std::vector<Vector> out;
    for (const auto& item : document().at("vectors")) {
      Vector v{text_of(item, "id"), text_of(item, "desc"), from_hex(text_of(item, "hex")), {}};
      if (v.octets.size() != number_of(item, "len")) die("length differs from the file's", v.id);
      for (const auto& field : item.at("fields").items())
        v.fields[field.key()] = field.value().get<uint64_t>();
      out.push_back(std::move(v));
    }
    return out;
  }();
  return all;
}

const std::vector<Negative>& negatives() {
  static const std::vector<Negative> all = [] {
    std::vector<Negative> out;
    for (const auto& item : document().at("negatives")) {
      out.push_back({text_of(item, "id"), text_of(item, "desc"), text_of(item, "expect"),
                     text_of(item, "pre"), from_hex(text_of(item, "hex"))});
    }
    return out;
  }();
  return all;
}

const std::vector<AtomicValue>& atomic_values() {
  static const std::vector<AtomicValue> all = [] {
    std::vector<AtomicValue> out;
    for (const auto& item : document().at("atomic_values")) {
      AtomicValue value;
      value.fetch_add = text_of(item, "op") == "FetchAdd";
      value.original = number_of(item, "orig");
      value.add_or_swap = number_of(item, value.fetch_add ? "add" : "swap");
      value.add_or_swap_mask = number_of(item, value.fetch_add ? "mask" : "swap_mask");
      value.compare = number_of(item, "compare");
      value.compare_mask = number_of(item, "compare_mask");
      value.result = number_of(item, "result");
      out.push_back(value);
    }
    return out;
  }();
  return all;
}

const Vector& vector(std::string_view id) {
  for (const Vector& v : vectors()) {
    if (v.id == id) return v;
  }
  die("no such vector", id);
}

const Negative& negative(std::string_view id) {
  for (const Negative& n : negatives()) {
    if (n.id == id) return n;
  }
  die("no such negative vector", id);
}

}  // namespace uiw::test
