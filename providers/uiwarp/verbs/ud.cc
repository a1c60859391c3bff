// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/ud.h"

#include <cerrno>
#include <cstring>
#include <optional>

#include "core/explain_of.h"
#include "core/gid.h"
#include "core/verbs_names.h"
#include "datagram/group.h"
#include "datagram/groups.h"
#include "verbs/affinity.h"
#include "verbs/ah.h"

namespace uiw::verbs {
namespace {

// A port is usable if its UDP socket is open already or can be opened.
class DoorAtPort final : public rendezvous::PortCondition {
 public:
  explicit DoorAtPort(engine::Engine& engine) : engine_(engine) {}
  int try_port(uint16_t port) override {
    if (port == datagram::kGroupPort) return EADDRINUSE;  // of the groups, for all processes
    core::Result<datagram::Door*> entered = datagram::Door::enter(engine_, port);
    if (!entered) return entered.error();
    door_ = *entered;
    return 0;
  }
  datagram::Door* door() const { return door_; }

 private:
  engine::Engine& engine_;
  datagram::Door* door_ = nullptr;
};

datagram::QueuePairOptions options_of(uiwarp_qp& qp, const uiwarp_qp_init& init) {
  datagram::QueuePairOptions options;
  fill(options, qp, init);
  options.find_address_handle = address_handle_of;
  options.device = qp.pd->context->device;
  return options;
}

}  // namespace

int create_datagrams(uiwarp_qp& qp, const uiwarp_qp_init& init) {
  engine::Engine& engine = *qp.pd->context->engine;
  set_first_affinity(*qp.recv_cq, *qp.send_cq);
  DoorAtPort condition(engine);
  if (const int error = reserve_number(qp.registration, condition)) {
    const char* const reason = strerrordesc_np(error);
    return core::refuse_of(reason, qp.pd->context->told.qp, error,
                           "ibv_create_qp: no port for a UD queue pair (%s): it needs one that is "
                           "free for TCP and UDP, of UIWARP_PORTS if that is set",
                           reason);
  }
  qp.door = condition.door();
  qp.datagrams = datagram::QueuePair::create(engine, *qp.door, options_of(qp, init));
  if (qp.datagrams) {
    qp.door->add(*qp.datagrams);
    return 0;
  }
  engine.run_sync([&] { qp.door->leave(); });
  unregister(qp.registration);
  return ENOMEM;
}

void end_datagrams(uiwarp_qp& qp) {
  qp.door->remove(*qp.datagrams);
  // On the engine thread, where rdma_cm may be using a QP that it has just found. Afterwards the
  // engine has also done what the queue pair left to it.
  qp.pd->context->engine->run_sync([&] {
    qp.datagrams->end_late();
    qp.door->leave();
    unregister(qp.registration);
  });
  qp.datagrams.reset();
}

}  // namespace uiw::verbs

using namespace uiw;

namespace {

// The group that a GID names. None, with an errno in `error`: this queue pair cannot be attached,
// or the GID names no group.
std::optional<in6_addr> group_of(uiwarp_qp& qp, const ibv_gid& gid, const char* call, int& error) {
  in6_addr address;
  std::memcpy(&address, &gid, sizeof address);
  address = datagram::address_of_gid(address);
  const device::Face& face = *qp.pd->context->face;
  error = 0;
  if (qp.pd->context->in_child())
    error = core::refuse_in_child();
  else if (!face.has(IBV_QPT_UD))
    error = core::refuse_of(call, qp.told, EOPNOTSUPP,
                            "%s: devices of the %s face have no multicast groups: UIWARP_FACE=roce "
                            "has them (uiwarp run --as roce)",
                            call, face.name);
  else if (!qp.datagrams)
    error = core::refuse_of(call, qp.told, EINVAL,
                            "%s: queue pair 0x%06x is of %s type, groups are for those of UD type",
                            call, qp.registration.qp_num, core::name_of_type(qp.qp_type));
  else if (!datagram::is_group(address))
    error =
        core::refuse_of(call, qp.told, EINVAL,
                        "%s: queue pair 0x%06x: %s is the GID of no multicast group: those begin "
                        "with ff, or are ::ffff:224.0.0.0 to ::ffff:239.255.255.255",
                        call, qp.registration.qp_num, core::text_of(address).text);
  if (error) return {};
  return address;
}

const char* reason_of(int error) {
  switch (error) {
    case ENOMEM:
      return "the group has as many queue pairs, or the device as many groups, as there can be "
             "(ibv_query_device: max_mcast_qp_attach, max_mcast_grp), or no memory is left";
    case EMFILE:
    case ENFILE:
      return "no descriptor is left for its socket (ulimit -n)";
    case ENODEV:
      return "the network interface has gone";
    default:
      return strerrordesc_np(error);
  }
}

}  // namespace

int uiwarp_qp_attach(uiwarp_qp* qp, const union ibv_gid* gid) {
  static constexpr char kCall[] = "ibv_attach_mcast";
  int error;
  const auto group = group_of(*qp, *gid, kCall, error);
  if (!group) return error;
  bool added = false;
  const uiwarp_context& context = *qp->pd->context;
  error = datagram::attach(*context.engine, *qp->datagrams, *group, context.device->ifindex, added);
  if (added) qp->users.add(verbs::User::kGroup);
  if (!error) return 0;
  const char* const reason = reason_of(error);
  return core::refuse_of(reason, qp->told, error,
                         "%s: queue pair 0x%06x cannot be attached to %s: %s", kCall,
                         qp->registration.qp_num, core::text_of(*group).text, reason);
}

int uiwarp_qp_detach(uiwarp_qp* qp, const union ibv_gid* gid) {
  static constexpr char kCall[] = "ibv_detach_mcast";
  int error;
  const auto group = group_of(*qp, *gid, kCall, error);
  if (!group) return error;
  if (datagram::detach(*qp->datagrams, *group, qp->pd->context->device->ifindex) != 0)
    return core::refuse(qp->told, EINVAL, "%s: queue pair 0x%06x is not attached to %s", kCall,
                        qp->registration.qp_num, core::text_of(*group).text);
  qp->users.remove(verbs::User::kGroup);
  return 0;
}
