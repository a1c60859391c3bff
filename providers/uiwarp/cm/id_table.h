// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Maps numbers to ids. The numbers are small, because librdmacm indexes an array with them, and are
// reused as late as possible, so that a stale number finds nothing rather than another id.
#pragma once

#include <cstdint>
#include <memory>

#include "cm/id.h"

namespace uiw::cm {

// Guarded by the manager's lock.
class IdTable {
 public:
  static constexpr uint32_t kEnd = 65536;  // librdmacm refuses numbers from here on

  // Gives `id` a number from 1 on. ENOMEM; ENOSPC when all are in use.
  int insert(Id& id);
  void remove(const Id& id);
  Id* find(uint32_t number) const;
  uint32_t size() const { return used_; }
  // Pages that are allocated: those with an id.
  uint32_t pages() const { return page_count_; }
  // The first id whose number is above `number`; null at the end.
  Id* next(uint32_t number) const;

 private:
  static constexpr uint32_t kPage = 256;
  struct Page {
    Id* ids[kPage] = {};
    uint32_t used = 0;
  };
  std::unique_ptr<Page> pages_[kEnd / kPage];
  uint32_t cursor_ = 0;
  uint32_t used_ = 0, page_count_ = 0;
};

}  // namespace uiw::cm
