/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two programs that connect without rdma_cm: they tell each other their queue pair numbers and GIDs over a TCP
 * socket of their own. The client writes a text into the server's memory and then sends an empty message, which
 * says that the text is there.
 *
 *   numbers DEVICE GID-INDEX PORT                 the server
 *   numbers DEVICE GID-INDEX PORT HOST TEXT       the client
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SIZE = 256 };

/* Both ends are the same program here; others would have to agree about byte order. */
struct end {
	uint32_t qp_num, psn, rkey;
	uint64_t address;
	union ibv_gid gid;
};

static char memory[SIZE];

static void require(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "numbers: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Of calls that return the error. */
static void must(int error, const char *what)
{
	errno = error;
	require(error == 0, what);
}

static int tcp(const char *host, const char *port)
{
	struct addrinfo hints = {.ai_flags = host ? 0 : AI_PASSIVE, .ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	int on = 1, fd, peer;

	require(getaddrinfo(host, port, &hints, &found) == 0, "getaddrinfo");
	fd = socket(found->ai_family, found->ai_socktype, 0);
	require(fd >= 0, "socket");
	if (host) {
		require(connect(fd, found->ai_addr, found->ai_addrlen) == 0, "connect");
		freeaddrinfo(found);
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	require(bind(fd, found->ai_addr, found->ai_addrlen) == 0, "bind");
	require(listen(fd, 1) == 0, "listen");
	freeaddrinfo(found);
	peer = accept(fd, NULL, NULL);
	require(peer >= 0, "accept");
	close(fd);
	return peer;
}

static struct ibv_context *open_device(const char *name)
{
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_context *context = NULL;

	for (int i = 0; list && i < count; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	require(context != NULL, name);
	ibv_free_device_list(list);
	return context;
}

static void connect_qp(struct ibv_qp *qp, const struct end *own, const struct end *peer, int gid_index)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1,
			    .grh = {.dgid = peer->gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64}},
	};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
				  .sq_psn = own->psn, .max_rd_atomic = 1};

	must(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	must(ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
	must(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					     IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

static void await_completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int count;

	while ((count = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	require(count == 1, "ibv_poll_cq");
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "numbers: %s\n", ibv_wc_status_str(wc.status));
		exit(1);
	}
}

int main(int argc, char **argv)
{
	const int is_client = argc == 6;

	if (argc != 4 && argc != 6) {
		fprintf(stderr, "usage: numbers DEVICE GID-INDEX PORT [HOST TEXT]\n");
		return 2;
	}
	const int gid_index = atoi(argv[2]);
	struct ibv_context *context = open_device(argv[1]);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	require(pd != NULL, "ibv_alloc_pd");
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	require(mr != NULL, "ibv_reg_mr");
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	require(cq != NULL, "ibv_create_cq");
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 2, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);
	require(qp != NULL, "ibv_create_qp");

	struct end own = {.qp_num = qp->qp_num, .psn = (uint32_t)getpid() & 0xffffff, .rkey = mr->rkey,
			  .address = (uintptr_t)memory}, peer;
	must(ibv_query_gid(context, 1, gid_index, &own.gid), "ibv_query_gid");
	const int fd = tcp(is_client ? argv[4] : NULL, argv[3]);
	require(write(fd, &own, sizeof own) == sizeof own, "write");
	require(recv(fd, &peer, sizeof peer, MSG_WAITALL) == sizeof peer, "recv");
	connect_qp(qp, &own, &peer, gid_index);

	char ready = 1;
	if (is_client) {
		/* Not before the server's receive is posted. */
		require(recv(fd, &ready, 1, MSG_WAITALL) == 1, "recv");
		snprintf(memory, SIZE, "%s", argv[5]);
		struct ibv_sge text = {(uintptr_t)memory, (uint32_t)strlen(memory) + 1, mr->lkey};
		struct ibv_send_wr tell = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
		struct ibv_send_wr put = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &text, .num_sge = 1, .next = &tell,
					  .wr.rdma = {.remote_addr = peer.address, .rkey = peer.rkey}};
		must(ibv_post_send(qp, &put, &bad), "ibv_post_send");
		await_completion(cq);
		/* Until the server has it: who destroys a queue pair takes back what has not arrived. */
		require(recv(fd, &ready, 1, MSG_WAITALL) == 1, "recv");
	} else {
		struct ibv_recv_wr wr = {0}, *bad;
		must(ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
		require(write(fd, &ready, 1) == 1, "write");
		await_completion(cq);
		printf("%s\n", memory);
		require(write(fd, &ready, 1) == 1, "write");
	}
	close(fd);
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	return 0;
}
