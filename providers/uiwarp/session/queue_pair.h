// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A queue pair: joins its protocol machine (qp/), a TCP stream (transport/), its queues and the
// threads that use them. This is the interface for verbs/, cm/ and rendezvous/.
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

// Callbacks about the life of the connection. Thread: the engine on which it was made. A callback
// never comes from inside a QueuePair call of the observer, always in a later turn of the engine.
class ConnectionObserver {
 public:
  // The peer's first FPDU arrived (responder) or the RTR was handed to TCP (initiator).
  virtual void on_first_fpdu() = 0;
  // The connection was ended by either side; called once. All completions and async events of the
  // QP were published before. 0 after an orderly close, else a positive errno.
  virtual void on_connection_ended(int error) = 0;

 protected:
  ~ConnectionObserver() = default;
};

// Whether an expected peer that has not connected yet is needed. It is not before something is
// posted, and no longer once it has connected or the queue pair is in error.
enum class PeerWanted { kNotYet, kNow, kNoMore };

struct QueuePairOptions : queue::QueuePairOptions {
  core::Service service = core::Service::kReliable;  // unreliable ones are connected by number only
  progress::BusyPoller* busy_poller = nullptr;  // null: pollers of foreign completion queues never
                                                // receive for it
  bool send_with_immediate = false;         // SEND_WITH_IMM may be posted, if the peer accepts it
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
  // Sends what can be sent. True: no posted request needs the memory of this region any more.
  // `now`: requests that need it and cannot be sent fail. False also while another thread is
  // sending. Thread: any.
  bool lets_go_of(uint32_t stag, bool now);

  // The process is about to end. As before destruction, the peer may first ask whether what it sent
  // has arrived. True: the caller must call again, for 200 ms at most. False: the peer needs
  // nothing more. Thread: any.
  bool leave();

  // The first step of ~QueuePair: completions raise no events any more, and the peer gets time to
  // ask whether what it sent has arrived, 200 ms at most. Thread: any but the engine's.
  void say_farewell();
  // The rest of the destructor's work. Runs `first` on `engine` before it, so that the caller waits
  // once for both. Afterwards the queue pair can only be freed. Not in a fork's child. Thread: any
  // but an engine's.
  void end_after(engine::Engine& engine, engine::Task& first);
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  uint32_t qp_num() const;

  // ibv_post_send, ibv_post_recv: 0 or errno, *bad set on error. Thread: any. EINVAL: bad opcode,
  // too many SGEs, inline too large, message over 2^31, QP not connected yet. ENOMEM: queue full.
  // ENODEV: called in a forked child of the process that made the QP; modify() also returns that.
  // After an error state posts complete with IBV_WC_WR_FLUSH_ERR.
  int post_send(ibv_send_wr* wr, ibv_send_wr** bad);
  int post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad);

  // Posts work requests together or not at all: see begin() in qp/send_queue.h. end_batch(true)
  // returns EINVAL, and posts nothing, when the QP is not connected yet. Thread: any.
  void begin_batch();
  int add_to_batch(const ibv_send_wr& wr);
  int end_batch(bool publish);
  // Whether such work requests may be posted to a queue pair with these options.
  static bool supports(ibv_wr_opcode opcode, core::Service service, bool send_with_immediate);

  // Something that the QP needs is broken: it goes to ERR with IBV_EVENT_QP_FATAL, and the peer
  // gets a Terminate. Rings the engine's doorbell. Thread: any.
  void fail();

  // Resets the connection, if there is one. This end reacts as if the network had reset it, and has
  // done so when this returns. Thread: any but an engine's.
  void break_connection();
  // deafen(true): from now on nothing from the peer arrives, on this connection or a later one.
  // deafen(false) ends that (transport::TcpStream::set_deaf()). Thread: any.
  void deafen(bool deaf);

  // ibv_modify_qp, ibv_query_qp. 0 or errno; on error nothing has changed. Thread: any but the
  // engine's.
  int modify(const ibv_qp_attr& attr, int mask);
  int query(ibv_qp_attr& attr, int mask, ibv_qp_init_attr& init) const;

  // Sets IBV_QP_ACCESS_FLAGS as modify() does. Thread: engine.
  void allow(unsigned access_flags);

  // The program has named the peer by address and number (ibv_modify_qp to RTR with an address
  // vector). A connection to it will be attached sooner or later. The move to RTS does not wait for
  // that; posted requests do. As in InfiniBand, such a queue pair is not told that its peer has
  // gone. It finds out when it has something to send, which fails with IBV_WC_RETRY_EXC_ERR. With
  // unreliable service it never finds out: what is posted is dropped. Enters RTR. EINVAL unless in
  // INIT. Thread: any.
  int expect_peer();

  // How long a peer that owes an answer may be silent before the connection fails
  // (session/silence.cc); 0: forever. Until this is called, and again after RESET, the settings
  // rule. `timeout` is the value that query() returns for it. Thread: any.
  void set_ack_timeout(core::Nanoseconds limit, uint8_t timeout);
  core::Nanoseconds ack_timeout() const;

  // Whether the peer's Send waits for its receive for as long as the connection stands. Until this
  // is called, and again after RESET, the settings limit the wait. Thread: any.
  void await_receives(bool for_ever);

  // rdma_accept() has chosen this queue pair: it becomes RTS now, and what is posted waits for
  // attach() or abandon(). How many Reads may be outstanding is known from attach() on. EINVAL when
  // the QP's state does not allow a connection, or its service is unreliable. A queue pair that
  // expects its peer keeps its state. Thread: any.
  int claim();

  // --- for cm/ and rendezvous/. Thread: the engine on which connections are made. If the queue
  // pair has another engine, the call waits for that one. The observer is called on the thread of
  // the former. ---

  PeerWanted peer_wanted() const;
  // The expected peer has not connected in time: what was posted fails, the first request with
  // IBV_WC_RETRY_EXC_ERR. With unreliable service it is dropped, as is what is posted until the
  // peer connects after all. Call it only while peer_wanted() is kNow.
  void give_up_peer();

  // Enters RDMA mode on `stream`, on which MPA start-up has just come to `agreement`; becomes RTS.
  // `leftover` are octets that came behind the peer's frame (copied); later ones come from the
  // stream, whose handler is replaced. The initiator sends its RTR now if one was agreed. A queue
  // pair that expects its peer, or was claimed, keeps its state. EINVAL when the QP's state does
  // not allow a connection, or it already has one; ENOMEM. On error the stream stays the caller's,
  // with its handler as it was. `receiving`: whether octets are processed at once, or from
  // receive() on; before that no request completes because of what the peer sends.
  enum class Receiving : uint8_t { kAtOnce, kLater };
  int attach(transport::StreamPtr&& stream, const mpa::Agreement& agreement, core::Bytes leftover,
             ConnectionObserver* observer, Receiving receiving = Receiving::kAtOnce);
  void receive();
  // The connection that it was claimed for will not come: goes to ERR, and what was posted is
  // flushed.
  void abandon();
  // The observer goes away; the connection lives on.
  void forget_observer();
  // rdma_disconnect: queued work goes out, then FIN; RFC 5041 6.2.1. Without a connection: no-op.
  void disconnect();

 private:
  friend class InsideQueuePair;  // tests/sim
  QueuePair();
  void free_when_released();
  std::unique_ptr<State> state_;  // null: ended by free_when_released()
  std::mutex modifying_;
  // Null unless connections are made on another engine than this queue pair's. Thread: the former.
  std::shared_ptr<class Relay> relay_;
};

}  // namespace uiw::session
