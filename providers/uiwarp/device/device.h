// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The RDMA devices of this host: one per network interface that is, or once was, up with an
// address, loopback included. They follow the interfaces while the program runs
// (doc/decisions/007): what identifies a device never changes, the state of its port does.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace uiw::device {

// RDMA limits; each is true: reached in a test, and one more gets the manual's errno.
struct Limits {
  static constexpr uint32_t kMaxQp = 16384;
  static constexpr uint32_t kMaxQpWr = 16384;
  static constexpr uint32_t kMaxSge = 16;  // send and receive, and RDMA Read sinks
  static constexpr uint32_t kMaxCq = 65536;
  static constexpr uint32_t kMaxCqe = 1u << 22;
  static constexpr uint32_t kMaxMr = 1u << 20;
  static constexpr uint32_t kMaxMw = 1u << 18;
  static constexpr uint32_t kMaxPd = 65536;
  static constexpr uint32_t kMaxAh = 65536;
  static constexpr uint32_t kMaxSrq = 16384;
  static constexpr uint32_t kMaxSrqWr = 65536;
  static constexpr uint32_t kMaxReads = 128;  // IRD and ORD of one QP
  static constexpr uint32_t kMaxInline = 1024;
  static constexpr uint32_t kLeastInline =
      512;  // granted to who asks for less; rsockets ask for none and use it
  static constexpr uint32_t kMaxMessage = 1u << 31;
};

// What identifies a device. Constant, and valid for the life of the process: a device whose
// interface has gone stays known to those who opened it.
struct Device {
  std::string name;  // "uiw_lo", "uiw_eth0"; at most 63 octets. Not changed by renaming "eth0"
  unsigned ifindex = 0;
  uint64_t node_guid = 0;     // host order; never 0, and no other device of the process had it
  uint32_t uverbs_minor = 0;  // the N of /dev/infiniband/uverbsN that we show; as unique
  // But this follows the interface, for whoever cannot ask for State at each datagram: active_mtu
  // of the port in bytes.
  std::atomic<uint32_t> path_mtu{0};
};

// What may change while the program runs.
struct State {
  std::string interface;  // its name now
  uint32_t mtu = 0;       // of the interface
  bool active = false;    // up, with a carrier
  bool gone = false;      // there is no such interface any more, and never will be again
  // A slot whose address was removed is all zero until a new address takes it, so that no other one
  // ever changes its place: GIDs are known by index (device/gid_table.h).
  std::vector<in6_addr> addresses;
  bool is_bridge = false;
};

struct Listed {
  const Device* device;
  State state;
};

// All below: thread any.

// The devices that there are, as programs are to see them (device/listing_order.h). Empty when
// none.
std::vector<Listed> devices();
State state_of(const Device& device);
// Grows with every change of what devices() says.
uint64_t version();

// Also when it has gone: minors are not used again.
const Device* find_by_minor(uint32_t uverbs_minor);
// These find none that has gone.
const Device* find_by_name(const char* name);
// The device an address of this host belongs to; null when it is not ours.
// All of 127.0.0.0/8 belongs to the loopback device. Where programs do not see that one, the first
// that they see has its addresses.
const Device* find_by_address(const sockaddr_storage& address);

// Looks at the interfaces now. Where the kernel does not answer (any more) all stays as it was.
// Calls observers.
void refresh();

enum class Change {
  kPortActive,
  kPortDown,
  kGids,  // addresses came, went or moved
  kGone,
  // What no interface tells; only pretend() does.
  kFatal,
  kLids,
  kPkeys,
  kSubnetManager,
  kReregister,
};

class Observer {
 public:
  // On the thread that noticed, with a lock held that refresh() and all of the following take.
  virtual void device_changed(const Device& device, Change change) = 0;

 protected:
  ~Observer() = default;
};

// No call comes after unsubscribe(), which may be called twice. A fork starts without observers.
void subscribe(Observer& observer);
void unsubscribe(Observer& observer);

// By what a port is held down. Each lets go what it holds itself.
enum class Holder : uint8_t {
  kByName,   // this device's was asked for
  kWithAll,  // those of all devices were
};

// For instruments. What did not happen is told as if it had, or happens to what is known of a
// device only: its port is down until it is let go again, its GIDs move one index up. Calls
// observers.
void pretend(const Device& device, Change change);
void hold_down(const Device& device, Holder by, bool down);
void shift_gids(const Device& device);

// From here on a descriptor becomes readable when there may be something to refresh(), which then
// reads what the kernel has sent instead of asking for everything. Once at a time. 0 or errno; the
// descriptor stays ours. In a fork nobody watches.
int start_watching(int& fd);
void stop_watching();

// The address this host would use to reach `to` (kernel routing). Errno: ENETUNREACH, EHOSTUNREACH,
// EAFNOSUPPORT. Returns 0 and sets `source` (port 0).
int route_source(const sockaddr_storage& to, sockaddr_storage& source);

// True when `address` is one of this host's own.
bool is_local_address(const sockaddr_storage& address);

}  // namespace uiw::device
