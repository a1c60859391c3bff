// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Two hosts, connections between them, and somebody who carries the octets: a simulated pipe with
// virtual time and a seed, or real TCP with the real engine. The behaviour suite knows only this.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/settings.h"
#include "support/machine.h"

namespace uiw::test {

struct EndOptions {
  bool crc = true;
  bool tx_markers = false, rx_markers = false;  // crc and these: as the medium says
  mpa::Rtr rtr = mpa::Rtr::kWrite;              // the initiator's
  uint16_t ird = 16, ord = 16;
  uint32_t depth = 128, receives = 128;
  queue::ReceiveQueue* srq = nullptr;
  bool acknowledged = false;  // its Sends and Writes complete when the peer has them
  bool immediates = false;    // it has Sends with immediate
  core::Service service = core::Service::kReliable;  // of both ends
  uint32_t first_msn = 1;  // simulator only: where RFC 5041 4.3 counts from
  // Simulator only: what the program does before each time that TCP takes something built earlier.
  std::function<void()> meanwhile = {};
};

// What an application is told besides completions.
struct Notice {
  enum Kind { kFirstFpdu, kAsync, kSrqLimit, kEnded } kind;
  ibv_event_type event = IBV_EVENT_DEVICE_FATAL;  // kAsync
  int error = 0;                                  // kEnded
  size_t completions = 0;                         // how many of this end there were before
};

// One end of one connection. Thread: the test's, but for what takes the mutex.
class End {
 public:
  End(mem::Table& memory, uint32_t qp_num, const EndOptions& options);
  virtual ~End() = default;

  virtual int post_send(ibv_send_wr* wr, ibv_send_wr** bad) = 0;
  virtual int post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad) = 0;
  virtual void disconnect() = 0;
  virtual void to_error() = 0;          // ibv_modify_qp(ERR)
  virtual void destroy() = 0;           // ibv_destroy_qp
  virtual void reset_connection() = 0;  // the TCP connection breaks: RST
  virtual void half_close() = 0;        // FIN now, wherever the stream is
  virtual void return_lease() = 0;      // the engine takes over from pollers, should they receive
  virtual uint64_t lost(qp::Loss why) = 0;

  int post(SendWr wr) {
    ibv_send_wr* bad = nullptr;
    return post_send(&wr.get(), &bad);
  }
  // As one list: all of them are queued before any is sent.
  int post_all(std::vector<SendWr> list) {
    for (size_t i = 0; i < list.size(); ++i)
      list[i].get().next = i + 1 < list.size() ? &list[i + 1].get() : nullptr;
    ibv_send_wr* bad = nullptr;
    return list.empty() ? 0 : post_send(&list[0].wr, &bad);
  }
  int receive(RecvWr wr) {
    ibv_recv_wr* bad = nullptr;
    return post_recv(&wr.get(), &bad);
  }

  // Takes what completed out of the queues.
  void collect();
  std::vector<ibv_wc> sent();
  std::vector<ibv_wc> received();
  std::vector<Notice> notices();
  size_t sent_count();
  size_t received_count();
  bool ended();
  std::optional<int> end_error();
  std::vector<ibv_event_type> async_events();

  mpa::Agreement agreement;  // what full operation runs with
  mem::Table& memory;
  const uint32_t qp_num;
  const EndOptions options;
  std::shared_ptr<queue::CompletionQueue> send_cq, recv_cq;
  // What the program does as soon as it finds a receive complete; how many were before.
  std::function<void(size_t number)> on_received;

 protected:
  void notice(Notice notice);

 private:
  void collect_locked();
  // In the simulator a poll may run others, which call here, before it takes what is there.
  std::recursive_mutex mutex_;
  std::vector<ibv_wc> sent_, received_;
  std::vector<Notice> notices_;
};

struct Medium {
  bool tcp = false;
  bool crc = true;
  bool markers_to_first = false, markers_to_second = false;
  uint32_t seed = 0;       // simulator
  int socket_buffer = 0;   // TCP: octets, with an Ethernet's MSS; 0 = as the product sets it
  bool elsewhere = false;  // TCP: connections are made on another engine
  std::string name;
};
// Puts into the two ends' options what the medium says.
void apply(const Medium& medium, EndOptions& first, EndOptions& second);
mpa::Agreement agreement_of(const EndOptions& options, bool initiator);
void PrintTo(const Medium& medium, std::ostream* out);

class World {
 public:
  virtual ~World() = default;
  static std::unique_ptr<World> create(const Medium& medium);

  // A new connection between the hosts; `first` is the initiator.
  virtual std::pair<End*, End*> connect(EndOptions first = {}, EndOptions second = {}) = 0;
  // The same after MPA start-up with these settings, by frames; the simulator has only the
  // decisions. Both ends were told that they are established.
  virtual std::pair<End*, End*> start_up(const core::Settings& first,
                                         const core::Settings& second) = 0;
  // Lets things happen until `done`; false when nothing more can happen, or after a long time.
  virtual bool run_until(const std::function<bool()>& done) = 0;
  // Lets everything happen that can without timers (simulator), or a little time pass (TCP).
  virtual void settle() = 0;
  // The octets that reach the second end from now on have one bit flipped somewhere.
  virtual bool can_corrupt() const { return false; }
  virtual void corrupt_once() {}

  mem::Table first_memory, second_memory;
};

}  // namespace uiw::test
