// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A connection whose stream was given to its queue pair or to a stand-in. Waits for the first FPDU
// and for the end. By InfiniBand's rules it then stays for a while, for TIMEWAIT_EXIT.
#pragma once

#include <memory>

#include "cm/endpoint.h"
#include "cm/rules.h"
#include "cm/stand_in.h"
#include "cm/startup_io.h"
#include "session/queue_pair.h"

namespace uiw::cm {

// What holds the stream of a connection.
enum class Holder : uint8_t {
  kQueuePair,  // the queue pair with the number that the program named
  kStandIn,    // a StandIn: there is no queue pair with that number (stand_in.h)
};

// What should hold it, by the rules.
Holder holder_of(Manager& manager, uint32_t qp_num);

class Link final : public Endpoint, private session::ConnectionObserver {
 public:
  // Gives the stream to its holder and replaces `from` at its Id. The Id's ESTABLISHED event
  // carries `established`; at the active end there is no such event if the program moves its queue
  // pair. On error the stream stays the caller's and `from` keeps its Id. `from` must finish in
  // both cases. 0, EINVAL (no such queue pair, or not fit to be connected), ENOMEM. Thread: engine.
  static int establish(Endpoint& from, Manager& manager, engine::Engine& engine, StreamPtr&& stream,
                       const mpa::Agreement& agreement, core::Bytes leftover, Holder holder,
                       uint32_t qp_num, const ConnParam& established);

 private:
  Link(Manager& manager, engine::Engine& engine, bool initiator, uint32_t qp_num,
       const ConnParam& established);
  void carry_out(uint32_t orders) override;
  void drop() override;
  void on_first_fpdu() override;
  void on_connection_ended(int error) override;
  void announce();
  void receive();
  void disconnect();
  void first_fpdu_overdue();
  void ended_before_established(int error);
  void disconnect_for_program();
  void tell_end();
  void wait_out();
  void waited();

  enum class End {
    kNone,            // the connection is established
    kProgramWantsIt,  // it still is, and the program has called rdma_disconnect()
    kCame,            // it has ended, and the program has not called rdma_disconnect()
    kBoth,            // it has ended, and the program has called it: InfiniBand's TIMEWAIT runs
  };

  std::unique_ptr<StandIn> stand_in_;  // null: the queue pair has the stream
  const bool initiator_;
  const uint32_t qp_num_;
  uint8_t timeout_ = kUsualAckTimeout;
  bool announced_ = false;
  bool overdue_ = false;
  End end_ = End::kNone;
  bool receiving_ = false;
  ConnParam established_;
  engine::Deadline<Link, &Link::first_fpdu_overdue> deadline_{*this};
  engine::Deadline<Link, &Link::waited> time_wait_{*this};
};

}  // namespace uiw::cm
