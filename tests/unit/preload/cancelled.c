// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The first to name an RDMA path is a thread that is about to be cancelled: the loader's lock must not go with it. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { HANGS = 60 }; /* seconds; SIGALRM ends the process then */

static int open_channel(void)
{
	return open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
}

static void *go(void *unused)
{
	pthread_cancel(pthread_self());
	open_channel();
	return unused;
}

int main(void)
{
	pthread_t thread;

	alarm(HANGS);
	if (pthread_create(&thread, NULL, go, NULL) || pthread_join(thread, NULL))
		return 1;
	const int fd = open_channel();

	printf("behind a cancelled thread: %s\n", fd >= 0 ? "opened" : "not there");
	return fd < 0;
}
