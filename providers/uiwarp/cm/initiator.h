// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The active end of a connection from the SYN to the Reply: RFC 5044 section 7.1.2, RFC 6581. By
// InfiniBand's rules also from the Reply until the program's queue pair is ready. It also runs
// service id resolutions (resolution.h), which end with the answer.
#pragma once

#include <memory>
#include <vector>

#include "cm/connect_attempt.h"
#include "cm/endpoint.h"
#include "cm/link.h"
#include "transport/listener.h"

namespace uiw::cm {

class Initiator final : public Endpoint,
                        private transport::ConnectHandler,
                        private transport::StreamHandler {
 public:
  // Takes over the attempt, the `turn`-th of the manager. `source` is the local address; further
  // attempts keep its port only if `explicit_port`. The manager's lock must be held.
  Initiator(Manager& manager, engine::Engine& engine, ConnectAttempt attempt, uint64_t turn,
            const sockaddr_storage& source, const sockaddr_storage& destination, bool explicit_port,
            int tos, Service service, const ConnParam& param);

  // For RefusedAttempts. Constant.
  const sockaddr_storage& destination() const { return destination_; }
  uint64_t turn() const { return turn_; }
  core::ListLink<Initiator> among_refused;
  bool is_refused = false;  // is in that list; manager's lock

 private:
  ~Initiator() override;

  void carry_out(uint32_t orders) override;
  void on_connected(int fd) override;
  void on_connect_failed(int error) override;
  void on_octets(core::Bytes octets) override;
  void on_end_of_stream() override;
  void on_error(int error) override;
  void on_writable() override;

  void await_connection();
  void meet(uiwarp_connect_fate fate);
  void send_request();
  void judge_resolution(const mpa::StartupFrame& reply);
  void judge(const mpa::StartupFrame& reply, core::Bytes leftover);
  void accepted(const mpa::Agreement& agreement, core::Bytes leftover, ConnParam& answer);
  void tell_answer(const mpa::Agreement& agreement, core::Bytes leftover, ConnParam& answer);
  void keep(core::Bytes octets);
  void establish(bool disconnect);
  void peer_left();
  void send_local_error(const mpa::Agreement& agreement);
  bool await_listener();
  bool must_follow();
  void leave_refused();
  void have_others_follow();
  void connect_again();
  bool begin_anew(uint8_t revision);
  bool fall_back();
  void closed_without_reply();
  void fail(int error);
  // For UIWARP_LOG=debug.
  void log_stage(const char* what, const char* why = "") const;
  // Logs why an attempt ends because of the peer's answer. Takes the manager's lock.
  void warn(const char* why, const char* hint = "") const;
  void reply_overdue();

  const uint64_t turn_;
  ConnectAttempt attempt_;  // owns its descriptor until connector_ or stream_ does
  const sockaddr_storage source_;
  const sockaddr_storage destination_;
  const bool explicit_port_;
  const int tos_;
  const Service service_;
  const ConnParam param_;
  const Holder holder_;
  bool fell_back_ = false;
  bool disconnecting_ = false;  // disconnect as soon as there is a connection
  std::unique_ptr<transport::Connector> connector_;
  StreamPtr stream_;
  FrameCollector collector_;
  // From CONNECT_RESPONSE on.
  bool answered_ = false;
  mpa::Agreement agreement_;
  std::vector<uint8_t> leftover_;
  core::Nanoseconds give_up_at_ = 0;  // when waiting for a listener ends; 0: not refused yet
  engine::Deadline<Initiator, &Initiator::connect_again> again_{*this};
  engine::Deadline<Initiator, &Initiator::reply_overdue> deadline_{*this};
};

}  // namespace uiw::cm
