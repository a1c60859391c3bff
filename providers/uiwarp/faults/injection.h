// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The rules of this process, and what is said of those that were carried out.
#pragma once

#include <string>
#include <vector>

#include "faults/objects.h"

namespace uiw::faults {

// Reads what UIWARP_FAULTS names, a file or ready-made rules. False: it cannot be used, which has
// been said.
bool configure(const char* name);
// Those in force. They live as long as the process. Thread: any.
const Rules& rules();
// These from now on; what is counted begins anew. Thread: one at a time.
void put_in_force(Rules fresh);
// Those in force, for `uiwarp faults`: in the first line the seed and where they are from, then
// of each rule its line, how often it was carried out, and its text, with tabs between.
std::string report();

// The process has opened a device: when it ends, rules that met nothing are told.
void device_is_open();

// Says of each rule that was carried out, in a line at the default level, when it goes: with no
// lock held. Sooner where the stack says something of it, too.
class Notes {
 public:
  Notes() = default;
  Notes(const Notes&) = delete;
  ~Notes();

  // Says what there is now: the stack is about to be told, and may have its own words for it.
  void before_the_stack();

  // A call that fails.
  void call(const Hit& hit);
  // A request of that queue pair that meets a rule, and completes with `status`.
  void request(const Hit& hit, const Qp& qp, ibv_wc_status status);
  void late(const Hit& hit, const Qp& qp);
  // A connection, of that queue pair or none yet.
  void connection(const Hit& hit, uint32_t qp_num);
  // A completion of that queue pair that is lost.
  void overrun(const Hit& hit, uint32_t qp_num);
  // Of a datagram of that queue pair.
  void datagram(const Hit& hit, const Qp& qp);
  // That a rule paces what this queue pair sends.
  void paced(const Hit& hit, const Qp& qp);
  // What that queue pair has posted was not answered in time, as the rule holds its port down.
  void unanswered(const Rule& rule, const Qp& qp);
  // Of a rule whose time has come.
  void timed(const Rule& rule, const char* what);

 private:
  // `brief`: the same for a trace, which has little room. Null: `what`.
  void say(const Hit& hit, uint32_t qp_num, const char* what, const char* brief = nullptr);
  void say(const Rule& rule, uint32_t qp_num, const char* line, const char* brief);
  void tell(const Rule& rule, uint32_t qp_num, const char* line, const char* brief);

  std::vector<std::string> lines_;
};

// An event that is counted for the process: the rule that it meets.
std::optional<Hit> next_of_process(const Occasion& happens);

// A call that is counted for the process, or in `stream`: 0, or the errno it is to fail with, of
// which has been said. Thread: any; the stream's.
int failing(Event event);
int failing(Event event, Stream& stream, Notes& notes);
// One that is counted for a queue pair.
int failing(Event event, Qp& qp);

}  // namespace uiw::faults
