// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/ports.h"

#include <algorithm>
#include <bitset>
#include <cerrno>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "core/clock.h"
#include "core/gid.h"
#include "core/per_process.h"
#include "core/raw_sys.h"
#include "core/settings.h"
#include "core/shaken.h"
#include "core/unshared_descriptor.h"
#include "device/gid_table.h"
#include "rendezvous/name.h"
#include "rendezvous/proof.h"
#include "rendezvous/qpn_listener.h"
#include "rendezvous/reserve_port.h"

namespace uiw::rendezvous {
namespace {

// How many numbers are drawn before one is reused: half of all, so that an attacker must guess
// among the other half.
constexpr uint32_t kLate = kNumbersPerPort / 2;

// How many ports are opened for one number until the condition counts as unmet. Those of
// UIWARP_PORTS are all tried, as the user who chose them expects some to be usable.
constexpr int kMostTries = 8;

struct Port {
  uint16_t number = 0;
  core::UnsharedDescriptor reserved;  // bound everywhere; does not listen
  uint32_t used_count = 0;
  std::bitset<kNumbersPerPort> used;
  uint8_t latest[kLate] = {};         // a ring of drawn numbers
  uint32_t drawn = 0;                 // how many were drawn so far
  std::optional<uint8_t> given_back;  // the last one given back, until another is drawn

  uint8_t draw();
  std::unique_ptr<QpnListener> listener;      // thread: engine
  engine::Engine* listener_engine = nullptr;  // the listener's; null without one
  std::unique_ptr<Port> next;
};

// Under --shake, depending on the seed: reuses the number given back last at once, which no manual
// page forbids.
bool reuses_at_once() {
  return core::shaken(core::Shaken::kNumbers).value_or(1) % 2 == 0;
}

// Draws any number that is free and was not drawn lately, unpredictably; any free one if there is
// no such. At least one must be free.
uint8_t Port::draw() {
  if (const std::optional<uint8_t> again = std::exchange(given_back, std::nullopt);
      again && !used[*again] && reuses_at_once()) {
    used.set(*again);
    ++used_count;
    return *again;
  }
  std::bitset<kNumbersPerPort> excluded = used;
  for (uint32_t i = 0; i < std::min(drawn, kLate); ++i) excluded.set(latest[i]);
  if (excluded.all()) excluded = used;
  core::SipKey random;
  if (!make_random(random)) random.first = static_cast<uint64_t>(core::now());
  size_t skip = random.first % (kNumbersPerPort - excluded.count()), index = 0;
  while (excluded[index] || skip-- > 0) ++index;
  latest[drawn++ % kLate] = static_cast<uint8_t>(index);
  used.set(index);
  ++used_count;
  return static_cast<uint8_t>(index);
}

// Per process: queue pairs of a forked child get ports of their own.
struct Ports {
  std::mutex mutex;
  AllPendingPeers pending_peers;  // thread: engine; outlives the listeners
  std::unique_ptr<Port> first;    // under mutex, with everything in it but the listeners

