// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Copies of work requests whose lkeys are those that the next table knows.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <memory>

#include "check/regions.h"

namespace uiw::check {

// A list, whole: who looks at posts behind us, such as a rule of --faults, counts those of the
// program, and nobody else posts within a list. Long ones are on the heap. WorkRequest: ibv_send_wr
// or ibv_recv_wr. Thread: its owner's.
template <class WorkRequest>
class Rewritten {
 public:
  // More than any queue has room for: a list that ends nowhere is not copied without end.
  static constexpr size_t kMost = 1 << 16;

  Rewritten(WorkRequest* wr, const Regions& regions) {
    make_room(wr);
    for (size_t sges = 0; wr && count_ < kMost; wr = wr->next, ++count_) {
      WorkRequest& copy = copies_[count_];
      originals_[count_] = wr;
      copy = *wr;
      if (is_possible(*wr) && has_keys(*wr)) {
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
  size_t count() const { return count_; }
  const WorkRequest& original(size_t i) const { return *originals_[i]; }
  // The place in the list of what a post of the copies did not take.
  size_t index_of(const WorkRequest* copy) const { return static_cast<size_t>(copy - copies_); }
  WorkRequest* original_of(const WorkRequest* copy) const { return originals_[index_of(copy)]; }
  // What is behind kMost.
  WorkRequest* rest() const { return rest_; }

 private:
  static constexpr size_t kFew = 16, kFewSges = 32;

  // One with more SGEs than any queue pair may have is left as it is.
  static bool is_possible(const WorkRequest& wr) {
    return wr.num_sge >= 0 && wr.num_sge <= static_cast<int>(kFewSges);
  }
  static bool has_keys(const ibv_recv_wr&) { return true; }
  static bool has_keys(const ibv_send_wr& wr) {
    return !(wr.send_flags & IBV_SEND_INLINE) && wr.opcode != IBV_WR_LOCAL_INV &&
           wr.opcode != IBV_WR_BIND_MW;
  }
  void make_room(const WorkRequest* wr) {
    size_t count = 0, sges = 0;
    for (; wr && count < kMost; wr = wr->next, ++count)
      if (is_possible(*wr)) sges += static_cast<size_t>(wr->num_sge);
    if (count <= kFew && sges <= kFewSges) return;
    many_copies_ = std::make_unique_for_overwrite<WorkRequest[]>(count);
    many_originals_ = std::make_unique_for_overwrite<WorkRequest*[]>(count);
    many_bound_ = std::make_unique_for_overwrite<ibv_mr[]>(count);
    many_sges_ = std::make_unique_for_overwrite<ibv_sge[]>(sges);
    copies_ = many_copies_.get();
    originals_ = many_originals_.get();
    bound_ = many_bound_.get();
    sges_ = many_sges_.get();
  }
  void rewrite_binding(ibv_recv_wr&, const Regions&) {}
  void rewrite_binding(ibv_send_wr& copy, const Regions& regions) {
    if (copy.opcode != IBV_WR_BIND_MW || !copy.bind_mw.bind_info.mr) return;
    ibv_mr& mr = bound_[count_];
    mr = *copy.bind_mw.bind_info.mr;
    mr.lkey = regions.stag_of(mr.lkey);
    copy.bind_mw.bind_info.mr = &mr;
  }

  WorkRequest few_copies_[kFew];
  WorkRequest* few_originals_[kFew];
  ibv_mr few_bound_[kFew];
  ibv_sge few_sges_[kFewSges];
  std::unique_ptr<WorkRequest[]> many_copies_;
  std::unique_ptr<WorkRequest*[]> many_originals_;
  std::unique_ptr<ibv_mr[]> many_bound_;
  std::unique_ptr<ibv_sge[]> many_sges_;
  // Those above that are used.
  WorkRequest* copies_ = few_copies_;
  WorkRequest** originals_ = few_originals_;
  ibv_mr* bound_ = few_bound_;
  ibv_sge* sges_ = few_sges_;
  WorkRequest* rest_ = nullptr;
  size_t count_ = 0;
};

}  // namespace uiw::check
