/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Connects two queue pairs of this process by number, sends a message, and destroys first the one with the lower number,
 * which has listened, so that its end of the connection is in TIME_WAIT; once for each address, one after the other.
 *
 *	again DEVICE INDEX...	of the GID at each
 *	again ud DEVICE COUNT	so many UD queue pairs instead, and says the ports in their numbers
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 64 };

static struct ibv_context *device;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char memory[SIZE];

static void step(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static struct ibv_qp *create(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = type,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	step(qp != NULL, "ibv_create_qp");
	return qp;
}

static void start(struct ibv_qp *qp, uint32_t peer, int index)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	union ibv_gid gid;

	step(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	step(!ibv_query_gid(device, 1, index, &gid), "ibv_query_gid");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = index, .hop_limit = 1}},
	};
	step(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1,
	};
	step(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

static void complete(void)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(cq, 1, &wc))
		;
	step(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
}

static void meet(int index)
{
	struct ibv_qp *a = create(IBV_QPT_RC), *b = create(IBV_QPT_RC), *lower = a->qp_num < b->qp_num ? a : b;
	struct ibv_sge sge = {(uintptr_t)memory, SIZE, mr->lkey};
	struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad_receive;
	struct ibv_send_wr send = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	}, *bad_send;

	start(a, b->qp_num, index);
	start(b, a->qp_num, index);
	step(!ibv_post_recv(b, &receive, &bad_receive) && !ibv_post_send(a, &send, &bad_send), "posting");
	complete();
	complete();
	step(!ibv_destroy_qp(lower), "ibv_destroy_qp");
	usleep(100 * 1000); /* the other end hears of it, and closes */
	step(!ibv_destroy_qp(lower == a ? b : a), "ibv_destroy_qp");
	printf("met at GID %d\n", index);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int ud = argc > 1 && !strcmp(argv[1], "ud");

	alarm(60);
	for (struct ibv_device **one = list; *one; one++)
		if (!strcmp(ibv_get_device_name(*one), argv[1 + ud]))
			device = ibv_open_device(*one);
	step(device && (pd = ibv_alloc_pd(device)) && (cq = ibv_create_cq(device, 16, NULL, NULL, 0)) &&
	     (mr = ibv_reg_mr(pd, memory, SIZE, IBV_ACCESS_LOCAL_WRITE)), argv[1 + ud]);
	if (ud) {
		for (int i = atoi(argv[3]); i > 0; i--)
			printf("port %u\n", create(IBV_QPT_UD)->qp_num >> 8);
	} else {
		create(IBV_QPT_RC); /* its port stays, with what listens there */
		for (int i = 2; i < argc; i++)
			meet(atoi(argv[i]));
	}
	printf("done\n");
	return 0;
}
