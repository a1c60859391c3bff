// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/ud.h"

#include <cerrno>
#include <cstring>
#include <optional>

#include "core/log.h"
#include "datagram/group.h"
#include "datagram/groups.h"
#include "verbs/affinity.h"
#include "verbs/ah.h"
#include "verbs/path_mtu.h"

namespace uiw::verbs {
namespace {

// A port does if its UDP socket is there or can be had.
class DoorAtPort final : public rendezvous::PortCondition {
 public:
  explicit DoorAtPort(engine::Engine& engine) : engine_(engine) {}
  int try_port(uint16_t port) override {
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
  options.mtu = bytes_of(largest_ib_mtu(device::state_of(*qp.pd->context->device).mtu));
  return options;
}

}  // namespace

int create_datagrams(uiwarp_qp& qp, const uiwarp_qp_init& init) {
  engine::Engine& engine = *qp.pd->context->engine;
  set_first_affinity(*qp.recv_cq, *qp.send_cq);
  DoorAtPort condition(engine);
  if (const int error = reserve_number(qp.registration, condition)) {
    core::log(core::LogLevel::kWarn,
              "ibv_create_qp: no port for a UD queue pair (%s): it needs one that is free for TCP "
              "and UDP, of UIWARP_PORTS if that is set",
              strerrordesc_np(error));
    return error;
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
  // On the engine, so that rdma_cm does not hold one that it found a moment ago; and what the queue
  // pair has left to the engine is done then.
  qp.pd->context->engine->run_sync([&] {
    qp.door->leave();
    unregister(qp.registration);
  });
  qp.datagrams.reset();
}

}  // namespace uiw::verbs

using namespace uiw;

namespace {

// The group of a GID; none, with errno in `error`: no queue pair of that type can be attached, or
// it is no group's.
std::optional<in6_addr> group_of(const uiwarp_qp& qp, const ibv_gid& gid, int& error) {
  in6_addr address;
  std::memcpy(&address, &gid, sizeof address);
  address = datagram::address_of_gid(address);
  error = EINVAL;
  if (qp.pd->context->in_child()) error = core::refuse_in_child();
  if (!qp.pd->context->face->has(IBV_QPT_UD)) error = EOPNOTSUPP;
  if (error != EINVAL || !qp.datagrams || !datagram::is_group(address)) return {};
  error = 0;
  return address;
}

}  // namespace

int uiwarp_qp_attach(uiwarp_qp* qp, const union ibv_gid* gid) {
  int error;
  const auto group = group_of(*qp, *gid, error);
  if (!group) return error;
  bool added = false;
  const uiwarp_context& context = *qp->pd->context;
  error = datagram::attach(*context.engine, *qp->datagrams, *group, context.device->ifindex, added);
  if (added) qp->users.add(verbs::User::kGroup);
  return error;
}

int uiwarp_qp_detach(uiwarp_qp* qp, const union ibv_gid* gid) {
  int error;
  const auto group = group_of(*qp, *gid, error);
  if (!group) return error;
  error = datagram::detach(*qp->datagrams, *group, qp->pd->context->device->ifindex);
  if (error == 0) qp->users.remove(verbs::User::kGroup);
  return error;
}
