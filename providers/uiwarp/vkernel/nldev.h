// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a kernel answers at NETLINK_RDMA: the device part of it (RDMA_NL_NLDEV), which libibverbs,
// librdmacm and rdma(8) ask. Pure: from the bytes of a request, and what there is, to the bytes of
// the answers. Errors are those of drivers/infiniband/core/nldev.c.
//
// What is not known here is left out rather than made up: single objects (queue pairs, memory
// regions, ...) are in no list, and how many there are of them is only said by a process that has
// none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "counters/snapshot.h"
#include "device/device.h"
#include "device/face.h"
#include "vkernel/netlink_message.h"

namespace uiw::vkernel::nldev {

// Whether who asks may change devices. Nothing can be changed here, but the error differs.
enum class Privilege {
  kNone,      // EPERM
  kNetAdmin,  // CAP_NET_ADMIN: EOPNOTSUPP
};

// How much of a request an error gives back.
enum class Echo {
  kMessage,
  kHeader,  // NETLINK_CAP_ACK
};

// Whether this process has objects of devices.
enum class Objects {
  kNone,
  kUncounted,
};

struct Asker {
  uint32_t port = 0;  // of the socket that the answers go to
  Privilege privilege = Privilege::kNone;
  Echo echo = Echo::kMessage;
};

struct Snapshot {
  std::vector<device::Listed> devices;
  const device::Face* face = nullptr;
  Objects objects = Objects::kNone;
  std::vector<counters::Row> counted{};  // by device; needed where asks_for_counters() says so
};

// Whether `request` asks for a list of all there is: who asks that wants to know what there is now.
bool asks_for_list(std::span<const uint8_t> request);

// Whether it asks what ports have counted, which takes reading files.
bool asks_for_counters(std::span<const uint8_t> request);

// The datagrams that answer the datagram `request`, in order. A device's index is that of its
// network interface.
std::vector<netlink::Datagram> answer(std::span<const uint8_t> request, const Asker& asker,
                                      const Snapshot& snapshot);

}  // namespace uiw::vkernel::nldev
