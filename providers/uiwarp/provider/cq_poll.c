/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * ibv_start_poll(), ibv_next_poll(), ibv_end_poll() and ibv_wc_read_*(): the current completion is a copy
 * of the struct ibv_wc that ibv_poll_cq() would have given, taken out of the queue when the iterator
 * comes to it. One thread at a time iterates, and takes nothing before it may.
 */
#include <errno.h>

#include "provider/provider.h"

/* The fields of struct ibv_wc. Time stamps, VLANs and flow tags an iWARP completion does not have. */
const uint64_t provider_wc_flags = IBV_WC_STANDARD_FLAGS;

static struct provider_cq *cq_of(struct ibv_cq_ex *ex)
{
	return (struct provider_cq *)ex;
}

static void show(struct provider_cq *mine, const struct ibv_wc *wc)
{
	mine->current = *wc;
	mine->ex.wr_id = wc->wr_id;
	mine->ex.status = wc->status;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct provider_cq *mine = cq_of(ex);
	struct ibv_wc wc;
	int count;

	if (attr->comp_mask)
		return EINVAL;
	if (!mine->single_threaded)
		pthread_mutex_lock(&mine->polling);
	count = core_verbs->cq_poll(mine->core, 1, &wc);
	if (count > 0) {
		show(mine, &wc);
		return 0;
	}
	/* Where nothing has begun nothing is to end. */
	if (!mine->single_threaded)
		pthread_mutex_unlock(&mine->polling);
	return count ? -count : ENOENT;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct provider_cq *mine = cq_of(ex);
	struct ibv_wc wc;
	int count = core_verbs->cq_poll(mine->core, 1, &wc);

	if (count <= 0)
		return count ? -count : ENOENT;
	show(mine, &wc);
	return 0;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct provider_cq *mine = cq_of(ex);

	if (!mine->single_threaded)
		pthread_mutex_unlock(&mine->polling);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->current.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->current.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->current.byte_len;
}

/* Also the key that a Send with Invalidate named: both share a word of struct ibv_wc. */
static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->current.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->current.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->current.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->current.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->current.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->current.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->current.dlid_path_bits;
}

void provider_cq_set_poll_ops(struct provider_cq *mine)
{
	struct ibv_cq_ex *ex = &mine->ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
}
