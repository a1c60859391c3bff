// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How events reach ibv_get_async_event and ibv_get_cq_event of the stock libibverbs: as records in
// a pipe that it read()s. One kind of record per pipe. An event is never lost and never waits:
// what a full pipe does not take is kept here and follows when the application has read some.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace uiw::verbs {

// Laid out as the kernel's struct ib_uverbs_async_event_desc; the struct ib_uverbs_comp_event_desc
// is its first member.
struct EventRecord {
  uint64_t element;
  uint32_t type;
  uint32_t reserved;
};
inline constexpr uint32_t kAsyncRecord = 16, kCompletionRecord = 8;  // octets of one record

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
  // Joins the pipe behind descriptor `fd` of somebody else, whose O_NONBLOCK flag stays his own.
  // 0 or errno; EINVAL when it is no pipe.
  int join(int fd);

  // Thread: any.
  void send(uint64_t element, uint32_t type);
  // Takes back every event of `element` that was not read yet; returns how many. No new one of it
  // may be sent meanwhile. Thread: any.
  uint32_t purge(uint64_t element);
  // The application has read something: writes what was kept. Thread: any.
  void flush();

 private:
  struct Kept {
    EventRecord record;
    Kept* next;
  };
  bool write(const EventRecord& record);
  void keep(const EventRecord& record);  // these two under mutex_
  void write_kept();

  const uint32_t record_size_;
  std::atomic<uint32_t>& backlog_;
  int fd_ = -1;  // reads and writes, non-blocking; also keeps writers safe from SIGPIPE
  std::mutex mutex_;
  std::atomic<bool> keeping_{false};  // written under mutex_
  Kept* first_ = nullptr;             // under mutex_
  Kept* last_ = nullptr;
};

}  // namespace uiw::verbs
