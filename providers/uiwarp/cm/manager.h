// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The connection manager of a process: event channels, ids and their operations.
//
// Threads: every function of the first part may be called from any thread but the engine's. One
// lock guards all ids, channels and event queues. It is never held across a system call that can
// block, nor across a wait, except until the engine has finished one write to a pipe
// (cm/event_notifier.h). Engine callbacks take it, and so do callees of device::refresh(). So it
// must not be held in Engine::run_sync() or device::refresh(). Lock order: this lock, then the list
// of endpoints, the registry of queue pairs or whatever EventSink takes.
//
// Return values are 0 or a positive errno. Common to all functions that take an id: ENOENT no such
// id; EINVAL it belongs to another channel, or its state does not allow the call; EBADF another
// thread has closed the channel.
#pragma once

#include <cstdint>
#include <mutex>

#include "cm/admission_control.h"
#include "cm/cm.h"
#include "cm/endpoint.h"
#include "cm/event_notifier.h"
#include "cm/id.h"
#include "cm/id_table.h"
#include "cm/queue_pairs.h"
#include "cm/refused_attempts.h"
#include "cm/rules.h"
#include "core/list.h"
#include "core/settings.h"
#include "device/device.h"
#include "engine/engine.h"

namespace uiw::cm {

class Manager final : public device::Observer {
 public:
  // What an application may set on an id; values of RDMA_OPTION_ID_*.
  enum class Option : uint32_t { kTos = 0, kReuseAddress = 1, kV6Only = 2, kAckTimeout = 3 };

  // All must outlive the manager.
  Manager(QueuePairs& queue_pairs, const core::Settings& settings,
          const Rules& rules = rules_of(device::CmRules::kIwarp));
  // Every channel must be closed.
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  void open_channel(Channel& channel, EventSink& sink);
  // Destroys its ids and events. With the last channel the engine is released. `channel` must stay
  // valid until calls on it by other threads have returned (EBADF).
  void close_channel(Channel& channel);

  // `wanted` is used for InfiniBand's port space only; the others have one service each. EINVAL
  // port space; ENOMEM, ENOSPC.
  int create_id(Channel& channel, uint64_t uid, PortSpace space, Service wanted, uint32_t& number);
  // In any state. `events_reported`: how often next_event() has returned this id, also as a
  // listener. Its queued events are dropped, and none comes after the return. A listener's port is
  // free then, and requests that were not fetched are rejected.
  int destroy_id(Channel& channel, uint32_t number, uint32_t& events_reported);
  // Moves an id with its queued events from the channel that it is on.
  int migrate_id(Channel& to, Channel& from, uint32_t number, uint32_t& events_reported);

  // EAFNOSUPPORT; EADDRNOTAVAIL not an address of this host; ENODEV it belongs to no device;
  // EADDRINUSE; EACCES; EINVAL link-local address without scope. A loopback address without a port
  // chooses no device, and needs none until rdma_listen().
  int bind(Channel& channel, uint32_t number, const sockaddr_storage& address);
  // Leads to ADDR_RESOLVED or ADDR_ERROR. Errors of `source` (family 0: none) are those of bind().
  int resolve_address(Channel& channel, uint32_t number, const sockaddr_storage& source,
                      const sockaddr_storage& destination);
  int resolve_route(Channel& channel, uint32_t number);
  int query(Channel& channel, uint32_t number, Route& route);
  // EINVAL, with a message: in the state that query() returned there are no attributes for a queue
  // pair.
  int refuse_attributes(Channel& channel, uint32_t number);
  // EINVAL: wrong size of the value, or too late for it; ENOSYS: unknown option.
  int set_option(Channel& channel, uint32_t number, Option option, core::Bytes value);

