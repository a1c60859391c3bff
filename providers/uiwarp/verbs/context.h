// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// An opened device, the base of an ibv_context.
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

// Counts the objects of a kind, with a limit or without. Thread: any.
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
  // Turns changes of the network interface into asynchronous events.
  void device_changed(const uiw::device::Device& changed, uiw::device::Change change) override;

  // This process is a fork of the one that opened the device: the engines do not run here, and
  // locks may be held forever. So calls fail with ENODEV without touching either. Destroying an
  // object only drops it, together with its memory. Thread: any.
  bool in_child() const { return engine->in_child(); }

  const uiw::device::Device* const device;
  const uiw::device::Face* face = &uiw::device::face();
  uiw::engine::EngineRef engine;
  // Shared with the contexts imported from this one's command descriptor.
  const std::shared_ptr<uiw::verbs::CommandSpace> space;
  uiw::mem::Table& memory = space->memory;
  uiw::progress::BusyPoller busy_poller;
  std::atomic<uint32_t> backlog{0};  // how many of the pipes below keep events
  uiw::verbs::EventSource device_events{0}, port_events{1};
  uiw::verbs::EventPipe async{uiw::verbs::kAsyncRecord, backlog};
  uiw::verbs::ChannelTable channels{backlog};
  uiw::verbs::Quota pds, tds, mrs, mws, ahs, cqs, srqs, qps;
  // Which messages about objects that could not be created were logged, by call. They are kept per
  // context, since there is no object.
  struct {
    uiw::core::Told port, pd, qp, cq, srq, mr, mw, advice, ah;
  } told;
  std::atomic<uint32_t> most_inline{0};  // largest max_inline_data of a queue pair so far
};
