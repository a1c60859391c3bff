// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/explain_of.h"

#include <cstdint>

#include "core/log.h"

namespace uiw::core {
namespace {

// A sentence is identified by its address, and this pair by an address at which nothing lies.
// Literals of one library are so close to each other that no two pairs get the same.
const char* address_of(const char* of, const char* sentence) {
  constexpr uintptr_t kFar = 0x9e3779b97f4a7c15;  // an odd number of random bits
  return reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(sentence) +
                                       reinterpret_cast<uintptr_t>(of) * kFar);
}

}  // namespace

bool first_of(const char* of, Told& told, const char* sentence) {
  return told.first(address_of(of, sentence));
}

int refuse_of(const char* of, Told& told, int error, const char* sentence, ...) {
  if (!log_enabled(LogLevel::kWarn) || !first_of(of, told, sentence)) return error;
  va_list arguments;
  va_start(arguments, sentence);
  log_with(LogLevel::kWarn, sentence, arguments);
  va_end(arguments);
  return error;
}

}  // namespace uiw::core
