/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A region is deregistered while another thread destroys the queue pair that a Write of it is posted to, and the memory
 * is used for something else then. The peer, stopped until that is done, says whether any of that has reached it.
 *
 *	removed DEVICE GID-INDEX COUNT
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "by_number.h"

/* The Write is more than TCP takes; the peer has not asked whether the last messages have arrived when it is stopped. */
enum { SIZE = 64 << 20, POSTED = 0x55, LATER = 0xaa, SECONDS = 60, TIMEOUT = 18 };

static unsigned char *memory;

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
	const struct address peer = connect_by_number(fd, index, memory, SIZE, TIMEOUT);
	struct ibv_wc wc = {0};
	char letter;

	step(read(fd, &letter, 1) == 1, "begin");
	post(IBV_WR_SEND, 0, &peer);
	await(1); /* of the others some may be stopped with it */
	for (int i = 1; i < MESSAGES; i++)
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
	const struct address peer = connect_by_number(fd, index, memory, SIZE, TIMEOUT);
	pthread_t thread;
	int status;

	post(IBV_WR_RDMA_WRITE, 8, &peer);
	await(1);
	step(write(fd, "b", 1) == 1, "begin");
	step(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status), "the peer stops");
	await(1);
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
