/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A log that is replicated by RDMA Writes: the leader writes each entry into the follower's memory, and the follower
 * applies it. It takes an entry for whole when its last field is set. Clean, the leader writes with immediate data, and
 * the follower applies what a completion tells of. doc/testing-your-program.md tells how that was found.
 */
#include "../misuse/misuse.h"

#include <pthread.h>
#include <stdatomic.h>

struct entry {
	uint64_t index;
	uint64_t amount;
	char what[104];
	uint64_t is_whole; /* index + 1 */
};

#define SLOTS (SIZE / 2 / sizeof(struct entry))
#define ENTRIES 60

static struct ends ends;
static atomic_ulong applied;

static struct entry *slot_of(char *log, uint64_t index)
{
	return (struct entry *)log + index % SLOTS;
}

static void *lead(void *unused)
{
	for (uint64_t i = 0; i < ENTRIES; i++) {
		struct entry *mine = slot_of(ends.memory, i), *theirs = slot_of(ends.memory + SIZE / 2, i);
		struct ibv_sge sge = { .addr = (uintptr_t)mine, .length = sizeof *mine, .lkey = ends.mr->lkey };
		struct ibv_send_wr write = send_of(&sge, i);

		*mine = (struct entry){ .index = i, .amount = 3 * i, .is_whole = i + 1 };
		snprintf(mine->what, sizeof mine->what, "deposit %llu", (unsigned long long)i);
		write.opcode = clean ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
		write.wr.rdma.remote_addr = (uintptr_t)theirs;
		write.wr.rdma.rkey = ends.mr->rkey;
		MUST(!post_send(ends.a, write));
		MUST(next_sent(&ends).status == IBV_WC_SUCCESS);
		while (atomic_load(&applied) <= i)
			sched_yield();
	}
	return unused;
}

static void await(const struct entry *entry, uint64_t index)
{
	const time_t end = time(NULL) + 60;

	if (clean) {
		MUST(next_received(&ends).status == IBV_WC_SUCCESS);
		return;
	}
	while (__atomic_load_n(&entry->is_whole, __ATOMIC_ACQUIRE) != index + 1)
		MUST(time(NULL) < end);
}

int main(int argc, char **argv)
{
	uint64_t balance = 0;
	pthread_t leader;

	make_ends(&ends, argc, argv, IBV_ACCESS_REMOTE_WRITE);
	connect_ends(&ends);
	if (clean)
		MUST(!post_recv(ends.b, piece(&ends, 0, 0), 0));
	MUST(!pthread_create(&leader, NULL, lead, NULL));
	for (uint64_t i = 0; i < ENTRIES; i++) {
		const struct entry *entry = slot_of(ends.memory + SIZE / 2, i);

		await(entry, i);
		MUST(entry->index == i);
		balance += entry->amount;
		if (clean)
			MUST(!post_recv(ends.b, piece(&ends, 0, 0), 0));
		atomic_store(&applied, i + 1);
	}
	MUST(balance == 3ull * ENTRIES * (ENTRIES - 1) / 2);
	MUST(!pthread_join(leader, NULL));
	destroy_ends(&ends);
	return 0;
}
