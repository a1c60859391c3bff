// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/id_table.h"

#include <cerrno>
#include <new>

namespace uiw::cm {

int IdTable::insert(Id& id) {
  if (used_ == kEnd - 1) return ENOSPC;
  do {
    cursor_ = cursor_ + 1 == kEnd ? 1 : cursor_ + 1;
  } while (find(cursor_) != nullptr);
  std::unique_ptr<Page>& page = pages_[cursor_ / kPage];
  if (page == nullptr) {
    page.reset(new (std::nothrow) Page);
    if (page == nullptr) return ENOMEM;
    ++page_count_;
  }
  page->ids[cursor_ % kPage] = &id;
  ++page->used;
  id.number = cursor_;
  ++used_;
  return 0;
}

void IdTable::remove(const Id& id) {
  std::unique_ptr<Page>& page = pages_[id.number / kPage];
  page->ids[id.number % kPage] = nullptr;
  --used_;
  if (--page->used > 0) return;
  page.reset();
  --page_count_;
}

Id* IdTable::find(uint32_t number) const {
  if (number >= kEnd) return nullptr;
  const std::unique_ptr<Page>& page = pages_[number / kPage];
  return page == nullptr ? nullptr : page->ids[number % kPage];
}

Id* IdTable::next(uint32_t number) const {
  for (uint32_t n = number + 1; n < kEnd;) {
    const std::unique_ptr<Page>& page = pages_[n / kPage];
    if (page == nullptr) {
      n = (n / kPage + 1) * kPage;
    } else if (Id* id = page->ids[n++ % kPage]) {
      return id;
    }
  }
  return nullptr;
}

}  // namespace uiw::cm
