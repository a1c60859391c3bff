// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Many threads are the first to name an RDMA path, all at once; every one must get an answer. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8 };

static pthread_barrier_t together;

static void *touch(void *result)
{
	char text[16] = "";
	int fd;

	pthread_barrier_wait(&together);
	fd = open("/sys/class/infiniband/uiw_lo/node_type", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		*(int *)result = strcmp(text, "4: RNIC\n") == 0;
	if (fd >= 0)
		close(fd);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	int results[THREADS] = {0};
	int failed = 0;

	pthread_barrier_init(&together, NULL, THREADS);
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, touch, &results[i]) != 0)
			return 2;
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		failed += !results[i];
	}
	if (failed)
		fprintf(stderr, "%d of %d threads did not find the device\n", failed, THREADS);
	return failed != 0;
}
