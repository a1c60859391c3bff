// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/command_space.h"

#include "core/shared_by_number.h"

namespace uiw::verbs {
namespace {

constinit core::SharedByNumber<CommandSpace> spaces;
constinit std::atomic<uint32_t> last_handle{0};

}  // namespace

template <class Object>
void Handles<Object>::add(const std::shared_ptr<Object>& object) {
  const std::lock_guard lock(mutex_);
  do {
    object->handle = last_handle.fetch_add(1, std::memory_order_relaxed) + 1;
  } while (!objects_.emplace(object->handle, object).second);
}

template <class Object>
void Handles<Object>::remove(const Object& object) {
  const std::lock_guard lock(mutex_);
  objects_.erase(object.handle);
}

template <class Object>
std::shared_ptr<Object> Handles<Object>::find(uint32_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(handle);
  return found == objects_.end() ? nullptr : found->second;
}

template class Handles<Domain>;
template class Handles<Region>;

std::shared_ptr<CommandSpace> command_space(uint64_t command) {
  return spaces.get(command);
}

}  // namespace uiw::verbs
