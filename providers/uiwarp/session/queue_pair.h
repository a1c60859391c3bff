// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A queue pair: its protocol machine (qp/) married to a TCP stream (transport/), its queues and the
// threads that touch them. What verbs/ and cm/ see.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "core/bytes.h"
#include "core/service.h"
#include "engine/engine.h"
#include "mpa/negotiator.h"
#include "progress/busy_poller.h"
#include "queue/queue_pair_options.h"
#include "transport/tcp_stream.h"

namespace uiw::session {

// Told about the life of the connection. Thread: the engine on which it was made; never from inside
// a QueuePair call made by the observer's own code, always from a later turn of the engine.
class ConnectionObserver {
 public:
  // The peer's first FPDU arrived (responder) or the RTR was handed to TCP (initiator).
  virtual void on_first_fpdu() = 0;
  // The connection has ended, by whichever side; once. All completions and async events of the QP
  // were published before. 0 after an orderly close, else a positive errno.
  virtual void on_connection_ended(int error) = 0;

 protected:
  ~ConnectionObserver() = default;
};

// Whether an expected peer that has not come yet is wanted: not before something is posted, and no
// more when it is there or the queue pair is in error.
enum class PeerWanted { kNotYet, kNow, kNoMore };

struct QueuePairOptions : queue::QueuePairOptions {
  core::Service service = core::Service::kReliable;  // unreliable ones are connected by number only
  progress::BusyPoller* busy_poller = nullptr;  // null: pollers of other queues do not receive here
  bool send_with_immediate = false;         // SEND_WITH_IMM may be posted, to a peer that takes it
  ibv_qp_state first_state = IBV_QPS_INIT;  // or RESET
};

class State;  // state.h

class QueuePair {
 public:
  // Null when out of memory. `engine` serves it. The queue pair starts in INIT as iWARP ones do
  // (vkernel.md: pyverbs expects INIT right after create). Thread: any.
  static std::unique_ptr<QueuePair> create(engine::Engine& engine, const QueuePairOptions& options);
  // Ends a connection that still runs (RST if need be), waits until the engine has let go, then
  // frees. Outstanding work requests vanish without completion. Thread: any but the engine's.
  ~QueuePair();
  // Sends what can be sent, and says whether nothing that is posted needs the memory of this region
  // any more. `now`: what cannot be sent fails. False also while another thread is sending. Thread:
  // any.
  bool lets_go_of(uint32_t stag, bool now);

  // The process is about to end, and this with it: its peer may ask before, as before it is
  // destroyed. False: it is done with that; true: it goes on, 200 ms at most, and is to be called
  // again. Thread: any.
  bool leave();

  // What ~QueuePair begins with: nothing that completes raises an event any more, and the peer has
  // the time to ask, 200 ms at most. Thread: any but the engine's.
  void say_farewell();
  // What the destructor goes on with, once `first` has run on `engine`: one wait for both. From
  // here the queue pair can only be freed. Not in a fork's child. Thread: any but an engine's.
  void end_after(engine::Engine& engine, engine::Task& first);
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  uint32_t qp_num() const;

  // ibv_post_send, ibv_post_recv: 0 or errno, *bad set on error. Thread: any.
  // EINVAL: bad opcode, too many SGEs, inline too large, message over 2^31, QP not connected yet.
  // ENOMEM: queue full. ENODEV: a fork of the process that made the QP; so does modify().
  // After an error state posts complete with IBV_WC_WR_FLUSH_ERR.
  int post_send(ibv_send_wr* wr, ibv_send_wr** bad);
  int post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad);

  // Work requests that are posted together or not at all: qp/send_queue.h, begin(). end_batch(true)
  // gives EINVAL, and posts nothing, when the QP is not connected yet. Thread: any.
  void begin_batch();
  int add_to_batch(const ibv_send_wr& wr);
  int end_batch(bool publish);
  // Whether such work requests may be posted to a queue pair with these options.
  static bool supports(ibv_wr_opcode opcode, core::Service service, bool send_with_immediate);

