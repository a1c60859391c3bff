// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The file behind an rdma_cm descriptor and its commands, one function each. Command structures
// are the kernel's own (<rdma/rdma_user_cm.h>); they only ever grow, so a command may be longer
// than what is known here, and shorter by members that came later.
#pragma once

#include <rdma/rdma_user_cm.h>
#include <sys/sysmacros.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "cm/manager.h"
#include "vkernel/device_file.h"
#include "vkernel/event_pipe.h"
#include "vkernel/identity.h"
#include "vkernel/last_reader.h"
#include "vkernel/user_memory.h"

namespace uiw::vkernel {

class UcmaFile final : public DeviceFile, private cm::EventSink {
 public:
  // `patience`: of closing() with a thread that may be about to wait for the next event.
  UcmaFile(std::unique_ptr<EventPipe> events, cm::Manager& manager, core::Nanoseconds patience);
  ~UcmaFile() override;

  Kind kind() const override { return Kind::kUcma; }
  dev_t device_number() const override { return makedev(kRdmaCmDevice.major, kRdmaCmDevice.minor); }
  ssize_t write(int fd, const void* buffer, size_t size, int& error_number) override;
  void closing() override;
  void closed() override;

  cm::Manager& manager() { return manager_; }
  cm::Channel& channel() { return channel_; }

  // Takes the oldest event. EAGAIN: none, and `fd` is non-blocking; EINTR: a signal handler ran.
  int wait_for_event(int fd, cm::Event& event);

 private:
  void notify() override { events_->tell(); }
  bool clear() override { return events_->take_back(); }
  int execute(int fd, const void* buffer, size_t size);
  int wait();
  void close();

  const std::unique_ptr<EventPipe> events_;
  cm::Manager& manager_;
  cm::Channel channel_;
  LastReader reader_;
  std::atomic<int> last_fd_{-1};  // by which an event was taken last
  const core::Nanoseconds patience_;
  bool open_ = true;
};

// What scheduling can put between two calls of one thread on a busy machine.
inline constexpr core::Nanoseconds kReaderPatience = 10 * core::kMillisecond;

// As make_ucma_file() of ucma.h, with a connection manager other than the process's.
UcmaFile* make_ucma_file(std::unique_ptr<EventPipe> events, cm::Manager& manager,
                         core::Nanoseconds patience = kReaderPatience);

// Bytes behind the header of a command, of those that are known.
inline constexpr size_t kLongestBody = 512;

// One command: what the program has written behind its header, or the beginning of it.
struct UcmaRequest {
  const uint8_t* body;
  uint16_t in;   // octets of the body
  uint16_t out;  // octets that the caller's response buffer has room for
  int fd;

  // Copies the command, what the caller left out as zeros. False when it has less than `least`.
  template <class Command>
  bool read(Command& command, size_t least = sizeof(Command)) const {
    static_assert(sizeof command <= kLongestBody);
    if (in < least) return false;
    std::memset(&command, 0, sizeof command);
    std::memcpy(&command, body, in < sizeof command ? in : sizeof command);
    return true;
  }

  // Whether a response of at least that size can be given: 0, ENOSPC, EFAULT. To be asked before
  // the command is carried out, with a response that says nothing yet.
  template <class Response>
  int room_for(uint64_t address, const Response& empty, size_t least = sizeof(Response)) const {
    return out < least ? ENOSPC : give(address, empty);
  }
  template <class Response>
  void respond(uint64_t address, const Response& response) const {
    give(address, response);  // there was room a moment ago
  }

 private:
  template <class Response>
  int give(uint64_t address, const Response& response) const {
    return copy_out(user_pointer(address), &response,
                    out < sizeof response ? out : sizeof response);
  }
};

// An address whose size the caller gave. 0, EINVAL, or EADDRNOTAVAIL for InfiniBand addresses.
int from_storage(const __kernel_sockaddr_storage& in, uint16_t size, sockaddr_storage& out);

// Each returns 0 or a positive errno. Common: EINVAL the command is too short; ENOSPC, EFAULT no
// room for the response; and what cm::Manager says.
int ucma_create_id(UcmaFile& file, const UcmaRequest& request);
int ucma_destroy_id(UcmaFile& file, const UcmaRequest& request);
int ucma_migrate_id(UcmaFile& file, const UcmaRequest& request);
int ucma_get_event(UcmaFile& file, const UcmaRequest& request);
int ucma_write_event(UcmaFile& file, const UcmaRequest& request);

int ucma_bind_ip(UcmaFile& file, const UcmaRequest& request);
int ucma_bind(UcmaFile& file, const UcmaRequest& request);
int ucma_resolve_ip(UcmaFile& file, const UcmaRequest& request);
int ucma_resolve_addr(UcmaFile& file, const UcmaRequest& request);
int ucma_resolve_route(UcmaFile& file, const UcmaRequest& request);
int ucma_query_route(UcmaFile& file, const UcmaRequest& request);
int ucma_query(UcmaFile& file, const UcmaRequest& request);
int ucma_set_option(UcmaFile& file, const UcmaRequest& request);

int ucma_connect(UcmaFile& file, const UcmaRequest& request);
int ucma_listen(UcmaFile& file, const UcmaRequest& request);
int ucma_accept(UcmaFile& file, const UcmaRequest& request);
int ucma_reject(UcmaFile& file, const UcmaRequest& request);
int ucma_disconnect(UcmaFile& file, const UcmaRequest& request);
int ucma_init_qp_attr(UcmaFile& file, const UcmaRequest& request);
int ucma_notify(UcmaFile& file, const UcmaRequest& request);
int ucma_join_ip(UcmaFile& file, const UcmaRequest& request);
int ucma_join(UcmaFile& file, const UcmaRequest& request);
int ucma_leave(UcmaFile& file, const UcmaRequest& request);

}  // namespace uiw::vkernel
