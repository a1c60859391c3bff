/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Sends messages from one queue pair to another, one after the other, until one does not succeed or standard input
 * ends. Prints "sends" when it has begun, and how the last one completed. For live.py.
 */
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>
#include "../misuse/misuse.h"

static struct ends ends;

static bool has_input_ended(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	char ignored;

	return poll(&input, 1, 1) != 0 && read(0, &ignored, 1) == 0;
}

int main(int argc, char **argv)
{
	struct ibv_sge to, from;
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };
	uint64_t i;

	make_ends(&ends, argc, argv, 0);
	connect_ends(&ends);
	to = piece(&ends, 0, 64);
	from = piece(&ends, 64, 64);
	for (i = 1; wc.status == IBV_WC_SUCCESS && !has_input_ended(); ++i) {
		MUST(!post_recv(ends.b, to, i));
		MUST(!post_send(ends.a, send_of(&from, i)));
		wc = next_sent(&ends);
		if (wc.status == IBV_WC_SUCCESS)
			MUST(next_received(&ends).wr_id == i);
		if (i == 1) {
			puts("sends");
			fflush(stdout);
		}
	}
	printf("ends: %s\n", ibv_wc_status_str(wc.status));
	destroy_ends(&ends);
	return 0;
}