  // Leads to ESTABLISHED, REJECTED, UNREACHABLE or CONNECT_ERROR. If the program moves the queue
  // pair: to CONNECT_RESPONSE instead of ESTABLISHED. For datagrams: to ESTABLISHED, with the queue
  // pair to send to, or UNREACHABLE. EINVAL: more private data than the frame has room for or the
  // rules allow; no such queue pair, if the connection moves it. EOPNOTSUPP: Service::kNone.
  // EADDRINUSE: explicit source port taken.
  int connect(Channel& channel, uint32_t number, const ConnParam& param);
  // EADDRINUSE; EMFILE; EOPNOTSUPP: Service::kNone. A backlog of 0 or above 1024 means 1024. All
  // listeners together queue at most as many requests as a quarter of the descriptors that the
  // process may have.
  int listen(Channel& channel, uint32_t number, uint32_t backlog);
  // From now on events of the id carry `uid`, and the queue pair is in RTS. ECONNRESET: the peer
  // has gone. EINVAL: no such queue pair or not fit to be connected; too much private data. On
  // error the peer gets REJECTED, and the request is over. Otherwise leads to ESTABLISHED; to
  // DISCONNECTED when the peer goes before its first message; or to CONNECT_ERROR when, before the
  // engine has sent the Reply, the peer goes (-ECONNRESET) or the queue pair fails or is destroyed
  // (-EINVAL). By InfiniBand's rules the queue pair need not exist: then the connection is
  // established without one, as with connect(). For datagrams this only sends the answer, whatever
  // queue pair it names: no event follows.
  int accept(Channel& channel, uint32_t number, uint64_t uid, const ConnParam& param);
  // The active end's "ready to use", after CONNECT_RESPONSE: the peer gets ESTABLISHED. No event
  // follows at this end until DISCONNECTED. Does nothing if the connection moves the queue pair.
  int establish(Channel& channel, uint32_t number);
  // Rejects a Request or, at the active end, the answer to one. EINVAL: too much private data.
  int reject(Channel& channel, uint32_t number, core::Bytes private_data);
  // Leads to DISCONNECTED, once, and by InfiniBand's rules then to TIMEWAIT_EXIT. Returns 0 also
  // after these events.
  // While an id connects: by iWARP's rules DISCONNECTED follows ESTABLISHED, if the peer accepts;
  // by InfiniBand's it does nothing.
  int disconnect(Channel& channel, uint32_t number);
  // Leads to MULTICAST_JOIN, with `uid` and the number of the membership. EINVAL: the id is not for
  // datagrams, is not bound to a device, or has gone beyond address resolution; `group` is no
  // multicast address, or of another family than the id's. EOPNOTSUPP: the rules have no datagrams;
  // ENOMEM.
  int join(Channel& channel, uint32_t number, uint64_t uid, const sockaddr_storage& group,
           uint32_t& membership);
  // No event of the membership comes after the return; `events_reported` as in destroy_id(). ENOENT
  // no such membership.
  int leave(Channel& channel, uint32_t membership, uint32_t& events_reported);
  // Queues an event that the application has made: kUser, kInternal.
  int write_event(Channel& channel, uint32_t number, EventType type, int status, uint64_t argument);
  // The application's name for the id; 0: no such id.
  uint64_t uid_of(Channel& channel, uint32_t number);
  // Checks only that there is such an id, for commands that do nothing else.
  int check_id(Channel& channel, uint32_t number);

  // Takes the oldest event. EAGAIN: none.
  int next_event(Channel& channel, Event& event);

  // --- for device/ ---

  // DEVICE_REMOVAL for the ids of a device that has gone.
  void device_changed(const device::Device& device, device::Change change) override;

  // --- for endpoints ---

  std::mutex& lock() { return lock_; }
  const core::Settings& settings() const { return settings_; }
  // Constant. Thread: any.
  const Rules& rules() const { return rules_; }
  QueuePairs& queue_pairs() { return queue_pairs_; }
  AdmissionControl& admission() { return admission_; }
  RefusedAttempts& refused_attempts() { return refused_attempts_; }  // lock held

  // Queues an event of `id`; drops it if `id` is a child that is not accepted yet. Lock held.
  void push(Id& id, EventType type, int status, const ConnParam* param = nullptr);
  // Makes a new id for a connection request on `listener` and queues its CONNECT_REQUEST. Null when
  // the backlog is full or memory is short. Lock held.
  Id* push_request(Id& listener, const sockaddr_storage& local, const sockaddr_storage& peer,
                   const device::Device& device, const ConnParam& offered);

  void endpoint_created(Endpoint& endpoint);
  void endpoint_gone(Endpoint& endpoint);
  // How many there are, including those without an id. Thread: any.
  size_t endpoints();

 private:
  Id* find(Channel& channel, uint32_t number, int& error);
  Id* find_again(uint32_t number, uint64_t serial);
  int bind_locked(Id& id, const sockaddr_storage& address);
  bool is_taken(const Id& id, const sockaddr_storage& address, bool may_share) const;
  int hold_port(Id& id, const sockaddr_storage& address);
  int set_v6_only(Id& id, bool only);
  int answer_request(Id& id, const ConnParam& param);
  // Returns without the lock, unless it returns the error of starting the engine.
  int reject_request(Id& id, std::unique_lock<std::mutex>& hold, core::Bytes private_data);
  static Route route_of(const Id& id);
  int new_id(Channel& channel, Id*& out);
  Membership* find_membership(Channel& channel, uint32_t number, int& error);
  static void end_membership(Membership& membership);
  void queue(QueuedEvent& event);
  void unqueue(Channel& channel, QueuedEvent& event);
  void discard(Id& id);
  int acquire_engine();
  void end_orphans(engine::Engine& engine);
  Endpoint* take_orphan(bool& any);

  QueuePairs& queue_pairs_;
  const core::Settings& settings_;
  const Rules& rules_;
  std::mutex lock_;
  EventNotifier notifier_{lock_};
  AdmissionControl admission_{settings_};
  RefusedAttempts refused_attempts_;
  uint64_t last_turn_ = 0;  // of connect()
  IdTable ids_;
  uint64_t last_serial_ = 0;
  uint32_t last_membership_ = 0;
  uint32_t open_channels_ = 0;
  engine::EngineRef engine_;  // from the first listen() or connect() until the last channel closes

  std::mutex endpoints_lock_;
  core::List<Endpoint, &Endpoint::among_all> endpoints_;
};

// The manager of this process; null when memory is short. Thread: any.
Manager* process_manager();

}  // namespace uiw::cm
