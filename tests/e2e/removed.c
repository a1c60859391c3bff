/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A region is deregistered while another thread destroys the queue pair that a Write of it is posted to, and the memory
 * is used for something else then. The peer, stopped until that is done, says whether any of that has reached it.
 *
 *	removed DEVICE GID-INDEX COUNT
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The Write is more than TCP takes; the peer has not asked whether the last messages have arrived when it is stopped. */
enum { MESSAGES = 12, SIZE = 64 << 20, POSTED = 0x55, LATER = 0xaa, SECONDS = 60 };

struct address {
	union ibv_gid gid;
	uint32_t qp_num, rkey;
	uint64_t start;
};

static struct ibv_context *device;
static struct ibv_qp *qp;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static unsigned char *memory;

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

static struct address connect_by_number(int fd, int index)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 2 * MESSAGES, .max_recv_wr = MESSAGES, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_recv_wr receive = {0}, *bad;
	struct ibv_pd *pd = ibv_alloc_pd(device);
	struct address own, peer;

	step(pd && (mr = ibv_reg_mr(pd, memory, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)), "ibv_reg_mr");
	cq = ibv_create_cq(device, 3 * MESSAGES, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	step(cq && (qp = ibv_create_qp(pd, &init)), "ibv_create_qp");
	step(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	for (int i = 0; i < MESSAGES; i++)
		step(!ibv_post_recv(qp, &receive, &bad), "ibv_post_recv");
	own.qp_num = qp->qp_num;
	own.rkey = mr->rkey;
	own.start = (uintptr_t)memory;
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
		.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1,
	};
	step(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
	return peer;
}

static void post(enum ibv_wr_opcode opcode, unsigned int size, const struct address *peer)
{
	struct ibv_send_wr send = {
		.sg_list = &(struct ibv_sge){(uintptr_t)memory, size, mr->lkey}, .num_sge = size > 0,
		.opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = peer->start, .rkey = peer->rkey},
	}, *bad;

	step(!ibv_post_send(qp, &send, &bad), "ibv_post_send");
}

static void await(int count)
{
	struct ibv_wc wc;

	while (count > 0) {
		const int got = ibv_poll_cq(cq, 1, &wc);

		step(got >= 0 && (!got || wc.status == IBV_WC_SUCCESS), "a completion");
		count -= got;
	}
}

/* Stops behind its messages. Then nobody tells it that the other end has gone but a Send, when all has been received. */
static _Noreturn void be_peer(int fd, int index)
{
	const struct address peer = connect_by_number(fd, index);
	struct ibv_wc wc = {0};
	char letter;

	step(read(fd, &letter, 1) == 1, "begin");
	for (int i = 0; i < MESSAGES; i++)
		post(IBV_WR_SEND, 0, &peer);
	raise(SIGSTOP);
	step(read(fd, &letter, 1) == 0, "the end");
	post(IBV_WR_SEND, 0, &peer);
	while (wc.status == IBV_WC_SUCCESS)
		step(ibv_poll_cq(cq, 1, &wc) >= 0, "ibv_poll_cq");
	_exit(memchr(memory, LATER, SIZE) != NULL);
}

static void *destroy(void *unused)
{
	(void)unused;
	step(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	return NULL;
}

static _Noreturn void remove_region(int fd, int index, pid_t child)
{
	const struct address peer = connect_by_number(fd, index);
	pthread_t thread;
	int status;

	post(IBV_WR_RDMA_WRITE, 8, &peer);
	await(1);
	step(write(fd, "b", 1) == 1, "begin");
	step(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status), "the peer stops");
	await(1); /* those behind it may be stopped with it */
	post(IBV_WR_RDMA_WRITE, SIZE, &peer);
	step(!pthread_create(&thread, NULL, destroy, NULL), "pthread_create");
	usleep(20 * 1000); /* it has begun, mostly */
	step(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	memset(memory, LATER, SIZE);
	kill(child, SIGCONT);
	step(!pthread_join(thread, NULL), "pthread_join");
	close(fd);
	step(waitpid(child, &status, 0) == child, "waitpid");
	_exit(status != 0);
}

/* In children of their own, so that neither has anything of the run before. */
static _Noreturn void run(const char *name, int index)
{
	int pair[2];

	alarm(SECONDS);
	step(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	step(memory != MAP_FAILED, "mmap");
	const pid_t child = fork();

	step(child >= 0, "fork");
	close(pair[child ? 1 : 0]);
	open_device(name);
	if (!child)
		be_peer(pair[1], index);
	memset(memory, POSTED, SIZE);
	remove_region(pair[0], index, child);
}

int main(int argc, char **argv)
{
	int failed = 0, status;

	if (argc != 4)
		return 2;
	for (int i = 0; i < atoi(argv[3]); i++) {
		const pid_t child = fork();

		if (!child)
			run(argv[1], atoi(argv[2]));
		step(child > 0 && waitpid(child, &status, 0) == child, "a run");
		failed += status != 0;
	}
	printf("%d of %s failed\n", failed, argv[3]);
	return failed > 0;
}
