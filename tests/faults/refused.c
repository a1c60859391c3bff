/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Calls that fail by rules, where the same error without a rule would be the program's own doing. Prints what each
 * returns. For run.py.
 */
#include <errno.h>
#include "../misuse/misuse.h"

static struct ends ends;

static int send_by_batch(struct ibv_qp_ex *qp, const struct ibv_sge *sge)
{
	ibv_wr_start(qp);
	qp->wr_id = 2;
	qp->wr_flags = 0;
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, sge->lkey, sge->addr, sge->length);
	return ibv_wr_complete(qp);
}

static void send_twice(bool by_batch)
{
	struct ibv_sge sge = piece(&ends, 0, 64);
	struct ibv_send_wr wr = send_of(&sge, 1);

	wr.send_flags = 0;
	connect_in_vain(&ends);
	for (int i = 0; i < 2; ++i)
		printf("send %d\n", by_batch ? send_by_batch(ibv_qp_to_qp_ex(ends.a), &sge) : post_send(ends.a, wr));
	MUST(!ibv_destroy_qp(ends.a));
	ends.a = make_extended_qp(&ends);
}

/* --check asks for the state when a post is refused, and its questions do not count. */
static void query_behind_full_queue(void)
{
	struct ibv_sge sge = piece(&ends, 0, 64);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	connect_in_vain(&ends);
	/* Once by the rule. */
	for (int refusals = 0; refusals < 2;)
		refusals += post_send(ends.a, send_of(&sge, 1)) != 0;
	for (int i = 0; i < 2; ++i)
		printf("query %d\n", ibv_query_qp(ends.a, &attr, IBV_QP_STATE, &init));
}

int main(int argc, char **argv)
{
	make_ends(&ends, argc, argv, 0);
	MUST(ibv_rereg_mr(ends.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
	printf("rereg %d\n", errno);
	send_twice(false);
	send_twice(true);
	query_behind_full_queue();
	destroy_ends(&ends);
	return 0;
}
