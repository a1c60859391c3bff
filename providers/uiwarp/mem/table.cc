// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Regions: registration, look-up, deregistration. Memory windows: window.cc.
#include "mem/table_impl.h"

namespace uiw::mem {

Table::Table(Reuse reuse) : impl_(new (std::nothrow) Impl) {
  if (impl_) impl_->reuse = reuse;
}

Table::~Table() = default;

core::Result<uint32_t> Table::add(uint32_t pd, uint8_t* memory, uint64_t start, uint64_t length,
                                  uint32_t access, size_t max) {
  if (!impl_) return core::Errno{ENOMEM};
  const std::lock_guard lock(impl_->mutex);
  if (impl_->regions.load(std::memory_order_relaxed) >= max) return core::Errno{ENOMEM};
  auto made = impl_->new_slot();
  if (!made) return core::Errno{made.error()};
  Impl::Slot* slot = *made;
  slot->kind = Kind::kRegion;
  slot->pd = pd;
  slot->stream = 0;
  slot->access = static_cast<uint8_t>(access);
  slot->start = start;
  slot->length = length;
  slot->memory = memory;
  slot->windows = 0;
  const uint32_t stag = slot->stag;
  set_live(slot->live_stag_, stag);
  impl_->buckets.insert(slot);
  impl_->regions.fetch_add(1, std::memory_order_relaxed);
  return stag;
}

int Table::remove(uint32_t stag) {
  if (!impl_) return EINVAL;
  Impl::Slot* slot;
  {
    const std::lock_guard lock(impl_->mutex);
    slot = impl_->valid_region(stag);
    if (!slot) return EINVAL;
    if (slot->windows > 0) return EBUSY;
    set_live(slot->live_stag_, 0);
    impl_->erase(slot);
    impl_->regions.fetch_sub(1, std::memory_order_relaxed);
  }
  // Without the mutex: a reference may be held during a sendmsg().
  impl_->revoke(slot);
  const std::lock_guard lock(impl_->mutex);
  impl_->give_slot(slot);
  return 0;
}

int Table::change_access(uint32_t stag, uint32_t access) {
  if (!impl_) return EINVAL;
  Impl::Slot* slot;
  {
    const std::lock_guard lock(impl_->mutex);
    slot = impl_->valid_region(stag);
    if (!slot) return EINVAL;
    if (slot->windows > 0) return EBUSY;
    set_live(slot->live_stag_, 0);
  }
  impl_->revoke(slot);  // it keeps its index meanwhile
  const std::lock_guard lock(impl_->mutex);
  slot->access = static_cast<uint8_t>(access);
  set_live(slot->live_stag_, stag);
  return 0;
}

void Table::Impl::ask_pin_holders() {
  const std::lock_guard lock(pin_holders_mutex);
  for (PinHolder* holder = pin_holders.first(); holder; holder = pin_holders.next(*holder))
    holder->give_back();
}

void Table::join(PinHolder& holder) {
  const std::lock_guard lock(impl_->pin_holders_mutex);
  impl_->pin_holders.append(holder);
}

void Table::leave(PinHolder& holder) {
  const std::lock_guard lock(impl_->pin_holders_mutex);
  impl_->pin_holders.remove(holder);
}

RegionRef Table::find(uint32_t stag, Side side) const {
  if (!impl_ || stag == 0) return {};
  RegionRef found = impl_->try_find(stag, side);
  if (found) [[likely]]
    return found;
  return impl_->find_again(stag, side);
}

size_t Table::size() const {
  return impl_ ? impl_->regions.load(std::memory_order_relaxed) : 0;
}

size_t Table::footprint() const {
  if (!impl_) return 0;
  const std::lock_guard lock(impl_->mutex);
  return impl_->slots.slots_footprint() + impl_->slots.counts_footprint() +
         impl_->buckets.footprint();
}

}  // namespace uiw::mem
