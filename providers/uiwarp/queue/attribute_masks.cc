// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "queue/attribute_masks.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <span>

#include "core/explain_of.h"
#include "core/verbs_names.h"

namespace uiw::queue {
namespace {

struct Way {
  ibv_qp_state from, to;
  int required, optional;
};

// From every state RESET and ERR can be reached, without attributes.
constexpr Way kUc[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN,
     IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0,
     IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0,
     IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0,
     IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE},
};

constexpr int kIdentity = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;

// There is no SQD: the send queue hands each datagram to the kernel during the post, so it has
// nothing to drain.
constexpr Way kUd[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, kIdentity, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, kIdentity},
    {IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    // Not in the tables, but drivers accept it.
    {IBV_QPS_RTR, IBV_QPS_RTR, 0, IBV_QP_QKEY | IBV_QP_CUR_STATE},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_QKEY | IBV_QP_CUR_STATE},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_QKEY | IBV_QP_CUR_STATE},
};

const char* name_of_lowest(int mask) {
  const auto bit = static_cast<size_t>(std::countr_zero(static_cast<unsigned>(mask)));
  const std::span<const char* const> names = core::attribute_names();
  return bit < names.size() ? names[bit] : "?";
}

int check(core::Told& told, const char* type, std::span<const Way> ways, ibv_qp_state from,
          ibv_qp_state to, int mask) {
  const auto way =
      std::ranges::find_if(ways, [&](const Way& w) { return w.from == from && w.to == to; });
  const bool always = (mask & IBV_QP_STATE) && (to == IBV_QPS_RESET || to == IBV_QPS_ERR);
  const char* const move = core::name_of(to);
  if (way == ways.end() && !always)
    return core::refuse_of(move, told, EINVAL,
                           "ibv_modify_qp: a %s queue pair does not go from %s to %s", type,
                           core::name_of(from), move);
  const int required = always ? 0 : way->required, optional = always ? 0 : way->optional;
  if (const int missing = required & ~mask)
    return core::refuse_of(move, told, EINVAL,
                           "ibv_modify_qp of a %s queue pair from %s to %s: IBV_QP_%s is missing",
                           type, core::name_of(from), move, name_of_lowest(missing));
  if (const int foreign = mask & ~(IBV_QP_STATE | required | optional))
    return core::refuse_of(
        move, told, EINVAL,
        "ibv_modify_qp of a %s queue pair from %s to %s: leave out IBV_QP_%s, which it does "
        "not have there",
        type, core::name_of(from), move, name_of_lowest(foreign));
  return 0;
}

}  // namespace

int check_mask(core::Told& told, ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
  switch (type) {
    case IBV_QPT_UC:
      return check(told, "UC", kUc, from, to, mask);
    case IBV_QPT_UD:
      return check(told, "UD", kUd, from, to, mask);
    default:
      return 0;
  }
}

}  // namespace uiw::queue
