/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Its threads all end by pthread_exit() or by returning, main()'s first, and the device stays open. As without a
 * device the process ends with status 0 and its exit handlers run, once the last thread has ended.
 *
 *	ending alone    main() opens the device; there is no other thread
 *	ending main     main() opens it, the other thread goes on
 *	ending worker   the other thread opens it and goes on
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0] || !ibv_open_device(list[0])) {
		puts("no device");
		_exit(1);
	}
	ibv_free_device_list(list);
}

static void *work(void *opens)
{
	if (opens)
		open_device();
	usleep(300 * 1000); /* main()'s thread has ended, or will within this */
	puts("the worker ends");
	fflush(stdout);
	return NULL;
}

static void handler(void)
{
	puts("exit handlers run");
}

int main(int argc, char **argv)
{
	const char *who = argc == 2 ? argv[1] : "";
	pthread_t thread;

	alarm(30);
	atexit(handler);
	if (strcmp(who, "worker"))
		open_device();
	if (strcmp(who, "alone") && pthread_create(&thread, NULL, work, strcmp(who, "worker") ? NULL : argv[1]))
		return 1;
	pthread_exit(NULL);
}