  core::Result<Port*> add();
  Port* find(uint32_t qp_num) const;
  std::unique_ptr<Port> take_out(const Port& port);
  bool has_idle_port() const;
};
constinit core::PerProcess<Ports> g_ports;

core::Result<Port*> Ports::add() {
  std::unique_ptr<Port> port(new (std::nothrow) Port);
  if (!port) return core::Errno{ENOMEM};
  core::Result<int> fd = reserve_port();
  if (!fd) return core::Errno{fd.error()};
  port->reserved.take(*fd);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (const int error = core::sys::getsockname(*fd, reinterpret_cast<sockaddr*>(&bound), &size);
      error < 0)
    return core::Errno{-error};
  // The port has the same offset for both families.
  port->number = ntohs(reinterpret_cast<const sockaddr_in&>(bound).sin_port);
  port->next = std::move(first);
  first = std::move(port);
  return first.get();
}

Port* Ports::find(uint32_t qp_num) const {
  Port* port = first.get();
  while (port && port->number != port_of(qp_num)) port = port->next.get();
  return port && port->used[index_of(qp_num)] ? port : nullptr;
}

std::unique_ptr<Port> Ports::take_out(const Port& port) {
  std::unique_ptr<Port>* link = &first;
  while (link->get() != &port) link = &(*link)->next;
  std::unique_ptr<Port> gone = std::move(*link);
  *link = std::move(gone->next);
  return gone;
}

bool Ports::has_idle_port() const {
  const Port* port = first.get();
  while (port && port->used_count > 0) port = port->next.get();
  return port;
}

}  // namespace

core::Result<uint32_t> take_number(PortCondition* condition) {
  Ports* const all = g_ports.get();
  if (!all) return core::Errno{ENOMEM};
  const std::lock_guard lock(all->mutex);
  const auto try_port = [&](const Port& port) {
    return condition ? condition->try_port(port.number) : 0;
  };
  for (Port* port = all->first.get(); port; port = port->next.get())
    if (port->used_count < kNumbersPerPort && try_port(*port) == 0)
      return number_of(port->number, port->draw());
  // Unsuitable ports stay open until the end, so that the next port is a different one.
  const core::Settings& settings = core::settings();
  const int most = settings.first_port ? settings.last_port - settings.first_port + 1 : kMostTries;
  int error = 0;
  std::unique_ptr<Port> unsuitable;
  for (int tries = 0; tries < most; ++tries) {
    core::Result<Port*> added = all->add();
    if (!added) return core::Errno{error ? error : added.error()};
    error = try_port(**added);
    if (error == 0) return number_of((*added)->number, (*added)->draw());
    std::unique_ptr<Port> one = all->take_out(**added);
    one->next = std::move(unsuitable);
    unsuitable = std::move(one);
    if (error != EADDRINUSE) break;
  }
  return core::Errno{error};
}

void give_number(uint32_t qp_num) {
  Ports* const all = g_ports.get();
  if (!all) return;
  std::unique_ptr<Port> gone;
  {
    const std::lock_guard lock(all->mutex);
    Port* port = all->find(qp_num);
    if (!port) return;
    port->used.reset(index_of(qp_num));
    port->given_back = index_of(qp_num);
    if (port->used_count > 1) {
      --port->used_count;
      return;
    }
    // A port without a listener is kept for the next queue pair, so that its numbers are reused as
    // late as possible.
    const bool stays = !port->listener_engine && !all->has_idle_port();
    port->used_count = 0;
    if (stays) return;
    gone = all->take_out(*port);
  }
  if (gone->listener_engine) gone->listener_engine->run_sync([&] { gone->listener.reset(); });
}

void close_idle_ports() {
  Ports* const all = g_ports.get();
  if (!all) return;
  const std::lock_guard lock(all->mutex);
  for (std::unique_ptr<Port>* link = &all->first; *link;) {
    if ((*link)->used_count == 0) {
      *link = std::move((*link)->next);
    } else {
      link = &(*link)->next;
    }
  }
}

bool number_in_use(uint32_t qp_num) {
  Ports* const all = g_ports.get();
  if (!all) return false;
  const std::lock_guard lock(all->mutex);
  return all->find(qp_num) != nullptr;
}

core::Result<QpnListener*> open_listener(engine::Engine& engine, const Name& own,
                                         unsigned ifindex) {
  Ports* const all = g_ports.get();
  if (!all) return core::Errno{ENOMEM};
  Port* port;
  {
    const std::lock_guard lock(all->mutex);
    port = all->find(own.qp_num);
  }
  // The number is in use, so the port stays; only this thread uses its listener.
  if (!port) return core::Errno{EINVAL};
  if (!port->listener) {
    port->listener.reset(new (std::nothrow) QpnListener(engine, port->number, all->pending_peers));
    if (!port->listener) return core::Errno{ENOMEM};
    const std::lock_guard lock(all->mutex);
    port->listener_engine = &engine;
  }
  const int error = port->listener->listen(
      own.qp_num, core::socket_address_of(own.gid, port->number, ifindex), port->reserved.get());
  if (error != 0) return core::Errno{error};
  return port->listener.get();
}

}  // namespace uiw::rendezvous
