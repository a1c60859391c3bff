// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// One open /dev/infiniband/rdma_cm: takes commands apart and waits for events.
#include "vkernel/ucma.h"

#include <fcntl.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "core/raw_sys.h"
#include "vkernel/ucma_file.h"

namespace uiw::vkernel {
namespace {

using Handler = int (*)(UcmaFile&, const UcmaRequest&);

// Indexed by command number. Null: the kernel has no such command either.
constexpr Handler kHandlers[] = {
    ucma_create_id,      // 0
    ucma_destroy_id,     // 1
    ucma_bind_ip,        // 2
    ucma_resolve_ip,     // 3
    ucma_resolve_route,  // 4
    ucma_query_route,    // 5
    ucma_connect,        // 6
    ucma_listen,         // 7
    ucma_accept,         // 8
    ucma_reject,         // 9
    ucma_disconnect,     // 10
    ucma_init_qp_attr,   // 11
    ucma_get_event,      // 12
    nullptr,             // 13 GET_OPTION
    ucma_set_option,     // 14
    ucma_notify,         // 15
    ucma_join_ip,        // 16
    ucma_leave,          // 17
    ucma_migrate_id,     // 18
    ucma_query,          // 19
    ucma_bind,           // 20
    ucma_resolve_addr,   // 21
    ucma_join,           // 22
    nullptr,             // 23 RESOLVE_IB_SERVICE
    ucma_write_event,    // 24
};

// Negative flags: another thread closed it since we looked it up.
bool is_blocking(int fd) {
  const int flags = core::sys::fcntl(fd, F_GETFL);
  return flags < 0 || (flags & O_NONBLOCK) == 0;
}

}  // namespace

DeviceFile* make_ucma_file(std::unique_ptr<EventPipe> events) {
  cm::Manager* manager = cm::process_manager();
  return manager == nullptr ? nullptr : make_ucma_file(std::move(events), *manager);
}

UcmaFile* make_ucma_file(std::unique_ptr<EventPipe> events, cm::Manager& manager,
                         core::Nanoseconds patience) {
  return new (std::nothrow) UcmaFile(std::move(events), manager, patience);
}

UcmaFile::UcmaFile(std::unique_ptr<EventPipe> events, cm::Manager& manager,
                   core::Nanoseconds patience)
    : events_(std::move(events)), manager_(manager), patience_(patience) {
  manager_.open_channel(channel_, *this);
}

UcmaFile::~UcmaFile() {
  close();
}

// Who does not wait in here comes back when poll() says so, which is not at the end of the channel.
void UcmaFile::closing() {
  if (is_blocking(last_fd_.load(std::memory_order_relaxed))) reader_.await(patience_);
}

void UcmaFile::closed() {
  close();
}

void UcmaFile::close() {
  if (std::exchange(open_, false)) manager_.close_channel(channel_);
}

ssize_t UcmaFile::write(int fd, const void* buffer, size_t size, int& error_number) {
  error_number = execute(fd, buffer, size);
  return error_number == 0 ? static_cast<ssize_t>(size) : -1;
}

int UcmaFile::execute(int fd, const void* buffer, size_t size) {
  rdma_ucm_cmd_hdr header;
  if (size < sizeof header) return EINVAL;
  if (int error = copy_in(&header, buffer, sizeof header)) return error;
  if (header.cmd >= std::size(kHandlers) || header.in > size - sizeof header) return EINVAL;
  const Handler handler = kHandlers[header.cmd];
  if (handler == nullptr) return ENOSYS;
  uint8_t body[kLongestBody];
  if (int error = copy_in(body, static_cast<const uint8_t*>(buffer) + sizeof header,
                          std::min<size_t>(header.in, sizeof body)))
    return error;
  return handler(*this, UcmaRequest{body, header.in, header.out, fd});
}

// As the kernel's: blocks on an empty queue unless the descriptor says otherwise at this moment,
// and goes on blocking when another thread closes the channel, because programs let a thread sit
// here until the process ends and take any return for a failure.
int UcmaFile::wait_for_event(int fd, cm::Event& event) {
  if (manager_.next_event(channel_, event) != 0) {
    if (!is_blocking(fd)) return EAGAIN;
    reader_.comes();
    do {
      if (int error = wait()) return error;
    } while (manager_.next_event(channel_, event) != 0);
  }
  last_fd_.store(fd, std::memory_order_relaxed);
  reader_.goes();
  return 0;
}

// write() is a cancellation point, and a thread that waits for events is a likely one to be
// cancelled. Our frames have no clean-up for that (-fno-exceptions), so the reference that
// write()'s caller holds is given back here.
int UcmaFile::wait() {
  int error, type;
  pthread_cleanup_push([](void* file) { static_cast<UcmaFile*>(file)->drop_reference(); }, this);
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
  error = events_->wait();
  pthread_setcanceltype(type, nullptr);
  pthread_cleanup_pop(0);
  return error;
}

}  // namespace uiw::vkernel
