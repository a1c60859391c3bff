// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// `uiwarp explain`: what a completion status, an errno of a call, an event, the state of a queue
// pair, a vendor_err or a finding of --check means, and where to look.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

namespace uiw::tool {

inline constexpr long kNoNumber = std::numeric_limits<long>::min();

// What there is to say of one of them. Texts are sentences; absent ones are null.
struct Explanation {
  const char* kind;                   // "completion status", ...
  const char* name;                   // as the header has it
  long value;                         // kNoNumber: it has none
  const char* also = nullptr;         // ibv_wc_status_str(), or the call that returns this errno
  const char* here = nullptr;         // what it means of uiwarp
  const char* adapters = nullptr;     // and of hardware
  std::vector<const char*> causes{};  // the likely ones first
  std::vector<const char*> look{};    // what to look at
  const char* remedy = nullptr;       // what to do
};

// The tables, one a file.
std::span<const Explanation> explained_statuses();
std::span<const Explanation> explained_errnos();
std::span<const Explanation> explained_async_events();
std::span<const Explanation> explained_cm_events();
std::span<const Explanation> explained_states();
std::span<const Explanation> explained_findings();

// A vendor_err: its text is the library's, and the Terminate code that it holds is named. False:
// there is none of this number.
struct VendorErr {
  std::string name, text;  // "0x46 by a rule of --faults"; what happened, and what to do
};
bool find_vendor_err(long number, VendorErr& out);

enum class ExplainAs { kText, kJson };
// Exit status: 0; 2 when none of the words is known, and then the nearest ones are named. Without
// words it lists what there is.
int explain(const std::vector<std::string>& words, ExplainAs as);
// doc/errors.md.
void print_explanations_markdown();

}  // namespace uiw::tool
