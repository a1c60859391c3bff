/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A receiver that goes as soon as it has all messages, in each way that a program has, again and again; the sender
 * says whether all of them have completed well.
 *
 *	going DEVICE GID-INDEX WAY COUNT    WAY: destroy, reset, error, exit, quick_exit, _exit
 */
#include <sys/socket.h>
#include <sys/wait.h>

#include "by_number.h"

/* More messages than are asked for at once: each is posted by itself. */
enum { SECONDS = 60, TIMEOUT = 14 };

static char buffer[MESSAGE_SIZE];

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
		.sg_list = &(struct ibv_sge){(uintptr_t)buffer, MESSAGE_SIZE, mr->lkey}, .num_sge = 1,
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
	connect_by_number(fd, atoi(arguments[2]), buffer, sizeof(buffer), TIMEOUT);
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
