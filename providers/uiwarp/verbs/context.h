// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// An opened device: what ibv_open_device stands on.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/explain.h"
#include "device/device.h"
#include "device/face.h"
#include "engine/engine.h"
#include "progress/busy_poller.h"
#include "uiwarp/uiwarp-abi.h"
#include "verbs/command_space.h"
#include "verbs/completion_channel.h"
#include "verbs/event_pipe.h"

namespace uiw::verbs {

// How many objects of a kind there are: taken up to a limit, or counted. Thread: any.
class Quota {
 public:
  bool take(uint32_t limit) {
    if (used_.fetch_add(1, std::memory_order_relaxed) < limit) return true;
    give();
    return false;
  }
  void count() { used_.fetch_add(1, std::memory_order_relaxed); }
  void give() { used_.fetch_sub(1, std::memory_order_relaxed); }
  uint32_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint32_t> used_{0};
};

inline const uiwarp_device* to_c(const device::Device* device) {
  return reinterpret_cast<const uiwarp_device*>(device);
}
inline const device::Device* from_c(const uiwarp_device* device) {
  return reinterpret_cast<const device::Device*>(device);
}

}  // namespace uiw::verbs

struct uiwarp_context final : uiw::device::Observer {
  uiwarp_context(const uiw::device::Device* opened,
                 std::shared_ptr<uiw::verbs::CommandSpace> shared)
      : device(opened), space(std::move(shared)) {}
  // What happens to the network interface becomes asynchronous events.
  void device_changed(const uiw::device::Device& changed, uiw::device::Change change) override;

  // This process is a fork of the one that opened it: its engines do not run here, and locks may be
  // held for good. What is asked then fails with ENODEV, touching neither; what is destroyed is
  // forgotten, with whatever memory it has. Thread: any.
  bool in_child() const { return engine->in_child(); }

  const uiw::device::Device* const device;
  const uiw::device::Face* face = &uiw::device::face();
  uiw::engine::EngineRef engine;
  // Shared with the contexts that were imported by this one's command descriptor.
  const std::shared_ptr<uiw::verbs::CommandSpace> space;
  uiw::mem::Table& memory = space->memory;
  uiw::progress::BusyPoller busy_poller;
  std::atomic<uint32_t> backlog{0};  // pipes below that keep events
  uiw::verbs::EventSource device_events{0}, port_events{1};
  uiw::verbs::EventPipe async{uiw::verbs::kAsyncRecord, backlog};
  uiw::verbs::ChannelTable channels{backlog};
  uiw::verbs::Quota pds, tds, mrs, mws, ahs, cqs, srqs, qps;
  // Why objects could not be made, by which call: said of the context, since there is no object.
  struct {
    uiw::core::Told port, pd, qp, cq, srq, mr, mw, advice, ah;
  } told;
  std::atomic<uint32_t> most_inline{0};  // bytes of inline data that a queue pair was given so far
};
