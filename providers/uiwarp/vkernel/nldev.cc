// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/nldev.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_netlink.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>

#include "vkernel/identity.h"
#include "vkernel/port_counters.h"

namespace uiw::vkernel::nldev {
namespace {

using device::Listed;
using netlink::AttributeKind;
using netlink::AttributeRule;
using netlink::Attributes;
using netlink::Writer;

constexpr uint32_t kPort = 1;  // the only one that a device has

// Newer than the headers of the oldest system that is supported.
constexpr uint16_t kResSrqGetRaw = 25;
constexpr uint16_t kNewDevice = 26;
constexpr uint16_t kDeleteDevice = 27;

constexpr AttributeRule kRules[] = {
    {RDMA_NLDEV_ATTR_DEV_INDEX, AttributeKind::kU32},
    {RDMA_NLDEV_ATTR_PORT_INDEX, AttributeKind::kU32},
    {RDMA_NLDEV_ATTR_CHARDEV_TYPE, AttributeKind::kText},
    {RDMA_NLDEV_ATTR_RES_LQPN, AttributeKind::kU32},
    {RDMA_NLDEV_ATTR_RES_CM_IDN, AttributeKind::kU32},
    {RDMA_NLDEV_ATTR_RES_CQN, AttributeKind::kU32},
    {RDMA_NLDEV_ATTR_RES_MRN, AttributeKind::kU32},
    {RDMA_NLDEV_ATTR_RES_PDN, AttributeKind::kU32},
    {RDMA_NLDEV_ATTR_RES_CTXN, AttributeKind::kU32},
    {RDMA_NLDEV_ATTR_RES_SRQN, AttributeKind::kU32},
    {RDMA_NLDEV_ATTR_STAT_RES, AttributeKind::kU32},
    {RDMA_NLDEV_ATTR_STAT_MODE, AttributeKind::kU32},
    {RDMA_NLDEV_ATTR_STAT_COUNTER_ID, AttributeKind::kU32},
};

uint32_t index_of(const Listed& listed) {
  return listed.device->ifindex;
}

struct Request {
  uint16_t command = 0;  // RDMA_NLDEV_CMD_*
  std::span<const uint8_t> payload;
  const Snapshot& snapshot;
  Writer& out;

