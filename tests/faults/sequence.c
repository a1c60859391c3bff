/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Sends messages from one queue pair to another, one after the other, and prints how they complete, until one does not
 * succeed; then how the rest flushes. For run.py.
 *
 *     faults_sequence MESSAGES
 */
#include "../misuse/misuse.h"

static struct ends ends;

static void print(const char *what, struct ibv_wc wc)
{
	printf("%s %d: %s\n", what, (int)wc.wr_id, ibv_wc_status_str(wc.status));
}

int main(int argc, char **argv)
{
	const int messages = argc > 1 ? atoi(argv[1]) : 1;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_sge to, from;
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };
	int i;

	make_ends(&ends, 1, argv, 0);
	connect_ends(&ends);
	to = piece(&ends, 0, 64);
	from = piece(&ends, 64, 64);
	for (i = 1; i <= messages && wc.status == IBV_WC_SUCCESS; ++i) {
		MUST(!post_recv(ends.b, to, (uint64_t)i));
		MUST(!post_send(ends.a, send_of(&from, (uint64_t)i)));
		/* Behind it, when it fails. */
		if (i == messages)
			MUST(!post_send(ends.a, send_of(&from, (uint64_t)i + 1)));
		wc = next_sent(&ends);
		if (wc.status != IBV_WC_SUCCESS)
			print("send", wc);
		else
			MUST(next_received(&ends).wr_id == (uint64_t)i);
	}
	if (wc.status != IBV_WC_SUCCESS) {
		print("send", next_sent(&ends));
		MUST(!ibv_query_qp(ends.a, &attr, IBV_QP_STATE, &init));
		printf("state %s\n", attr.qp_state == IBV_QPS_ERR ? "ERR" : "another");
	}
	destroy_ends(&ends);
	return 0;
}
