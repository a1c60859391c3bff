/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Sends the numbers 1 to 8 as datagrams from one queue pair to another, or up to one whose Send fails, and prints in
 * which order they come, until the last one is there. For run.py.
 */
#include "../misuse/misuse.h"

#define COUNT 8
#define ROOM 16
#define QKEY 0x11111111
#define GRH 40

static struct ends ends;

static struct ibv_qp *make_datagram_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = ends.sends, .recv_cq = ends.receives, .cap = { ROOM, ROOM, 1, 1, 0 }, .qp_type = IBV_QPT_UD,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct ibv_qp *const qp = ibv_create_qp(ends.pd, &init);

	MUST(qp);
	MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return qp;
}

int main(int argc, char **argv)
{
	struct ibv_ah_attr where = { .is_global = 1, .port_num = 1 };
	struct ibv_ah *ah;
	struct ibv_qp *from, *to;
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	unsigned char last = 0, sent = 0;
	uint64_t i;

	make_ends(&ends, argc, argv, 0);
	from = make_datagram_qp();
	to = make_datagram_qp();
	MUST(!ibv_query_gid(ends.context, 1, 0, &where.grh.dgid));
	MUST(ah = ibv_create_ah(ends.pd, &where));
	for (i = 0; i < ROOM; ++i)
		MUST(!post_recv(to, piece(&ends, i * 64, GRH + 1), i));
	for (i = 1; i <= COUNT && status == IBV_WC_SUCCESS; ++i) {
		struct ibv_sge number = piece(&ends, 2048 + i, 1);
		struct ibv_send_wr wr = send_of(&number, i);
		struct ibv_wc wc;

		ends.memory[2048 + i] = (char)i;
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = to->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
		MUST(!post_send(from, wr));
		wc = next_sent(&ends);
		MUST(wc.wr_id == i);
		status = wc.status;
		if (status == IBV_WC_SUCCESS)
			sent = (unsigned char)i;
	}
	while (last != sent) {
		last = (unsigned char)ends.memory[next_received(&ends).wr_id * 64 + GRH];
		printf("%d ", last);
	}
	puts(status == IBV_WC_SUCCESS ? "" : ibv_wc_status_str(status));
	MUST(!ibv_destroy_ah(ah));
	MUST(!ibv_destroy_qp(from));
	MUST(!ibv_destroy_qp(to));
	destroy_ends(&ends);
	return 0;
}
