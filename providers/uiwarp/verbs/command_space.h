// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// State shared by the contexts of one command descriptor (ibv_import_device): the memory table, and
// the protection domains and memory regions that handles name. As in the kernel, an object lives
// until any context destroys it, no matter which one made it. A context's own struct for the object
// may end earlier (ibv_unimport_pd) or later.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/shaken.h"
#include "mem/table.h"
#include "verbs/senders.h"
#include "verbs/users.h"

struct uiwarp_pd;

namespace uiw::verbs {

// A protection domain as all contexts see it. Thread: any.
struct Domain {
  uint32_t handle = 0;
  uint32_t id = 0;                        // the number that regions and queue pairs compare
  Users users;                            // objects in all contexts
  std::atomic<bool> is_destroyed{false};  // by ibv_dealloc_pd in some context
  Senders senders;
};

// A memory region as all contexts see it. The program must change and destroy it in one thread at a
// time.
struct Region {
  uiwarp_pd* pd = nullptr;  // of the context that registered the region, which counts as its user
  uint8_t* addr = nullptr;
  uint64_t length = 0;
  uint64_t iova = 0;    // address of the first byte, unless zero-based
  uint32_t rights = 0;  // as requested
  uint32_t stag = 0;
  uint32_t handle = 0;
  std::atomic<bool> is_destroyed{false};  // by ibv_dereg_mr in some context
};

// Maps handles to the objects of one kind. A handle is unique in this process, so that a handle of
// another device is detected. Thread: any.
template <class Object>
class Handles {
 public:
  // Gives `object` its handle.
  void add(const std::shared_ptr<Object>& object);
  void remove(const Object& object);
  // Null: there is none, or it was destroyed.
  std::shared_ptr<Object> find(uint32_t handle);

 private:
  std::mutex mutex_;
  std::unordered_map<uint32_t, std::shared_ptr<Object>> objects_;  // under mutex_
};
extern template class Handles<Domain>;
extern template class Handles<Region>;

inline mem::Reuse reuse_of_keys() {
  return core::shaken(core::Shaken::kKeys).value_or(1) % 2 ? mem::Reuse::kLate
                                                           : mem::Reuse::kAtOnce;
}

struct CommandSpace {
  mem::Table memory{reuse_of_keys()};
  std::atomic<uint32_t> last_pd_id{0};
  Handles<Domain> domains;
  Handles<Region> regions;
};

// The space of the command descriptor with this number (uiwarp_vk_command). Null: out of memory.
// Thread: any.
std::shared_ptr<CommandSpace> command_space(uint64_t command);

}  // namespace uiw::verbs