  std::optional<Attributes> attributes() const { return Attributes::parse(payload, kRules); }
  const Listed* find(std::optional<uint32_t> index) const {
    if (!index) return nullptr;
    const auto found =
        std::find_if(snapshot.devices.begin(), snapshot.devices.end(),
                     [&](const Listed& listed) { return index_of(listed) == *index; });
    return found == snapshot.devices.end() ? nullptr : &*found;
  }
  void begin(uint16_t flags = 0) const {
    out.begin(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command), flags);
  }
  void begin(const Listed& listed, uint16_t flags = 0) const {
    begin(flags);
    out.u32(RDMA_NLDEV_ATTR_DEV_INDEX, index_of(listed));
    out.text(RDMA_NLDEV_ATTR_DEV_NAME, listed.device->name);
  }
};

// The device that a request names; null: none.
const Listed* named_device(const Request& request) {
  const auto attributes = request.attributes();
  return attributes ? request.find(attributes->u32(RDMA_NLDEV_ATTR_DEV_INDEX)) : nullptr;
}

using WriteDevice = void (*)(const Request&, const Listed&, uint16_t flags);

template <WriteDevice kWrite>
int one(const Request& request) {
  const Listed* listed = named_device(request);
  if (listed == nullptr) return EINVAL;
  kWrite(request, *listed, 0);
  return 0;
}

template <WriteDevice kWrite>
int all(const Request& request) {
  for (const Listed& listed : request.snapshot.devices) kWrite(request, listed, NLM_F_MULTI);
  return 0;
}

// ---- devices ----

void write_device(const Request& request, const Listed& listed, uint16_t flags) {
  const device::Face& face = *request.snapshot.face;
  Writer& out = request.out;
  request.begin(listed, flags);
  out.u32(RDMA_NLDEV_ATTR_PORT_INDEX, kPort);  // how many there are
  out.text(RDMA_NLDEV_ATTR_FW_VERSION, kFirmwareVersion);
  out.u64(RDMA_NLDEV_ATTR_NODE_GUID, listed.device->node_guid);
  out.u64(RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, listed.device->node_guid);
  // "4: RNIC"
  out.u8(RDMA_NLDEV_ATTR_DEV_NODE_TYPE, static_cast<uint8_t>(std::atoi(face.node_type)));
  out.u8(RDMA_NLDEV_ATTR_DEV_DIM, 0);
  out.text(RDMA_NLDEV_ATTR_DEV_PROTOCOL, face.protocol);
  out.end();
}

// ---- ports ----

void write_port(const Request& request, const Listed& listed, uint16_t flags) {
  const device::State& state = listed.state;
  Writer& out = request.out;
  request.begin(listed, flags);
  out.u32(RDMA_NLDEV_ATTR_PORT_INDEX, kPort);
  out.u8(RDMA_NLDEV_ATTR_PORT_STATE, state.active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN);
  out.u8(RDMA_NLDEV_ATTR_PORT_PHYS_STATE, state.active ? 5 : 3);  // LinkUp, Disabled
  out.u32(RDMA_NLDEV_ATTR_NDEV_INDEX, listed.device->ifindex);
  out.text(RDMA_NLDEV_ATTR_NDEV_NAME, state.interface);
  out.end();
}

// The device whose only port a request names; null: none.
const Listed* device_of_port(const Request& request) {
  const auto attributes = request.attributes();
  if (!attributes || attributes->u32(RDMA_NLDEV_ATTR_PORT_INDEX) != kPort) return nullptr;
  return request.find(attributes->u32(RDMA_NLDEV_ATTR_DEV_INDEX));
}

int get_port(const Request& request) {
  const Listed* listed = device_of_port(request);
  if (listed == nullptr) return EINVAL;
  write_port(request, *listed, 0);
  return 0;
}

int list_ports(const Request& request) {
  const Listed* listed = named_device(request);
  if (listed == nullptr) return EINVAL;
  write_port(request, *listed, NLM_F_MULTI);
  return 0;
}

// ---- the system ----

int get_system(const Request& request) {
  request.begin();
  // Devices are those of the interfaces of one network namespace.
  request.out.u8(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 0);
  // Nothing is pinned, so a fork leaves registered memory where it was; ibv_fork_init() has nothing
  // to do.
  request.out.u8(RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
  request.out.end();
  return 0;
}

uint64_t huge_encode(const CharacterDevice& device) {
  return (device.minor & 0xffu) | uint64_t{device.major} << 8 |
         (uint64_t{device.minor} & ~uint64_t{0xff}) << 12;
}

// Of rdma_cm nothing is said, as where the kernel has not loaded it: librdmacm then reads /sys.
// Of a device whose number it knows it goes on to look below /dev/char when it cannot be opened,
// and says ENOENT instead of EMFILE.
int get_character_device(const Request& request) {
  const auto attributes = request.attributes();
  if (!attributes) return EINVAL;
  const auto kind = attributes->text(RDMA_NLDEV_ATTR_CHARDEV_TYPE);
  const auto index = attributes->u32(RDMA_NLDEV_ATTR_DEV_INDEX);
  const auto port = attributes->u32(RDMA_NLDEV_ATTR_PORT_INDEX);
  const Listed* listed = request.find(index);
  if (!kind || (index && listed == nullptr) || (port && !index)) return EINVAL;
  if (listed == nullptr || *kind != "uverbs") return EOPNOTSUPP;
  if (port) return EINVAL;  // it is for all of them

  Writer& out = request.out;
  request.begin();
  const CharacterDevice number = uverbs_device(listed->device->uverbs_minor);
  out.u64(RDMA_NLDEV_ATTR_CHARDEV, huge_encode(number));
  out.u64(RDMA_NLDEV_ATTR_CHARDEV_ABI, number.abi);
  out.text(RDMA_NLDEV_ATTR_CHARDEV_NAME, "uverbs" + std::to_string(listed->device->uverbs_minor));
  out.end();
  return 0;
}

// ---- objects ----

void write_summary(const Request& request, const Listed& listed, uint16_t flags) {
  Writer& out = request.out;
  request.begin(listed, flags);
  const size_t table = out.begin_nest(RDMA_NLDEV_ATTR_RES_SUMMARY);
  if (request.snapshot.objects == Objects::kNone) {
    for (const char* name : {"pd", "cq", "qp", "cm_id", "mr", "ctx", "srq"}) {
      const size_t entry = out.begin_nest(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
      out.text(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, name);
      out.u64(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, 0);
      out.end_nest(entry);
    }
  }
  out.end_nest(table);
  out.end();
}

// Whether a request for objects names a device, and no port that it does not have.
bool names_device(const Request& request, const std::optional<Attributes>& attributes) {
  return attributes && request.find(attributes->u32(RDMA_NLDEV_ATTR_DEV_INDEX)) != nullptr &&
         attributes->u32(RDMA_NLDEV_ATTR_PORT_INDEX).value_or(kPort) == kPort;
}

template <uint16_t kNumber>
int get_object(const Request& request) {
  const auto attributes = request.attributes();
  if (!names_device(request, attributes) || !attributes->u32(kNumber)) return EINVAL;
  return ENOENT;
}

int list_objects(const Request& request) {
  return names_device(request, request.attributes()) ? 0 : EINVAL;
}

// ---- counters ----

using WriteCounter = void (*)(const Request&, const Listed&, const PortCounter&, uint32_t index);

void write_value(const Request& request, const Listed& listed, const PortCounter& counter,
                 uint32_t) {
  request.out.u64(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE,
                  value_of(counter, request.snapshot.counted, listed.device->name));
}

// None can be switched off, which RDMA_NLDEV_ATTR_STAT_HWCOUNTER_DYNAMIC would say.
void write_index(const Request& request, const Listed&, const PortCounter&, uint32_t index) {
  request.out.u32(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_INDEX, index);
}

// Those of hw_counters/, as the kernel does.
template <WriteCounter kWrite>
int write_counters(const Request& request) {
  constexpr std::string_view kFolder = "hw_counters/";
  const Listed* listed = device_of_port(request);
  if (listed == nullptr) return EINVAL;
  Writer& out = request.out;
  request.begin(*listed);
  out.u32(RDMA_NLDEV_ATTR_PORT_INDEX, kPort);
  const size_t table = out.begin_nest(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
  uint32_t index = 0;
  for (const PortCounter& counter : port_counters()) {
    std::string_view name = counter.path;
    if (!name.starts_with(kFolder)) continue;
    name.remove_prefix(kFolder.size());
    const size_t entry = out.begin_nest(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
    out.text(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name);
    kWrite(request, *listed, counter, index++);
    out.end_nest(entry);
  }
  out.end_nest(table);
  out.end();
  return 0;
}

int get_statistic(const Request& request) {
  const auto attributes = request.attributes();
  if (!attributes) return EINVAL;
  const auto objects = attributes->u32(RDMA_NLDEV_ATTR_STAT_RES);
  if (!objects) return write_counters<write_value>(request);
  if (*objects == RDMA_NLDEV_ATTR_RES_MR) return get_object<RDMA_NLDEV_ATTR_RES_MRN>(request);
  if (*objects != RDMA_NLDEV_ATTR_RES_QP) return EINVAL;
  if (attributes->u32(RDMA_NLDEV_ATTR_STAT_COUNTER_ID)) {
    return get_object<RDMA_NLDEV_ATTR_STAT_COUNTER_ID>(request);
  }
  // Which queue pairs have a counter.
  const Listed* listed = device_of_port(request);
  if (listed == nullptr || !attributes->u32(RDMA_NLDEV_ATTR_STAT_MODE)) return EINVAL;
  request.begin(*listed);
  request.out.u32(RDMA_NLDEV_ATTR_PORT_INDEX, kPort);
  request.out.u32(RDMA_NLDEV_ATTR_STAT_MODE, RDMA_COUNTER_MODE_NONE);
  request.out.end();
  return 0;
}

int list_statistics(const Request& request) {
  const auto attributes = request.attributes();
  const auto objects = attributes ? attributes->u32(RDMA_NLDEV_ATTR_STAT_RES) : std::nullopt;
  if (objects != RDMA_NLDEV_ATTR_RES_QP && objects != RDMA_NLDEV_ATTR_RES_MR) return EINVAL;
  return list_objects(request);
}

// ---- all of them ----

int refuse(const Request&) {
  return EOPNOTSUPP;
}

struct Command {
  uint16_t number;
  Privilege needs;
  int (*one)(const Request&);   // null: EINVAL
  int (*list)(const Request&);  // for NLM_F_DUMP; null: EINVAL
};

constexpr Command kCommands[] = {
    {RDMA_NLDEV_CMD_GET, Privilege::kNone, one<write_device>, all<write_device>},
    {RDMA_NLDEV_CMD_SET, Privilege::kNetAdmin, refuse, nullptr},
    {RDMA_NLDEV_CMD_NEWLINK, Privilege::kNetAdmin, refuse, nullptr},
    {RDMA_NLDEV_CMD_DELLINK, Privilege::kNetAdmin, refuse, nullptr},
    {RDMA_NLDEV_CMD_PORT_GET, Privilege::kNone, get_port, list_ports},
    {RDMA_NLDEV_CMD_SYS_GET, Privilege::kNone, get_system, nullptr},
    {RDMA_NLDEV_CMD_SYS_SET, Privilege::kNetAdmin, refuse, nullptr},
    {RDMA_NLDEV_CMD_RES_GET, Privilege::kNone, one<write_summary>, all<write_summary>},
    {RDMA_NLDEV_CMD_RES_QP_GET, Privilege::kNone, get_object<RDMA_NLDEV_ATTR_RES_LQPN>,
     list_objects},
    {RDMA_NLDEV_CMD_RES_CM_ID_GET, Privilege::kNone, get_object<RDMA_NLDEV_ATTR_RES_CM_IDN>,
     list_objects},
    {RDMA_NLDEV_CMD_RES_CQ_GET, Privilege::kNone, get_object<RDMA_NLDEV_ATTR_RES_CQN>,
     list_objects},
    {RDMA_NLDEV_CMD_RES_MR_GET, Privilege::kNone, get_object<RDMA_NLDEV_ATTR_RES_MRN>,
     list_objects},
    {RDMA_NLDEV_CMD_RES_PD_GET, Privilege::kNone, get_object<RDMA_NLDEV_ATTR_RES_PDN>,
     list_objects},
    {RDMA_NLDEV_CMD_GET_CHARDEV, Privilege::kNone, get_character_device, nullptr},
    {RDMA_NLDEV_CMD_STAT_SET, Privilege::kNetAdmin, refuse, nullptr},
    {RDMA_NLDEV_CMD_STAT_GET, Privilege::kNone, get_statistic, list_statistics},
    {RDMA_NLDEV_CMD_STAT_DEL, Privilege::kNetAdmin, refuse, nullptr},
    {RDMA_NLDEV_CMD_RES_QP_GET_RAW, Privilege::kNetAdmin, get_object<RDMA_NLDEV_ATTR_RES_LQPN>,
     list_objects},
    {RDMA_NLDEV_CMD_RES_CQ_GET_RAW, Privilege::kNetAdmin, get_object<RDMA_NLDEV_ATTR_RES_CQN>,
     list_objects},
    {RDMA_NLDEV_CMD_RES_MR_GET_RAW, Privilege::kNetAdmin, get_object<RDMA_NLDEV_ATTR_RES_MRN>,
     list_objects},
    {RDMA_NLDEV_CMD_RES_CTX_GET, Privilege::kNone, get_object<RDMA_NLDEV_ATTR_RES_CTXN>,
     list_objects},
    {RDMA_NLDEV_CMD_RES_SRQ_GET, Privilege::kNone, get_object<RDMA_NLDEV_ATTR_RES_SRQN>,
     list_objects},
    {RDMA_NLDEV_CMD_STAT_GET_STATUS, Privilege::kNone, write_counters<write_index>, nullptr},
    {kResSrqGetRaw, Privilege::kNetAdmin, get_object<RDMA_NLDEV_ATTR_RES_SRQN>, list_objects},
    {kNewDevice, Privilege::kNetAdmin, refuse, nullptr},
    {kDeleteDevice, Privilege::kNetAdmin, refuse, nullptr},
};

const Command* find_command(uint16_t type) {
  if (RDMA_NL_GET_CLIENT(type) != RDMA_NL_NLDEV) return nullptr;
  const uint16_t number = RDMA_NL_GET_OP(type);
  const auto found = std::find_if(std::begin(kCommands), std::end(kCommands),
                                  [number](const Command& c) { return c.number == number; });
  return found == std::end(kCommands) ? nullptr : &*found;
}

void acknowledge(std::span<const uint8_t> message, const nlmsghdr& header, int error, Echo echo,
                 Writer& out) {
  const bool whole = error != 0 && echo == Echo::kMessage;
  const nlmsgerr status{-error, header};
  out.answer_to(header.nlmsg_seq);
  out.begin(NLMSG_ERROR, whole ? 0 : NLM_F_CAPPED);
  out.bytes(&status, sizeof status);
  if (whole) {
    const auto payload = message.subspan(sizeof header);
    out.bytes(payload.data(), payload.size());
  }
  out.end();
}

// The end of a list says how it went.
void finish_list(int error, Writer& out) {
  const int32_t status = -error;
  out.begin(NLMSG_DONE, NLM_F_MULTI);
  out.bytes(&status, sizeof status);
  out.end();
}

void answer_message(std::span<const uint8_t> message, const nlmsghdr& header, const Asker& asker,
                    const Snapshot& snapshot, Writer& out) {
  const bool is_request = (header.nlmsg_flags & NLM_F_REQUEST) != 0;
  int error = 0;
  if (is_request && header.nlmsg_type >= NLMSG_MIN_TYPE) {
    const Command* command = find_command(header.nlmsg_type);
    const bool for_list = (header.nlmsg_flags & NLM_F_DUMP) != 0;
    const auto execute = command == nullptr ? nullptr : for_list ? command->list : command->one;
    if (command == nullptr) {
      error = EINVAL;
    } else if (command->needs == Privilege::kNetAdmin && asker.privilege == Privilege::kNone) {
      error = EPERM;
    } else if (execute == nullptr) {
      error = EINVAL;
    } else {
      out.answer_to(header.nlmsg_seq);
      error = execute({command->number, message.subspan(sizeof header), snapshot, out});
      if (for_list) return finish_list(error, out);
    }
  }
  if (error != 0 || (header.nlmsg_flags & NLM_F_ACK) != 0) {
    acknowledge(message, header, error, asker.echo, out);
  }
}

// Calls `visit(message, its header)` for each whole message of a datagram.
template <class Visit>
void for_each_message(std::span<const uint8_t> datagram, Visit&& visit) {
  while (datagram.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header;
    std::memcpy(&header, datagram.data(), sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > datagram.size()) return;
    visit(datagram.first(header.nlmsg_len), header);
    datagram = datagram.subspan(std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), datagram.size()));
  }
}

}  // namespace

bool asks_for_list(std::span<const uint8_t> request) {
  bool asks = false;
  for_each_message(request, [&](std::span<const uint8_t>, const nlmsghdr& header) {
    asks = asks || (header.nlmsg_flags & NLM_F_DUMP) != 0;
  });
  return asks;
}

bool asks_for_counters(std::span<const uint8_t> request) {
  bool asks = false;
  for_each_message(request, [&](std::span<const uint8_t>, const nlmsghdr& header) {
    asks = asks || header.nlmsg_type == RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_GET);
  });
  return asks;
}

std::vector<netlink::Datagram> answer(std::span<const uint8_t> request, const Asker& asker,
                                      const Snapshot& snapshot) {
  Writer out(asker.port);
  for_each_message(request, [&](std::span<const uint8_t> message, const nlmsghdr& header) {
    answer_message(message, header, asker, snapshot, out);
  });
  auto datagrams = out.take();
  std::erase_if(datagrams, [](const netlink::Datagram& datagram) { return datagram.empty(); });
  return datagrams;
}

}  // namespace uiw::vkernel::nldev
