/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A receive of a UD queue pair has room for the message, and not for the GRH before it. Clean, it has.
 * Finding: receive-too-short
 * Face: roce
 */
#include "misuse.h"

#define QKEY 0x11111111
#define MESSAGE 64
#define GRH 40

static struct ends ends;

static struct ibv_qp *make_datagram_qp(void)
{
	struct ibv_qp_init_attr init = { .cap = { DEPTH, DEPTH, 1, 1, 0 }, .qp_type = IBV_QPT_UD };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct ibv_qp *qp;

	init.send_cq = ends.sends;
	init.recv_cq = ends.receives;
	MUST(qp = ibv_create_qp(ends.pd, &init));
	MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return qp;
}

static void send_datagram(struct ibv_qp *from, struct ibv_ah *ah, uint32_t to, uint32_t length)
{
	struct ibv_sge sge = piece(&ends, SIZE / 2, length);
	struct ibv_send_wr wr = send_of(&sge, 1);

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = to;
	wr.wr.ud.remote_qkey = QKEY;
	MUST(!post_send(from, wr));
	MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
}

int main(int argc, char **argv)
{
	struct ibv_ah_attr address = { .is_global = 1, .port_num = 1 };
	struct ibv_qp *from, *to;
	struct ibv_ah *ah;

	make_ends(&ends, argc, argv, 0);
	from = make_datagram_qp();
	to = make_datagram_qp();
	MUST(!ibv_query_gid(ends.context, 1, 0, &address.grh.dgid));
	MUST(ah = ibv_create_ah(ends.pd, &address));
	MUST(!post_recv(to, piece(&ends, 0, clean ? GRH + MESSAGE : MESSAGE), 2));
	send_datagram(from, ah, to->qp_num, MESSAGE);
	if (!clean) /* the receive stays, and takes what it has room for */
		send_datagram(from, ah, to->qp_num, MESSAGE - GRH);
	MUST(next_received(&ends).status == IBV_WC_SUCCESS);
	MUST(!ibv_destroy_ah(ah));
	MUST(!ibv_destroy_qp(from));
	MUST(!ibv_destroy_qp(to));
	destroy_ends(&ends);
	return 0;
}
