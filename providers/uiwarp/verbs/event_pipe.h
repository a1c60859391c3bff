// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Delivers events to ibv_get_async_event and ibv_get_cq_event of the stock libibverbs, which read()
// them as records from a pipe. There is one kind of record per pipe. Sending never loses an event
// and never blocks: what does not fit into the pipe is kept here and follows when the application
// has read some.
//
// We open the pipe a second time. Through the application's descriptor a full pipe would block the
// sender, and an empty one the purger, unless O_NONBLOCK is set, which is up to the application.
//
// The pipe is small, because events in it can be taken back only by reading all of it. Events kept
// here are listed by source. So destroying an object takes the same time however many events of
// others are unread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/list.h"

namespace uiw::verbs {

// The layout of the kernel's struct ib_uverbs_async_event_desc; `element` alone is that of struct
// ib_uverbs_comp_event_desc.
struct EventRecord {
  uint64_t element;
  uint32_t type;
  uint32_t reserved;
};
inline constexpr uint32_t kAsyncRecord = 16, kCompletionRecord = 8;  // bytes of one record

// The source of events: an object of the application. It uses one pipe only, and must not outlive
// the pipe while it has events there.
class EventSource {
 public:
  explicit EventSource(uint64_t element = 0) : element_(element) {}
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;
  // Sets the application's name for the object. Call it before the first event.
  void set_element(uint64_t element) { element_ = element; }

 private:
  friend class EventPipe;
  struct Kept {
    EventRecord record;
    EventSource* source;
    core::ListLink<Kept> in_order, of_source;
  };
  uint64_t element_;
  core::List<Kept, &Kept::of_source> kept_;  // under the pipe's mutex
};

class EventPipe {
 public:
  // `backlog` counts the pipes that keep events, among all that share it.
  EventPipe(uint32_t record_size, std::atomic<uint32_t>& backlog)
      : record_size_(record_size), backlog_(backlog) {}
  ~EventPipe();
  EventPipe(const EventPipe&) = delete;
  EventPipe& operator=(const EventPipe&) = delete;

  // Makes a pipe; *reader (close-on-exec, blocking) belongs to the caller. 0 or errno.
  int create(int* reader);
  // Opens the pipe behind descriptor `fd`, which belongs to another owner; its O_NONBLOCK flag is
  // not changed. 0 or errno; EINVAL when it is no pipe.
  int join(int fd);

  // Thread: any.
  void send(EventSource& source, uint32_t type);
  // Takes back every unread event of `source`; returns how many. No new one of it may be sent
  // meanwhile. Thread: any.
  uint32_t purge(EventSource& source);
  // The application has read events: writes those that were kept. Thread: any.
  void flush();

 private:
  using Kept = EventSource::Kept;
  // These are called under mutex_.
  bool write(const void* records, size_t size);
  void keep(EventSource& source, const EventRecord& record);
  void drop(Kept& kept);
  void write_kept();
  uint32_t purge_pipe(uint64_t element);

  const uint32_t record_size_;
  std::atomic<uint32_t>& backlog_;
  int fd_ = -1;  // reads and writes, non-blocking; also keeps writers safe from SIGPIPE
  std::mutex mutex_;
  std::atomic<bool> keeping_{false};        // written under mutex_
  core::List<Kept, &Kept::in_order> kept_;  // under mutex_
};

}  // namespace uiw::verbs
