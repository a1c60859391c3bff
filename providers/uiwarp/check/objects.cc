// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/objects.h"

#include <algorithm>
#include <utility>

#include "check/text.h"
#include "core/per_process.h"

namespace uiw::check {

std::string Qp::name() const {
  return text("queue pair 0x%06x", number);
}

Cq::Armed Cq::armed() {
  const std::lock_guard lock(mutex_);
  Armed now = armed_;
  now.last.held = held_;
  return now;
}

void Cq::set_armed(const Armed& now) {
  const std::lock_guard lock(mutex_);
  armed_ = now;
  held_ = now.last.held;
}

Stack Qp::created() const {
  return Objects::instance().find(this).created;
}

Objects& Objects::instance() {
  // Never destroyed: a program's destructors may come after ours. A child does not know its
  // parent's.
  static constinit core::PerProcess<Objects> all;
  return *all.get();
}

void Objects::add(const Context& context, const void* object, std::string name,
                  std::vector<const void*> uses) {
  Entry entry{object, &context, std::move(name), {}, std::move(uses)};
  capture(entry.created);
  const std::lock_guard lock(mutex_);
  entry.number = ++last_;
  entries_[object] = std::move(entry);
}

void Objects::remove(const void* object) {
  const std::lock_guard lock(mutex_);
  entries_.erase(object);
}

std::optional<Objects::Entry> Objects::extract(const void* object) {
  const std::lock_guard lock(mutex_);
  auto node = entries_.extract(object);
  return node ? std::optional(std::move(node.mapped())) : std::nullopt;
}

void Objects::put_back(Entry entry) {
  const std::lock_guard lock(mutex_);
  entries_[entry.object] = std::move(entry);
}

Objects::Entry Objects::find(const void* object) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(object);
    if (found != entries_.end()) return found->second;
  }
  return parents_ ? parents_->find(object) : Entry{};
}

std::vector<Objects::Entry> Objects::sorted(std::vector<Entry> entries) {
  std::ranges::sort(entries, {}, &Entry::number);
  return entries;
}

std::vector<Objects::Entry> Objects::all_of(const Context* context) {
  std::vector<Entry> found;
  const std::lock_guard lock(mutex_);
  for (const auto& [object, entry] : entries_)
    if (!context || (entry.context == context && object != context)) found.push_back(entry);
  return sorted(std::move(found));
}

std::vector<Objects::Entry> Objects::users_of(const void* object) {
  std::vector<Entry> found;
  const std::lock_guard lock(mutex_);
  for (const auto& [other, entry] : entries_)
    if (std::ranges::find(entry.uses, object) != entry.uses.end()) found.push_back(entry);
  return sorted(std::move(found));
}

}  // namespace uiw::check
