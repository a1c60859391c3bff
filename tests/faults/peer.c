/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A receive of one queue pair fails by a rule; the other one, connected by number, sends until it finds out. Prints how
 * that receive completes, the Send that finds out, and one behind it. For run.py.
 */
#include "../misuse/misuse.h"

static struct ends ends;

/* A Send from `a`, and how it completes. */
static enum ibv_wc_status send_one(void)
{
	struct ibv_sge word = piece(&ends, 0, 8);

	MUST(!post_send(ends.a, send_of(&word, 1)));
	return next_sent(&ends).status;
}

int main(int argc, char **argv)
{
	enum ibv_wc_status status;

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	MUST(!post_recv(ends.b, piece(&ends, 64, 8), 1));
	MUST(send_one() == IBV_WC_SUCCESS);
	puts(ibv_wc_status_str(next_received(&ends).status));
	/* One that leaves before the end of the connection has come completes when it is sent (RFC 5040, 5.5). */
	do
		status = send_one();
	while (status == IBV_WC_SUCCESS);
	puts(ibv_wc_status_str(status));
	puts(ibv_wc_status_str(send_one()));
	destroy_ends(&ends);
	return 0;
}