  // Something that the QP needs is broken: it goes to ERR with IBV_EVENT_QP_FATAL, the peer gets a
  // Terminate. Rings the engine's doorbell. Thread: any.
  void fail();

  // The connection, if there is one, is reset, and this end finds it so: in ERR, when this returns.
  // Thread: any but an engine's.
  void break_connection();
  // From now on nothing of the peer arrives, whatever connection there is or will be, or does again
  // (transport::TcpStream::set_deaf()). Thread: any.
  void deafen(bool deaf);

  // ibv_modify_qp, ibv_query_qp. 0 or errno, and then nothing has changed. Thread: any but the
  // engine's.
  int modify(const ibv_qp_attr& attr, int mask);
  int query(ibv_qp_attr& attr, int mask, ibv_qp_init_attr& init) const;

  // IBV_QP_ACCESS_FLAGS, as modify() does. Thread: engine.
  void allow(unsigned access_flags);

  // The peer was named by address and number (ibv_modify_qp to RTR with an address vector): a
  // connection to it will be attached, sooner or later, and RTS does not wait for that; what is
  // posted does. As in InfiniBand nobody tells such a queue pair that its peer has gone; it finds
  // out when it wants to send, and that fails with IBV_WC_RETRY_EXC_ERR; with unreliable service
  // never, as what is posted is dropped. Enters RTR. EINVAL unless in INIT. Thread: any.
  int expect_peer();

  // How long a peer that is to answer may say nothing before the connection has failed
  // (session/silence.cc); 0: for ever. Until it is called, and again from RESET on, as the settings
  // say. `timeout` is what query() shall say of it. Thread: any.
  void set_ack_timeout(core::Nanoseconds limit, uint8_t timeout);
  core::Nanoseconds ack_timeout() const;

  // Whether a Send waits for its receive for as long as the connection stands. Until it is called,
  // and again from RESET on, it waits as the settings say. Thread: any.
  void await_receives(bool for_ever);

  // rdma_accept() has chosen it: becomes RTS now, and what is posted waits for attach() or
  // abandon(). How many Reads may be outstanding is known from attach() on. EINVAL when the QP is
  // in no state to be connected, or has unreliable service. One that expects its peer stays as it
  // is. Thread: any.
  int claim();

  // --- for cm/ and rendezvous/. Thread: the engine on which connections are made, which may be
  // another one than this queue pair's and then waits for that. The observer is told on it. ---

  PeerWanted peer_wanted() const;
  // The expected peer has not come in time: what was posted fails, the first with
  // IBV_WC_RETRY_EXC_ERR. With unreliable service it is dropped, as is what is posted until the
  // peer comes after all. Only while it is wanted.
  void give_up_peer();

  // Enters RDMA mode on `stream`, just agreed on by MPA start-up; becomes RTS. `leftover` are
  // octets that came behind the peer's frame (copied); later ones come from the stream, whose
  // handler is replaced. The initiator sends its RTR now if one was agreed. A queue pair that
  // expects its peer, or was claimed, stays in the state it is in. EINVAL when the QP is in no
  // state to be connected, or already has a connection, ENOMEM: the stream then stays the caller's,
  // its handler as it was.
  // Looks at octets at once, or from receive() on: nothing completes by what the peer says before.
  enum class Receiving : uint8_t { kAtOnce, kLater };
  int attach(transport::StreamPtr&& stream, const mpa::Agreement& agreement, core::Bytes leftover,
             ConnectionObserver* observer, Receiving receiving = Receiving::kAtOnce);
  void receive();
  // There will be no connection for which it was claimed: ERR, and what was posted is flushed.
  void abandon();
  // The observer goes away; the connection lives on.
  void forget_observer();
  // rdma_disconnect: queued work goes out, then FIN; RFC 5041 6.2.1. Without a connection: no-op.
  void disconnect();

 private:
  friend class InsideQueuePair;  // tests/sim
  QueuePair();
  void free_when_released();
  std::unique_ptr<State> state_;  // null: has ended
  std::mutex modifying_;
  // Connections are made on another engine than this queue pair's. Thread: that one.
  std::shared_ptr<class Relay> relay_;
};

}  // namespace uiw::session
