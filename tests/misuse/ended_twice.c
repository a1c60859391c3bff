/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A protection domain is deallocated before what is made of it; and three threads end the process, by exit() and by the
 * return of main(), while the first one runs an exit handler. It waits there until the others sleep, or have ended the
 * process.
 * Finding: destroy-order
 */
#define _GNU_SOURCE /* gettid() */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "misuse.h"

enum { MAIN, OTHER, LATE };
static atomic_int thread_of[LATE], is_ending;

/* 'S': it sleeps. */
static char state_of(int tid)
{
	char path[64], line[512] = "";
	const char *name_end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	MUST(file = fopen(path, "r"));
	MUST(fgets(line, sizeof(line), file));
	fclose(file);
	MUST(name_end = strrchr(line, ')'));
	return name_end[2];
}

static void wait_for_the_others(void)
{
	is_ending = 1;
	for (int i = 0; i < LATE; ++i)
		while (!thread_of[i] || state_of(thread_of[i]) != 'S')
			sched_yield();
}

/* Does not sleep before it ends the process. */
static void wait_for_the_first(int which)
{
	thread_of[which] = gettid();
	while (!is_ending)
		;
}

static void *end_first(void *unused)
{
	(void)unused;
	while (!thread_of[MAIN] || !thread_of[OTHER])
		sched_yield();
	exit(0);
}

static void *end_later(void *unused)
{
	(void)unused;
	wait_for_the_first(OTHER);
	exit(3);
}

int main(int argc, char **argv)
{
	static struct ends ends;
	pthread_t threads[2];

	make_ends(&ends, argc, argv, 0);
	if (!clean)
		MUST(ibv_dealloc_pd(ends.pd) != 0);
	destroy_ends(&ends);
	MUST(!atexit(wait_for_the_others));
	MUST(!pthread_create(&threads[0], NULL, end_later, NULL));
	MUST(!pthread_create(&threads[1], NULL, end_first, NULL));
	wait_for_the_first(MAIN);
	return 4;
}
