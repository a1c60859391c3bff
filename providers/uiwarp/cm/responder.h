// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The passive end of a connection from the accepted socket to the Reply: RFC 5044 section 7.1.2. It
// also answers service id resolutions (resolution.h).
#pragma once

#include "cm/endpoint.h"
#include "cm/link.h"
#include "cm/resolution.h"
#include "cm/startup_io.h"
#include "device/device.h"

namespace uiw::cm {

class Acceptor;

class Responder final : public Endpoint, private transport::StreamHandler {
 public:
  // Takes over an accepted socket and waits for its Request. `device`: the listener's, or null to
  // look it up by the socket's own address; if there is none, the connection is closed. Thread:
  // engine.
  static void start(Acceptor& acceptor, Manager& manager, engine::Engine& engine, int fd,
                    const device::Device* device);

  // The application accepts; call it once. Claims the queue pair for a connection; the engine does
  // the rest. Errors as Manager::accept(); on error no answer was given. Thread: any, with the
  // manager's lock held.
  int accept(const ConnParam& param);
  // Room for the application's private data in the answer. Thread: as accept().
  size_t private_data_room() const;
  // Rejects; also for an application that has gone without an answer. May free this object. Thread:
  // engine.
  void reject(core::Bytes private_data);

  // Ends it. Only while no application knows of it.
  void close();

  // Whether its Request has arrived and no application knows of it.
  bool complete() const { return phase_ == Phase::kComplete; }
  bool has_unread() const { return stream_->has_unread(); }
  core::Nanoseconds came_at() const { return came_at_; }
  // Tells the application of the Request. May free this object.
  void offer();

  core::ListLink<Responder> half_open;  // of the acceptor
  core::ListLink<Responder> in_admission;

 private:
  enum class Phase {
    kReading,   // no whole Request yet; in the acceptor's list
    kComplete,  // still in the list
    kOffered,   // the application has it
    kReplying,  // accepted; the Reply is not yet completely in the socket
    kGone,      // the peer has gone or broken the rules; only the Id is left
    kIgnored,   // an instrument wants no answer; kept until the peer gives up
  };

  Responder(Acceptor& acceptor, Manager& manager, engine::Engine& engine, StreamPtr stream);
  ~Responder() override;

  void carry_out(uint32_t orders) override;
  void drop() override;
  void on_octets(core::Bytes octets) override;
  void on_end_of_stream() override;
  void on_error(int error) override;
  void on_writable() override;
  void overdue() { lose_peer(); }

  bool meets(const sockaddr_storage& local, const sockaddr_storage& peer);
  void lose_peer();
  void log_stage(const char* what) const;  // for UIWARP_LOG=debug
  void answer();
  void resolve();
  void refuse_service();
  void send_and_finish(const mpa::StartupFrame& reply);
  ConnParam offered_connection() const;
  void go_on_replying();
  void enter_rdma_mode();
  void end_accepted(int status);
  void let_go_of_queue_pair();
  void leave_acceptor();

  Acceptor* acceptor_;  // null once the Request was offered
  const core::Nanoseconds came_at_;
  const device::Device* device_ = nullptr;
  Phase phase_ = Phase::kReading;
  StreamPtr stream_;
  FrameCollector collector_;
  mpa::StartupFrame request_;
  Outbox outbox_;
  mpa::Agreement agreement_;
  bool peer_gone_ = false;                  // under the manager's lock: accept() must fail
  bool disconnecting_ = false;              // disconnect as soon as there is a connection
  Service service_ = Service::kConnection;  // of the Request
  // Written by accept() before it orders kAccept; then used by the engine.
  bool accepted_ = false;  // and not answered yet; the queue pair, if any, is claimed
  Holder holder_ = Holder::kStandIn;
  ConnParam param_;
  engine::Deadline<Responder, &Responder::overdue> deadline_{*this};
};

}  // namespace uiw::cm
