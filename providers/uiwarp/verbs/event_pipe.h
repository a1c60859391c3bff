// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How events reach ibv_get_async_event and ibv_get_cq_event of the stock libibverbs: as records in
// a pipe that it read()s. One kind of record per pipe. An event is never lost and never waits:
// what a full pipe does not take is kept here and follows when the application has read some.
//
// The pipe is open twice. Through the application's descriptor a full pipe would block who sends,
// and an empty one who purges, unless it has set O_NONBLOCK, which is its own affair.
//
// A pipe is small, because what is in it can be taken back only by reading all of it; of what is
// kept each source knows its own. So it takes the same time to destroy each of many objects,
// however many events of others are unread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/list.h"

namespace uiw::verbs {

// Laid out as the kernel's struct ib_uverbs_async_event_desc; the struct ib_uverbs_comp_event_desc
// is its first member.
struct EventRecord {
  uint64_t element;
  uint32_t type;
  uint32_t reserved;
};
inline constexpr uint32_t kAsyncRecord = 16, kCompletionRecord = 8;  // bytes of one record

// Whose events they are: an object of the application. In one pipe only, which it may not outlive
// while it has events there.
class EventSource {
 public:
  explicit EventSource(uint64_t element = 0) : element_(element) {}
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;
  // What the application calls it. Before the first event.
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
  // `backlog` counts the pipes that keep something, over all that share it.
  EventPipe(uint32_t record_size, std::atomic<uint32_t>& backlog)
      : record_size_(record_size), backlog_(backlog) {}
  ~EventPipe();
  EventPipe(const EventPipe&) = delete;
  EventPipe& operator=(const EventPipe&) = delete;

  // Makes a pipe: *reader (close-on-exec, blocking) goes to the caller. 0 or errno.
  int create(int* reader);
  // Joins the pipe behind descriptor `fd` of another owner, whose O_NONBLOCK flag is not changed.
  // 0 or errno; EINVAL when it is no pipe.
  int join(int fd);

  // Thread: any.
  void send(EventSource& source, uint32_t type);
  // Takes back every event of `source` that was not read yet; returns how many. No new one of it
  // may be sent meanwhile. Thread: any.
  uint32_t purge(EventSource& source);
  // The application has read something: writes what was kept. Thread: any.
  void flush();

 private:
  using Kept = EventSource::Kept;
  // Under mutex_, from here on.
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
