/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * ibv_wr_*(): a work request is described by a builder and at most one setter, and goes to the core as
 * the struct ibv_send_wr that ibv_post_send() would have been given. Nothing is allocated, and inline
 * octets are copied once, by the setter, as its manual page promises.
 *
 * A builder opens a work request; its setter for data, the next builder or ibv_wr_complete() closes it. The first
 * mistake of a batch is kept, and ibv_wr_complete() posts nothing and tells.
 */
#include <errno.h>
#include <string.h>

#include "provider/provider.h"

static struct provider_qp *qp_of(struct ibv_qp_ex *ex)
{
	return (struct provider_qp *)ex;
}

static void fail(struct provider_qp *mine, int error)
{
	if (!mine->wr_error)
		mine->wr_error = error;
}

static void close_wr(struct provider_qp *mine)
{
	if (!mine->wr_open)
		return;
	mine->wr_open = false;
	if (!mine->wr_error)
		mine->wr_error = core_verbs->qp_batch_add(mine->core, &mine->wr);
}

static struct ibv_send_wr *open_wr(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct provider_qp *mine = qp_of(ex);

	close_wr(mine);
	mine->wr = (struct ibv_send_wr){
		.wr_id = ex->wr_id,
		.opcode = opcode,
		/* Inline is what the setter says. */
		.send_flags = ex->wr_flags & ~(unsigned int)IBV_SEND_INLINE,
	};
	mine->wr_open = true;
	return &mine->wr;
}

/* ---- critical section ---- */

static void wr_start(struct ibv_qp_ex *ex)
{
	struct provider_qp *mine = qp_of(ex);

	core_verbs->qp_batch_begin(mine->core);
	mine->wr_open = false;
	mine->wr_error = 0;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct provider_qp *mine = qp_of(ex);
	int error;

	close_wr(mine);
	error = mine->wr_error; /* another thread's as soon as the section ends */
	if (!error)
		return core_verbs->qp_batch_end(mine->core, 1);
	core_verbs->qp_batch_end(mine->core, 0);
	return error;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	core_verbs->qp_batch_end(qp_of(ex)->core, 0);
}

/* ---- builders ---- */

static void wr_send(struct ibv_qp_ex *ex)
{
	open_wr(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	open_wr(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	open_wr(ex, IBV_WR_SEND_WITH_INV)->invalidate_rkey = invalidate_rkey;
}

static struct ibv_send_wr *open_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
				     uint64_t remote_addr)
{
	struct ibv_send_wr *wr = open_wr(ex, opcode);

	wr->wr.rdma.remote_addr = remote_addr;
	wr->wr.rdma.rkey = rkey;
	return wr;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	open_rdma(ex, IBV_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	open_rdma(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	open_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr)->imm_data = imm_data;
}

static void open_atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t remote_addr,
			uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = open_wr(ex, opcode);

	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
	wr->wr.atomic.rkey = rkey;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare,
			      uint64_t swap)
{
	open_atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	open_atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	open_wr(ex, IBV_WR_LOCAL_INV)->invalidate_rkey = invalidate_rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = open_wr(ex, IBV_WR_BIND_MW);

	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

/* ---- builders and setters of queue pairs that iWARP does not have ---- */

static void wr_send_tso(struct ibv_qp_ex *ex, void *header, uint16_t header_size, uint16_t mss)
{
	(void)header;
	(void)header_size;
	(void)mss;
	fail(qp_of(ex), EOPNOTSUPP);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
	(void)srqn;
	fail(qp_of(ex), EOPNOTSUPP);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, const void *data)
{
	(void)rkey;
	(void)remote_addr;
	(void)data;
	fail(qp_of(ex), EOPNOTSUPP);
}

/* Since rdma-core 45; its arguments are of no interest. */
static void wr_flush(struct ibv_qp_ex *ex)
{
	fail(qp_of(ex), EOPNOTSUPP);
}

/* ---- setters ---- */

/* Before or after the one for data, which closes the work request. */
static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct provider_qp *mine = qp_of(ex);
	int error = 0;

	if (!mine->wr_open || mine->qp.qp_type != IBV_QPT_UD) {
		error = core_verbs->qp_batch_address(mine->core, ah, qpn, qkey);
	} else {
		mine->wr.wr.ud.ah = ah;
		mine->wr.wr.ud.remote_qpn = qpn;
		mine->wr.wr.ud.remote_qkey = qkey;
	}
	if (error)
		fail(mine, error);
}

static void set_data(struct ibv_qp_ex *ex, struct ibv_sge *list, size_t count, bool copy)
{
	struct provider_qp *mine = qp_of(ex);

	if (!mine->wr_open || count > INT32_MAX) {
		/* no work request, or it has its data */
		fail(mine, uiwarp_refuse(EINVAL,
					 "ibv_wr_set_sge or ibv_wr_set_inline_data of queue pair 0x%06x: behind no builder "
					 "such as ibv_wr_send, or the second one behind it", ex->qp_base.qp_num));
		return;
	}
	mine->wr.sg_list = list;
	mine->wr.num_sge = (int)count;
	if (copy)
		mine->wr.send_flags |= IBV_SEND_INLINE;
	close_wr(mine);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	set_data(ex, &sge, 1, false);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t count, const struct ibv_sge *list)
{
	set_data(ex, (struct ibv_sge *)list, count, false);
}

static int too_long_inline(struct ibv_qp_ex *ex, size_t length)
{
	return uiwarp_refuse(EINVAL, "ibv_wr_set_inline_data: queue pair 0x%06x: %zu bytes inline, %d are the most there is",
			     ex->qp_base.qp_num, length, UIWARP_MAX_INLINE);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_sge sge = { .addr = (uintptr_t)addr, .length = (uint32_t)length };

	if (length > UIWARP_MAX_INLINE) /* before it is cut to 32 bits */
		fail(qp_of(ex), too_long_inline(ex, length));
	set_data(ex, &sge, 1, true);
}

/* A list may have more elements than the queue pair has SGEs: brought together first. */
static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t count, const struct ibv_data_buf *list)
{
	char octets[UIWARP_MAX_INLINE];
	size_t length = 0;

	for (size_t i = 0; i < count; ++i) {
		if (list[i].length > sizeof(octets) - length) {
			fail(qp_of(ex), too_long_inline(ex, length + list[i].length));
			return;
		}
		memcpy(octets + length, list[i].addr, list[i].length);
		length += list[i].length;
	}
	wr_set_inline_data(ex, octets, length);
}

void provider_qp_set_wr_ops(struct provider_qp *mine)
{
	const uint32_t flag = UIWARP_VERBS_QP_EX;
	const size_t flags_at = provider_qp_flags_at();
	void (*const flush)(struct ibv_qp_ex *) = wr_flush;
	struct ibv_qp_ex *ex = &mine->ex;

	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_atomic_write = wr_atomic_write;
	/* The member that moved the flags lies where they were. */
	if (flags_at == UIWARP_VERBS_QP_MASK_FROM_45)
		memcpy(mine->space + UIWARP_VERBS_QP_MASK_TO_44, &flush, sizeof(flush));
	memcpy(mine->space + flags_at, &flag, sizeof(flag));
}
