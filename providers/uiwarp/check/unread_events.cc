// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/unread_events.h"

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "check/text.h"
#include "check/wraps.h"
#include "core/raw_sys.h"

namespace uiw::check {
namespace {

// Laid out as the kernel's struct ib_uverbs_async_event_desc.
struct Record {
  uint64_t element;
  uint32_t type;
  uint32_t reserved;
};

struct Event {
  ibv_event_type type;
  const char* name;
  bool is_of_device;
};

// Those after which something is to be done. Others tell that a connection has come or a queue is
// drained.
#define UIW_EVENT(name, is_of_device) \
  { IBV_EVENT_##name, "IBV_EVENT_" #name, is_of_device }
constexpr Event kEvents[] = {
    UIW_EVENT(CQ_ERR, false),      UIW_EVENT(QP_FATAL, false),
    UIW_EVENT(QP_REQ_ERR, false),  UIW_EVENT(QP_ACCESS_ERR, false),
    UIW_EVENT(SRQ_ERR, false),     UIW_EVENT(SRQ_LIMIT_REACHED, false),
    UIW_EVENT(DEVICE_FATAL, true), UIW_EVENT(PORT_ERR, true),
    UIW_EVENT(GID_CHANGE, true),
};
#undef UIW_EVENT

// What is in the pipe, or its first 64 KiB. It stays there.
std::vector<Record> records_of(int pipe) {
  constexpr size_t kMost = 4096;  // records
  int ends[2];
  if (core::sys::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return {};
  std::vector<Record> records(kMost);
  long size = syscall(SYS_tee, pipe, ends[1], kMost * sizeof(Record), SPLICE_F_NONBLOCK);
  if (size > 0) size = core::sys::read(ends[0], records.data(), kMost * sizeof(Record));
  core::sys::close(ends[0]);
  core::sys::close(ends[1]);
  records.resize(size > 0 ? static_cast<size_t>(size) / sizeof(Record) : 0);
  return records;
}

// `user`: of the object that it names; null: it is the device's.
std::string names_of(const std::vector<Record>& records, const void* user) {
  std::string names;
  for (const Event& event : kEvents) {
    const bool is_there = std::ranges::any_of(records, [&](const Record& record) {
      return record.type == event.type && event.is_of_device == !user &&
             (!user || record.element == reinterpret_cast<uintptr_t>(user));
    });
    if (is_there) names += (names.empty() ? "" : ", ") + std::string(event.name);
  }
  return names;
}

}  // namespace

void hint_at_unread(const Context& context, const void* object, const void* user,
                    const char* call) {
  if (!wants.hints || context.async_fd < 0 || context.foreign()) return;
  const std::string names = names_of(records_of(context.async_fd), user);
  if (names.empty()) return;
  const Objects::Entry entry = Objects::instance().find(object);
  Finding finding{Kind::kEventUnread, entry.name, {}, {}, {{"called", {}}}, true};
  finding.what =
      text("%s is called, and nobody has read what ibv_get_async_event() tells of it: %s", call,
           names.c_str());
  capture(finding.places[0].stack);
  finding.places.push_back({"created", entry.created});
  Report::instance().add(finding);
}

}  // namespace uiw::check
