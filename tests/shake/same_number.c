/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Keeps what it knows of its queue pairs in a table by number, and leaves there what is gone: no new queue pair has an
 * old number, it thinks. Clean, it takes the entry out when it destroys the queue pair.
 */
#include "../misuse/misuse.h"

#define ROUNDS 8

static struct ends ends;
static uint32_t known[ROUNDS];

static void learn(uint32_t number, int round)
{
	for (int i = 0; i < round; i++)
		MUST(known[i] != number);
	known[round] = number;
}

int main(int argc, char **argv)
{
	make_ends(&ends, argc, argv, 0);
	for (int round = 0; round < ROUNDS; round++) {
		struct ibv_qp *qp = make_qp(&ends, 0);

		learn(qp->qp_num, round);
		MUST(!ibv_destroy_qp(qp));
		if (clean)
			known[round] = 0;
	}
	destroy_ends(&ends);
	return 0;
}
