// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The state of an rdma_cm_id and of an event channel. Plain data: manager.h has the rules. All of
// it is guarded by the manager's lock.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>

#include "cm/cm.h"
#include "core/clock.h"
#include "core/explain.h"
#include "core/list.h"
#include "core/unshared_descriptor.h"
#include "device/device.h"
#include "transport/listener.h"

namespace uiw::cm {

class Endpoint;
struct Channel;
struct Id;

enum class IdState {
  kIdle,
  kBound,             // has an address, and a socket (bound_socket) unless its port is not held
  kResolvingAddress,  // a thread asks the kernel for the route, without the lock
  kAddressResolved,
  kRouteResolved,
  kListening,
  kConnecting,  // active: until ESTABLISHED, CONNECT_RESPONSE or an error event
  kAnswered,    // active: from CONNECT_RESPONSE until the program is ready
  kRequested,   // passive: until the application accepts or rejects
  kAccepting,   // passive: until the engine has given the stream to the queue pair
  kConnected,   // the queue pair has the stream
  kEnded,       // rejected, failed or disconnected
};

// A multicast group that an id has joined. Verbs attach the queue pair; this only serves events.
struct Membership {
  core::ListLink<Membership> of_id;
  Id* id = nullptr;
  uint32_t number = 0;
  uint64_t uid = 0;
  sockaddr_storage group{};
  uint32_t events_reported = 0;
};

// An event between push and GET_EVENT.
struct QueuedEvent {
  core::ListLink<QueuedEvent> link, of_owner;
  Event event;
  Id* owner = nullptr;
  Id* child = nullptr;               // CONNECT_REQUEST: the new id
  Membership* membership = nullptr;  // MULTICAST_JOIN
};

struct Id {
  core::ListLink<Id> in_channel;
  core::List<Membership, &Membership::of_id> memberships;
  core::List<QueuedEvent, &QueuedEvent::of_owner> events;  // this id's among the channel's
  uint32_t number = 0;
  uint64_t serial = 0;  // never reused, unlike number
  uint64_t uid = 0;     // 0: a child that is not accepted yet; its events are dropped
  Channel* channel = nullptr;
  IdState state = IdState::kIdle;
  QueuedEvent* request = nullptr;  // child: its CONNECT_REQUEST until that is fetched
  Service service = Service::kConnection;
  bool asked_reuse = false;  // RDMA_OPTION_ID_REUSEADDR
  bool v6_only = false;      // RDMA_OPTION_ID_AFONLY
  int tos = -1;
  std::optional<uint8_t> ack_timeout;     // RDMA_OPTION_ID_ACK_TIMEOUT
  Terms terms;                            // all but the time-out
  bool holds_port = false;                // the port of `source`, until the id is destroyed
  core::UnsharedDescriptor bound_socket;  // holds the port before the id listens or connects
  sockaddr_storage source{}, destination{};
  const device::Device* device = nullptr;
  uint32_t events_reported = 0;
  uint32_t backlog = 0;          // listener: limit of queued CONNECT_REQUESTs
  uint32_t requests_queued = 0;  // listener: how many are queued
  Endpoint* endpoint = nullptr;  // its part on the engine thread
  core::Told told;               // why its calls were refused
};

// The descriptor of a channel, which is readable while events are queued.
class EventSink {
 public:
  // Makes the descriptor readable, and wakes pollers even if it was readable before. Thread: any,
  // several at a time.
  virtual void notify() = 0;
  // Makes it unreadable, no matter how often it was notified. False when it was not readable:
  // notify() is still running, or the program has emptied it. The manager's lock is held.
  virtual bool clear() = 0;

 protected:
  ~EventSink() = default;
};

struct Channel {
  EventSink* sink = nullptr;
  bool open = false;
  // Used by EventNotifier. How often notify() was called, or is about to be called by the engine,
  // since the last clear().
  enum class Notified { kNever, kOnce, kAgain } notified = Notified::kNever;
  bool notification_pending = false;  // in the engine's list of channels to notify
  core::ListLink<Channel> pending_notification;
  uint64_t number = 0;               // from 1, in the process
  uint64_t notifications_drawn = 0;  // how many delays were drawn (--shake)
  core::Nanoseconds due = 0;         // its events are held back until then; 0: not held back
  core::List<QueuedEvent, &QueuedEvent::link> events;
  core::List<Id, &Id::in_channel> ids;
};

}  // namespace uiw::cm
