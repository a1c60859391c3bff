// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Copies of work requests whose lkeys are those that the next table knows.
#pragma once

#include <infiniband/verbs.h>

#include "check/regions.h"

namespace uiw::check {

// A part of a list, as many as fit. WorkRequest: ibv_send_wr or ibv_recv_wr. Thread: its owner's.
template <class WorkRequest>
class Rewritten {
 public:
  // From `wr` on. One with more SGEs than fit is left as it is: none may have so many.
  Rewritten(WorkRequest* wr, const Regions& regions) {
    for (int sges = 0; wr && count_ < kMost; wr = wr->next, ++count_) {
      WorkRequest& copy = copies_[count_];
      const bool known = wr->num_sge >= 0 && wr->num_sge <= kSges;
      if (known && sges + wr->num_sge > kSges) break;
      originals_[count_] = wr;
      copy = *wr;
      if (known && has_keys(*wr)) {
        copy.sg_list = sges_ + sges;
        for (int i = 0; i < wr->num_sge; ++i, ++sges) {
          sges_[sges] = wr->sg_list[i];
          sges_[sges].lkey = regions.stag_of(wr->sg_list[i].lkey);
        }
      }
      rewrite_binding(copy, regions);
      copy.next = nullptr;
      if (count_ > 0) copies_[count_ - 1].next = &copy;
    }
    rest_ = wr;
  }
  Rewritten(const Rewritten&) = delete;

  WorkRequest* first() { return copies_; }
  int count() const { return count_; }
  const WorkRequest& original(int i) const { return *originals_[i]; }
  // The place in the list of what a post of the copies did not take.
  int index_of(const WorkRequest* copy) const { return static_cast<int>(copy - copies_); }
  WorkRequest* original_of(const WorkRequest* copy) const { return originals_[index_of(copy)]; }
  WorkRequest* rest() const { return rest_; }

 private:
  static constexpr int kMost = 16, kSges = 32;

  static bool has_keys(const ibv_recv_wr&) { return true; }
  static bool has_keys(const ibv_send_wr& wr) {
    return !(wr.send_flags & IBV_SEND_INLINE) && wr.opcode != IBV_WR_LOCAL_INV &&
           wr.opcode != IBV_WR_BIND_MW;
  }
  void rewrite_binding(ibv_recv_wr&, const Regions&) {}
  void rewrite_binding(ibv_send_wr& copy, const Regions& regions) {
    if (copy.opcode != IBV_WR_BIND_MW || !copy.bind_mw.bind_info.mr) return;
    ibv_mr& mr = bound_[count_];
    mr = *copy.bind_mw.bind_info.mr;
    mr.lkey = regions.stag_of(mr.lkey);
    copy.bind_mw.bind_info.mr = &mr;
  }

  WorkRequest copies_[kMost];
  WorkRequest* originals_[kMost];
  ibv_sge sges_[kSges];
  ibv_mr bound_[kMost];
  WorkRequest* rest_ = nullptr;
  int count_ = 0;
};

}  // namespace uiw::check
