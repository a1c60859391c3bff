// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Memory windows: STags for part of a region, bound and invalidated while the region stays (RFC
// 5040 8.1.1(4), (5)).
#include "mem/table_impl.h"

namespace uiw::mem {

core::Result<uint32_t> Table::add_window(uint32_t pd, WindowType type, size_t max) {
  if (!impl_) return core::Errno{ENOMEM};
  auto* window = new (std::nothrow) Impl::Window;
  if (!window) return core::Errno{ENOMEM};
  const std::lock_guard lock(impl_->mutex);
  const bool full = impl_->windows.load(std::memory_order_relaxed) >= max;
  auto made = full ? core::Result<Impl::Slot*>(core::Errno{ENOMEM}) : impl_->new_slot();
  if (!made) {
    delete window;
    return core::Errno{made.error()};
  }
  Impl::Slot* slot = *made;
  slot->kind = type == WindowType::kType1 ? Kind::kWindow1 : Kind::kWindow2;
  slot->pd = pd;
  slot->stream = 0;
  slot->window = window;
  window->slot = slot;
  impl_->buckets.insert(slot);
  impl_->windows.fetch_add(1, std::memory_order_relaxed);
  return slot->stag;
}

int Table::remove_window(uint32_t stag) {
  if (!impl_) return EINVAL;
  const std::lock_guard lock(impl_->mutex);
  Impl::Slot* slot = impl_->with_index(stag);
  if (!slot || !slot->is_window()) return EINVAL;
  impl_->unbind(slot);
  impl_->erase(slot);
  impl_->windows.fetch_sub(1, std::memory_order_relaxed);
  delete slot->window;
  impl_->give_slot(slot);
  return 0;
}

core::Result<uint32_t> Table::other_key(uint32_t stag) {
  if (!impl_) return core::Errno{ENOMEM};
  const std::lock_guard lock(impl_->mutex);
  uint32_t number;
  do {
    if (const int error = impl_->random.next(number)) return core::Errno{error};
  } while ((number & kKeyMask) == (stag & kKeyMask));
  return (stag & ~kKeyMask) | (number & kKeyMask);
}

int Table::bind(const Stream& stream, const Binding& wanted) {
  if (!impl_ || index_of(wanted.stag) != index_of(wanted.window)) return EINVAL;
  constexpr uint32_t kRemote = kRemoteWrite | kRemoteRead | kRemoteAtomic;
  // Local write is a right of the region, but programs request it for windows, too.
  if (wanted.access & ~(kRemote | kZeroBased | kLocalWrite)) return EINVAL;
  const std::lock_guard lock(impl_->mutex);
  Impl::Slot* slot = impl_->with_index(wanted.window);
  if (!slot || !slot->is_window()) return EINVAL;
  if (slot->pd != stream.pd) return EPERM;
  // A type 2 window is bound once, to at least one byte (InfiniBand o10-37.2.40), then invalidated.
  // A type 1 window may be bound again, and is unbound by binding zero bytes (ibv_alloc_mw).
  const bool shared = slot->kind == Kind::kWindow1;
  if (!shared && slot->window->bound_to) return EBUSY;
  if (!shared && wanted.length == 0) return EINVAL;
  if (shared && wanted.length == 0) {
    impl_->unbind(slot);
    return 0;
  }

  Impl::Slot* region = impl_->valid_region(wanted.region);
  if (!region) return EINVAL;
  if (region->pd != stream.pd) return EPERM;
  if (!(region->access & kMwBind)) return EACCES;
  if ((wanted.access & (kRemoteWrite | kRemoteAtomic)) && !(region->access & kLocalWrite))
    return EACCES;
  if (check(*region, stream.pd, wanted.start, wanted.length, 0) != Fault::kNone) return EINVAL;

  impl_->unbind(slot);
  slot->stag = wanted.stag;
  slot->stream = shared ? 0 : stream.id;
  slot->access = static_cast<uint8_t>(wanted.access & kRemote);
  slot->start = wanted.access & kZeroBased ? 0 : wanted.start;
  slot->length = wanted.length;
  slot->memory = region->memory + (wanted.start - region->start);
  slot->window->bound_to = region;
  ++region->windows;
  if (!shared) impl_->link_to_stream(slot->window);
  set_live(slot->live_stag_, wanted.stag);
  return 0;
}

Invalidation Table::invalidate(const Stream& stream, uint32_t stag) {
  if (!impl_ || stag == 0) return Invalidation::kNotPossible;
  const std::lock_guard lock(impl_->mutex);
  Impl::Slot* slot = impl_->with_index(stag);
  if (!slot || slot->live_stag_.load(std::memory_order_relaxed) != stag)
    return Invalidation::kNotPossible;
  if (slot->pd != stream.pd) return Invalidation::kNotAssociated;
  // RFC 5040 8.1.1(7): not an STag that several streams may use.
  if (slot->kind != Kind::kWindow2) return Invalidation::kNotPossible;
  if (slot->stream != stream.id) return Invalidation::kNotAssociated;
  impl_->unbind(slot);
  return Invalidation::kDone;
}

void Table::end_stream(uint32_t id) {
  if (!impl_) return;
  const std::lock_guard lock(impl_->mutex);
  for (Impl::Window* window = impl_->stream_windows; window;) {
    Impl::Window* next = window->next;
    if (window->slot->stream == id) impl_->unbind(window->slot);
    window = next;
  }
}

size_t Table::windows() const {
  return impl_ ? impl_->windows.load(std::memory_order_relaxed) : 0;
}

}  // namespace uiw::mem
