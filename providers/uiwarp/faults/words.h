// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The words that rules of --faults are made of: the one table by which they are read, from which
// comes what is said to be allowed, and the table of doc/faults.md. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace uiw::faults {

// What a rule is about, by the word that says so.
enum class Form : uint8_t {
  kVerb,     // a call
  kOp,       // a work request
  kConnect,  // a connection that this process begins
  kAccept,   // a connection that is requested of this process
  kDevice,   // a device, at a time
  kGid,      // the GIDs of all devices, at a time
  kCq,       // a completion of a completion queue
  kPeer,     // what is sent to a host
};

// In the order of the table.
enum class Key : uint8_t {
  kVerb,
  kOp,
  kConnect,
  kAccept,
  kDevice,
  kGid,
  kCq,
  kPeer,
  kQp,
  kPort,
  kNth,
  kEvery,
  kProbability,
  kErrno,
  kStatus,
  kDelay,
  kDrop,
  kDuplicate,
  kReorder,
  kReject,
  kTimeout,
  kUnreachable,
  kReset,
  kAfter,
  kAt,
  kPortDown,
  kFor,
  kEvent,
  kOverrun,
  kRate,
  kPeerDelay,
};
inline constexpr size_t kKeys = static_cast<size_t>(Key::kPeerDelay) + 1;

enum class Role : uint8_t {
  kForm,    // says what the rule is about: one in a rule
  kWhich,   // which of these events it meets: one at most
  kWhat,    // what happens then: one in a rule, unless its form says it already
  kDetail,  // says more
};

struct Word {
  const char* name;
  const char* value;  // as the manual writes it; null: it has none
  Role role;
  uint8_t forms;  // bits, by value of Form: the rules that may have it
  const char* meaning;

  bool fits(Form form) const { return forms >> static_cast<unsigned>(form) & 1; }
};
std::span<const Word> word_table();

// "nth=N", "reject".
std::string written(const Word& word);
// All words of rules of this form that have the role, with `between` between them.
std::string words_of(Form form, Role role, const char* between);
// The word that says that a rule is of this form: "op=NAME".
std::string form_word(Form form);

}  // namespace uiw::faults
