// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Channels, ids and events. Addresses are in manager_address.cc, connections in manager_connect.cc,
// multicast groups in manager_multicast.cc.
#include "cm/manager.h"

#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "core/assert.h"
#include "core/log.h"
#include "core/per_process.h"
#include "core/raw_sys.h"

namespace uiw::cm {

Manager::Manager(QueuePairs& queue_pairs, const core::Settings& settings, const Rules& rules)
    : queue_pairs_(queue_pairs), settings_(settings), rules_(rules) {
  device::subscribe(*this);
}

Manager::~Manager() {
  device::unsubscribe(*this);
  UIW_ASSERT(open_channels_ == 0 && ids_.size() == 0);
}

void Manager::open_channel(Channel& channel, EventSink& sink) {
  std::lock_guard hold(lock_);
  channel.sink = &sink;
  channel.open = true;
  notifier_.opened(channel);
  ++open_channels_;
}

void Manager::close_channel(Channel& channel) {
  engine::EngineRef last;
  {
    std::unique_lock hold(lock_);
    channel.open = false;
    while (Id* id = channel.ids.first()) discard(*id);
    notifier_.leave(channel, hold);
    if (--open_channels_ == 0) last = std::move(engine_);
  }
  if (last) end_orphans(*last);
}

// After the last channel: the engine must have finished with all endpoints before the reference to
// it is dropped.
void Manager::end_orphans(engine::Engine& engine) {
  engine.run_sync([&] { notifier_.engine_goes(engine); });
  bool any;
  do {
    any = false;
    engine.run_sync([&] {
      while (Endpoint* orphan = take_orphan(any)) orphan->drop();
    });
  } while (any);
}

// `any`: endpoints are left, even if they were dropped already and only need a little longer.
Endpoint* Manager::take_orphan(bool& any) {
  std::lock_guard hold(lock_);
  std::lock_guard hold_list(endpoints_lock_);
  any = false;
  // Another thread has opened a channel and acquired the engine meanwhile: the others may go on
  // with it.
  if (engine_) return nullptr;
  for (Endpoint* e = endpoints_.first(); e != nullptr; e = endpoints_.next(*e)) {
    any = true;
    if (!e->finished_ && !std::exchange(e->dropped_, true)) return e;
  }
  return nullptr;
}

void Manager::endpoint_created(Endpoint& endpoint) {
  std::lock_guard hold(endpoints_lock_);
  endpoints_.append(endpoint);
}

void Manager::endpoint_gone(Endpoint& endpoint) {
  std::lock_guard hold(endpoints_lock_);
  endpoints_.remove(endpoint);
}

size_t Manager::endpoints() {
  std::lock_guard hold(endpoints_lock_);
  return endpoints_.size();
}

int Manager::acquire_engine() {
  if (engine_) return 0;
  core::Result<engine::EngineRef> engine = engine::EngineRef::acquire();
  if (!engine) return engine.error();
  engine_ = std::move(*engine);
  return 0;
}

Id* Manager::find(Channel& channel, uint32_t number, int& error) {
  if (!channel.open) {
    error = EBADF;
    return nullptr;
  }
  Id* id = ids_.find(number);
  // A program may guess the number of a request that it has not fetched: that does not exist for it
  // yet.
  if (id != nullptr && id->request != nullptr) id = nullptr;
  error = id == nullptr ? ENOENT : id->channel != &channel ? EINVAL : 0;
  return error == 0 ? id : nullptr;
}

Id* Manager::find_again(uint32_t number, uint64_t serial) {
  Id* id = ids_.find(number);
  return id != nullptr && id->serial == serial ? id : nullptr;
}

int Manager::check_id(Channel& channel, uint32_t number) {
  std::lock_guard hold(lock_);
  int error;
  find(channel, number, error);
  return error;
}

int Manager::new_id(Channel& channel, Id*& out) {
  if (!channel.open) return EBADF;
  std::unique_ptr<Id> id(new (std::nothrow) Id);
  if (id == nullptr) return ENOMEM;
  if (int error = ids_.insert(*id)) return error;
  id->serial = ++last_serial_;
  id->channel = &channel;
  channel.ids.append(*id);
  out = id.release();
  return 0;
}

int Manager::create_id(Channel& channel, uint64_t uid, PortSpace space, Service wanted,
                       uint32_t& number) {
  Service service;
  switch (space) {
    case PortSpace::kTcp:
      service = Service::kConnection;
      break;
    case PortSpace::kIb:
      service = wanted;
      break;
    case PortSpace::kUdp:
    case PortSpace::kIpoib:
      service = Service::kDatagrams;
      break;
    default:
      return EINVAL;
  }
  if (service == Service::kDatagrams && rules_.datagrams == nullptr) service = Service::kNone;
  std::lock_guard hold(lock_);
  Id* id = nullptr;
  if (int error = new_id(channel, id)) return error;
  id->uid = uid;
  id->service = service;
  number = id->number;
  return 0;
}

// Like the kernel's rdma_cm, tells every id that is bound to the device. The event asks the
// application to destroy the id. TCP decides what happens to the connection.
void Manager::device_changed(const device::Device& device, device::Change change) {
  if (change != device::Change::kGone) return;
  std::lock_guard hold(lock_);
  for (Id* id = ids_.next(0); id != nullptr; id = ids_.next(id->number)) {
    if (id->device == &device) push(*id, EventType::kDeviceRemoval, 0);
  }
}

// Removes an id from all lists and frees it. Its endpoint gets the order to end.
void Manager::discard(Id& id) {
  Channel& channel = *id.channel;
  if (id.request != nullptr) unqueue(channel, *id.request);
  while (QueuedEvent* event = id.events.first()) {
    Id* unfetched = event->child;
    unqueue(channel, *event);
    if (unfetched == nullptr) continue;
    // The application will never see this id: its endpoint rejects. Its only event is out of the
    // queue already.
    if (Endpoint* endpoint = std::exchange(unfetched->endpoint, nullptr)) {
      endpoint->owner = nullptr;
      endpoint->order(Endpoint::kDrop);
    }
    ids_.remove(*unfetched);
    channel.ids.remove(*unfetched);
    delete unfetched;
  }
  if (Endpoint* endpoint = std::exchange(id.endpoint, nullptr)) {
    endpoint->owner = nullptr;
    endpoint->order(Endpoint::kDrop);
  }
  while (Membership* membership = id.memberships.first()) end_membership(*membership);
  ids_.remove(id);
  channel.ids.remove(id);
  delete &id;
}

uint64_t Manager::uid_of(Channel& channel, uint32_t number) {
  const std::lock_guard hold(lock_);
  int error;
  const Id* const id = find(channel, number, error);
  return id ? id->uid : 0;
}

int Manager::destroy_id(Channel& channel, uint32_t number, uint32_t& events_reported) {
  engine::EngineRef engine;
  {
    std::lock_guard hold(lock_);
    int error;
    Id* id = find(channel, number, error);
    if (id == nullptr) return error;
    if (id->state == IdState::kListening) {
      // Keeps the engine during the wait below, as another thread may close the last channel.
      core::Result<engine::EngineRef> another = engine::EngineRef::acquire();
      if (another) engine = std::move(*another);
    }
    events_reported = id->events_reported;
    discard(*id);
  }
  // Tasks run in the order posted: after this the listener's socket is closed.
  if (engine) engine->run_sync([] {});
  return 0;
}

int Manager::migrate_id(Channel& to, Channel& from, uint32_t number, uint32_t& events_reported) {
  std::lock_guard hold(lock_);
  if (!to.open) return EBADF;
  int error;
  Id* id = find(from, number, error);
  if (id == nullptr) return error;
  events_reported = id->events_reported;
  if (&to == &from) return 0;
  auto move_id = [&](Id& moved) {
    from.ids.remove(moved);
    to.ids.append(moved);
    moved.channel = &to;
  };
  for (QueuedEvent* event = id->events.first(); event != nullptr; event = id->events.next(*event)) {
    from.events.remove(*event);
    notifier_.taken(from);
    to.events.append(*event);
    notifier_.queued(to, nullptr);
    if (event->child != nullptr) move_id(*event->child);
  }
  move_id(*id);
  return 0;
}

void Manager::queue(QueuedEvent& event) {
  Channel& channel = *event.owner->channel;
  channel.events.append(event);
  event.owner->events.append(event);
  if (event.child != nullptr) event.child->request = &event;
  notifier_.queued(channel, engine_ ? &*engine_ : nullptr);
}

void Manager::unqueue(Channel& channel, QueuedEvent& event) {
  channel.events.remove(event);
  event.owner->events.remove(event);
  if (event.child != nullptr) {
    event.child->request = nullptr;
    --event.owner->requests_queued;
    admission_.fetched();
  }
  notifier_.taken(channel);
  delete &event;
}

void Manager::push(Id& id, EventType type, int status, const ConnParam* param) {
  if (id.uid == 0) return;
  auto* event = new QueuedEvent;  // never fails, thanks to the reserve: without the event a program
                                  // would wait forever
  event->event.type = type;
  event->event.uid = id.uid;
  event->event.id = id.number;
  event->event.status = status;
  if (param != nullptr) event->event.param = *param;
  event->owner = &id;
  queue(*event);
}

Id* Manager::push_request(Id& listener, const sockaddr_storage& local, const sockaddr_storage& peer,
                          const device::Device& device, const ConnParam& offered) {
  const uint32_t queued = listener.requests_queued;
  if (queued >= listener.backlog || !admission_.may_queue(queued)) return nullptr;
  std::unique_ptr<QueuedEvent> event(new (std::nothrow) QueuedEvent);
  if (event == nullptr) return nullptr;
  Id* child = nullptr;
  if (new_id(*listener.channel, child) != 0) return nullptr;
  ++listener.requests_queued;
  admission_.queued();
  child->state = IdState::kRequested;
  child->service = listener.service;
  child->source = local;
  child->destination = peer;
  child->device = &device;
  child->terms = terms_of(offered);
  event->event.type = EventType::kConnectRequest;
  event->event.uid = listener.uid;
  event->event.id = child->number;
  event->event.param = offered;
  event->owner = &listener;
  event->child = child;
  queue(*event.release());
  return child;
}

int Manager::write_event(Channel& channel, uint32_t number, EventType type, int status,
                         uint64_t argument) {
  if (type != EventType::kUser && type != EventType::kInternal) return EINVAL;
  std::lock_guard hold(lock_);
  int error;
  Id* id = find(channel, number, error);
  if (id == nullptr) return error;
  if (id->uid == 0) return EINVAL;
  auto* event = new (std::nothrow) QueuedEvent;
  if (event == nullptr) return ENOMEM;
  event->event.type = type;
  event->event.uid = id->uid;
  event->event.id = id->number;
  event->event.status = status;
  event->event.argument = argument;
  event->owner = id;
  queue(*event);
  return 0;
}

int Manager::next_event(Channel& channel, Event& out) {
  std::lock_guard hold(lock_);
  QueuedEvent* event = channel.events.first();
  if (event == nullptr || EventNotifier::is_late(channel)) return EAGAIN;
  out = event->event;
  Id& id = *event->owner;
  ++id.events_reported;
  out.route.service = id.service;
  if (event->membership != nullptr) {
    ++event->membership->events_reported;
    out.route = route_of(id);
    out.route.destination = event->membership->group;
  } else if (id.service == Service::kDatagrams && out.type == EventType::kEstablished) {
    out.route = route_of(id);
  }
  unqueue(channel, *event);
  return 0;
}

namespace {

struct ProcessManager {
  Manager manager{verbs_queue_pairs(), core::settings(), rules_of(device::face().cm)};
};
// After fork() the child has a copy of the parent's manager, whose lock may be held by a thread
// that does not exist there. So the child does not use it and gets a manager of its own.
constinit core::PerProcess<ProcessManager> g_process;

}  // namespace

Manager* process_manager() {
  ProcessManager* const mine = g_process.get();
  return mine == nullptr ? nullptr : &mine->manager;
}

}  // namespace uiw::cm
