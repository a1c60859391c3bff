// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "device/device.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "core/assert.h"
#include "core/fork_mutex.h"
#include "core/gid.h"
#include "core/log.h"
#include "core/per_process.h"
#include "core/settings.h"
#include "device/face.h"
#include "device/interface.h"
#include "device/listing_order.h"
#include "device/table.h"

namespace uiw::device {
namespace {

// Never destroyed: pointers to devices are handed out everywhere, and threads may outlive main().
struct World {
  // Held while looking and telling; taken before `lock`. Observers take locks of theirs under it.
  core::QuietMutex looking;
  std::vector<Observer*> observers;       // under looking
  std::unique_ptr<InterfaceWatch> watch;  // under looking
  InterfaceWatch* parents = nullptr;      // its sockets are the parent's too: never read here
  bool complained = false;                // under looking
  bool told_that_none_is_chosen = false;  // likewise
  bool over = false;                      // under looking: the process ends

  core::ForkMutex lock;                   // the last of all locks, held for a few look-ups
  Table table{core::settings().devices};  // under lock
  std::atomic<uint64_t> version{0};
};

void before_fork();
void in_parent();
void in_child();

void look(World& all);
std::vector<Listed> list_of(World& all);

// What the first look has found, by which nothing changes.
void log_devices(World& all) {
  if (!core::log_enabled(core::LogLevel::kDebug)) return;
  for (const Listed& one : list_of(all)) {
    std::string addresses;
    for (const in6_addr& address : one.state.addresses)
      addresses += std::string(" ") + core::text_of(address).text;
    core::log(core::LogLevel::kDebug, "device %s: interface %s (index %u), port %s, addresses%s",
              one.device->name.c_str(), one.state.interface.c_str(), one.device->ifindex,
              one.state.active ? "active" : "down", addresses.c_str());
  }
}

constinit std::atomic<World*> the_world{nullptr};
// A fork may come while a thread holds it: the child has another one, and looks by itself.
constinit core::PerProcess<std::mutex> making;

World& make_world() {
  std::mutex* const mutex = making.get();
  // Without memory for it there is none for the devices either, which `new` would say by ending
  // the process.
  UIW_ASSERT(mutex != nullptr);
  std::lock_guard hold(*mutex);
  if (World* made = the_world.load(std::memory_order_relaxed)) return *made;
  auto* all = new World;
  {
    std::lock_guard hold_it(all->looking);
    look(*all);
    log_devices(*all);
  }
  // First: another thread may take its locks, and a third fork, as soon as it is there. A child
  // that has the handlers without the world has them twice then.
  pthread_atfork(before_fork, in_parent, in_child);
  the_world.store(all, std::memory_order_release);
  return *all;
}

// Devices are found when the first who asks comes here.
World& world() {
  World* made = the_world.load(std::memory_order_acquire);
  return made != nullptr ? *made : make_world();
}

// The one whose locks this thread has taken for a fork.
constinit thread_local World* held = nullptr;

// A child must not find these locked by a thread that it does not have. A signal handler that forks
// may have interrupted a look-up: to wait for `looking` then would be the wrong order, so its child
// is left without, and looks by itself.
void before_fork() {
  World* const all = the_world.load(std::memory_order_acquire);
  if (all == nullptr || held != nullptr || all->lock.is_mine()) return;
  all->looking.lock();
  all->lock.lock();
  held = all;
}

void in_parent() {
  World* const all = std::exchange(held, nullptr);
  if (all == nullptr) return;
  all->lock.unlock();
  all->looking.unlock();
}

// Allocates and frees nothing: the child of a process with threads may not.
void in_child() {
  World* const all = held;
  if (all == nullptr) {
    // Made by another thread since before_fork(), or not taken there, and perhaps locked.
    the_world.store(nullptr, std::memory_order_relaxed);
    return;
  }
  all->observers.clear();
  if (all->watch != nullptr) all->parents = all->watch.release();
  in_parent();
}

// exit() takes libnl apart after us, whom it serves, and then it ends the process when it is asked
// to look at, or to free, what it holds. librdmacm closes its devices later still, and the engine
// of a program that leaves one open runs to the very end.
__attribute__((destructor)) void end_looking() {
  World* all = the_world.load(std::memory_order_acquire);
  if (all == nullptr) return;
  std::lock_guard hold(all->looking);
  all->over = true;
}

void complain(World& all, int error) {
  if (std::exchange(all.complained, true)) return;
  const bool first = all.version.load(std::memory_order_relaxed) == 0;
  core::log(core::LogLevel::kError, "cannot list the network interfaces (netlink: %s); %s",
            strerrordesc_np(error),
            first ? "no RDMA device is offered" : "RDMA devices stay as they were found");
}

// What UIWARP_DEVICES leaves out cannot be missed by who set it; when nothing is left it is a
// mistake.
void tell_that_none_is_chosen(World& all, std::span<const Interface> interfaces) {
  std::string names;
  for (const Interface& interface : interfaces)
    if (interface.up && !interface.addresses.empty())
      names += (names.empty() ? "" : ", ") + interface.name;
  if (names.empty() || std::exchange(all.told_that_none_is_chosen, true)) return;
  core::log(core::LogLevel::kWarn,
            "UIWARP_DEVICES='%s' leaves no device; the interfaces that could be one are %s",
            core::settings().devices, names.c_str());
}

const char* text_of(Change change) {
  switch (change) {
    case Change::kPortActive:
      return "its port is active";
    case Change::kPortDown:
      return "its port is down";
    case Change::kGids:
      return "its addresses have changed";
    case Change::kGone:
      return "its interface has gone, and so has it";
    default:
      return "it says what no interface does, by an instrument's wish";
  }
}

// With `looking` held.
void tell(World& all, std::span<const Table::Noticed> noticed) {
  for (const Table::Noticed& one : noticed) {
    core::log(core::LogLevel::kDebug, "device %s: %s", one.device->name.c_str(),
              text_of(one.change));
    for (Observer* observer : all.observers) observer->device_changed(*one.device, one.change);
  }
}

// With `looking` held.
void look(World& all) {
  if (all.over) return;
  std::vector<Interface> interfaces;
  const int error =
      all.watch != nullptr ? all.watch->read(interfaces) : read_interfaces(interfaces);
  if (error != 0) return complain(all, error);
  std::vector<Table::Noticed> noticed;
  bool any;
  {
    std::lock_guard hold(all.lock);
    noticed = all.table.update(interfaces);
    any = !all.table.present().empty();
    all.version.store(all.table.version(), std::memory_order_release);
  }
  if (!any && core::settings().devices[0] != 0) tell_that_none_is_chosen(all, interfaces);
  tell(all, noticed);
}

// Whether programs see lo's device only where it is the only one that they could use.
bool leaves_loopback_out() {
  return !face().loopback_beside_others && core::settings().devices[0] == 0;
}

std::vector<Listed> list_of(World& all) {
  std::vector<Listed> list;
  {
    std::lock_guard hold(all.lock);
    for (const Table::Entry* entry : all.table.present())
      list.push_back({&entry->device, entry->state});
  }
  std::ranges::sort(list, comes_first);
  if (leaves_loopback_out()) leave_loopback_out(list);
  return list;
}

// What `change` does to the table.
template <class Make>
void make_happen(Make&& change) {
  World& all = world();
  std::lock_guard hold(all.looking);
  std::vector<Table::Noticed> noticed;
  {
    std::lock_guard hold_it(all.lock);
    noticed = change(all.table);
    all.version.store(all.table.version(), std::memory_order_release);
  }
  tell(all, noticed);
}

// The first that is there and for which `wanted` is true.
template <class Wanted>
const Device* find(Wanted&& wanted) {
  World& all = world();
  std::lock_guard hold(all.lock);
  for (const Table::Entry* entry : all.table.present()) {
    if (wanted(entry->device, entry->state)) return &entry->device;
  }
  return nullptr;
}

}  // namespace

void refresh() {
  World& all = world();
  std::lock_guard hold(all.looking);
  look(all);
}

std::vector<Listed> devices() {
  return list_of(world());
}

State state_of(const Device& device) {
  World& all = world();
  std::lock_guard hold(all.lock);
  const auto is_it = [&](const auto& entry) { return &entry->device == &device; };
  const auto present = all.table.present();
  if (auto entry = std::ranges::find_if(present, is_it); entry != present.end())
    return (*entry)->state;
  const auto entries = all.table.entries();
  const auto entry = std::ranges::find_if(entries, is_it);
  return entry == entries.end() ? State{} : (*entry)->state;
}

uint64_t version() {
  return world().version.load(std::memory_order_acquire);
}

const Device* find_by_name(const char* name) {
  if (name == nullptr) return nullptr;
  return find([&](const Device& device, const State&) { return device.name == name; });
}

const Device* find_by_minor(uint32_t uverbs_minor) {
  World& all = world();
  std::lock_guard hold(all.lock);
  for (const std::unique_ptr<Table::Entry>& entry : all.table.entries()) {
    if (entry->device.uverbs_minor == uverbs_minor) return &entry->device;
  }
  return nullptr;
}

const Device* find_by_address(const sockaddr_storage& address) {
  in6_addr wanted;
  if (!core::address_of(address, wanted) || IN6_IS_ADDR_UNSPECIFIED(&wanted)) return nullptr;
  const bool loopback = is_loopback_address(wanted);
  // A link-local address may exist on several interfaces; the scope says which one is meant.
  unsigned scope = 0;
  if (IN6_IS_ADDR_LINKLOCAL(&wanted)) {
    scope = reinterpret_cast<const sockaddr_in6&>(address).sin6_scope_id;
  }
  const Device* const found = find([&](const Device& device, const State& state) {
    if (scope != 0 && device.ifindex != scope) return false;
    return std::ranges::any_of(state.addresses, [&](const in6_addr& each) {
      return loopback ? is_loopback_address(each) : std::memcmp(&each, &wanted, sizeof each) == 0;
    });
  });
  if (found == nullptr || !leaves_loopback_out() || reach_of(state_of(*found)) != Reach::kLoopback)
    return found;
  // Where it is not shown the first one stands in for it, as in Linux' cma_bind_loopback().
  const std::vector<Listed> shown = devices();
  const bool is_shown = std::ranges::count(shown, found, &Listed::device) > 0;
  return is_shown || shown.empty() ? found : shown.front().device;
}

void subscribe(Observer& observer) {
  World& all = world();
  std::lock_guard hold(all.looking);
  all.observers.push_back(&observer);
}

void unsubscribe(Observer& observer) {
  World& all = world();
  std::lock_guard hold(all.looking);
  std::erase(all.observers, &observer);
}

void pretend(const Device& device, Change change) {
  make_happen([&](Table&) { return std::vector{Table::Noticed{&device, change}}; });
}

void hold_down(const Device& device, Holder by, bool down) {
  make_happen([&](Table& table) { return table.hold_down(device, by, down); });
}

void shift_gids(const Device& device) {
  make_happen([&](Table& table) { return table.shift_addresses(device); });
}

int start_watching(int& fd) {
  World& all = world();
  std::lock_guard hold(all.looking);
  if (all.over) return ECANCELED;
  int error = 0;
  all.watch = InterfaceWatch::start(error);
  if (all.watch == nullptr) return error;
  fd = all.watch->fd();
  look(all);  // what it knows is younger than what we knew
  return 0;
}

void stop_watching() {
  World& all = world();
  std::lock_guard hold(all.looking);
  if (!all.over) all.watch.reset();
}

}  // namespace uiw::device
