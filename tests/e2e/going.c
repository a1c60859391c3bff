/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A receiver that goes as soon as it has all messages, in each way that a program has, again and again; the sender
 * says whether all of them have completed well.
 *
 *	going DEVICE GID-INDEX WAY COUNT    WAY: destroy, reset, error, exit, quick_exit, _exit
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* More than are asked for at once: each is posted by itself. */
enum { MESSAGES = 12, SIZE = 64, SECONDS = 60 };

struct address {
	union ibv_gid gid;
	uint32_t qp_num;
};

static struct ibv_context *device;
static struct ibv_qp *qp;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char buffer[SIZE];

static void step(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	_exit(2);
}

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	step(list != NULL, "ibv_get_device_list");
	for (struct ibv_device **one = list; *one; one++)
		if (!strcmp(ibv_get_device_name(*one), name))
			device = ibv_open_device(*one);
	step(device != NULL, "ibv_open_device");
	ibv_free_device_list(list);
}

static void connect_by_number(int fd, int index)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = MESSAGES, .max_recv_wr = MESSAGES, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_recv_wr receive = {.sg_list = &(struct ibv_sge){(uintptr_t)buffer, SIZE, 0}, .num_sge = 1}, *bad;
	struct ibv_pd *pd = ibv_alloc_pd(device);
	struct address own, peer;

	step(pd && (mr = ibv_reg_mr(pd, buffer, SIZE, IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr");
	cq = ibv_create_cq(device, 2 * MESSAGES, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	step(cq && (qp = ibv_create_qp(pd, &init)), "ibv_create_qp");
	step(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	receive.sg_list->lkey = mr->lkey;
	for (int i = 0; i < MESSAGES; i++)
		step(!ibv_post_recv(qp, &receive, &bad), "ibv_post_recv");
	own.qp_num = qp->qp_num;
	step(!ibv_query_gid(device, 1, index, &own.gid), "ibv_query_gid");
	step(write(fd, &own, sizeof(own)) == sizeof(own) && read(fd, &peer, sizeof(peer)) == sizeof(peer), "exchange");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer.qp_num, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer.gid, .sgid_index = index, .hop_limit = 1}},
	};
	step(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1,
	};
	step(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

static enum ibv_wc_status await_completions(void)
{
	struct ibv_wc wc;

	for (int count = 0; count < MESSAGES;) {
		const int got = ibv_poll_cq(cq, 1, &wc);

		step(got >= 0, "ibv_poll_cq");
		if (got && wc.status != IBV_WC_SUCCESS)
			return wc.status;
		count += got;
	}
	return IBV_WC_SUCCESS;
}

static void receive_and_go(const char *way)
{
	struct ibv_qp_attr attr = {.qp_state = strcmp(way, "reset") ? IBV_QPS_ERR : IBV_QPS_RESET};

	step(await_completions() == IBV_WC_SUCCESS, "receives");
	if (!strcmp(way, "_exit"))
		_exit(0);
	if (!strcmp(way, "quick_exit"))
		quick_exit(0);
	if (!strcmp(way, "destroy"))
		step(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	else if (strcmp(way, "exit"))
		step(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), way);
	exit(0);
}

static int send_all(void)
{
	struct ibv_send_wr send = {
		.sg_list = &(struct ibv_sge){(uintptr_t)buffer, SIZE, mr->lkey}, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	for (int i = 0; i < MESSAGES; i++)
		step(!ibv_post_send(qp, &send, &bad), "ibv_post_send");
	return await_completions();
}

/* In a child of its own, so that neither has anything of the run before. */
static pid_t start(char **arguments, int fd, int other, int receives)
{
	const pid_t child = fork();

	if (child)
		return child;
	close(other);
	alarm(SECONDS);
	open_device(arguments[1]);
	connect_by_number(fd, atoi(arguments[2]));
	if (receives)
		receive_and_go(arguments[3]);
	_exit(send_all());
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc != 5)
		return 2;
	for (int run = 0; run < atoi(argv[4]); run++) {
		int pair[2], sent = 0, received = 0;

		step(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
		const pid_t receiver = start(argv, pair[0], pair[1], 1), sender = start(argv, pair[1], pair[0], 0);

		close(pair[0]);
		close(pair[1]);
		step(receiver > 0 && sender > 0, "fork");
		step(waitpid(receiver, &received, 0) > 0 && waitpid(sender, &sent, 0) > 0, "waitpid");
		failed += sent || received;
		if (sent || received)
			printf("run %d: receiver ended with 0x%x, sender with 0x%x\n", run, received, sent);
	}
	printf("%s: %d of %s failed\n", argv[3], failed, argv[4]);
	return failed > 0;
}
