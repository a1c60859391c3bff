// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The first to name an RDMA path is a thread with the smallest stack there is. Each way in a process of its own. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEVICE "/sys/class/infiniband/uiw_lo"

static bool open_file(void)
{
	return close(open(DEVICE "/node_type", O_RDONLY | O_CLOEXEC)) == 0;
}

static bool open_counter(void)
{
	return close(open(DEVICE "/ports/1/hw_counters/bytes_sent", O_RDONLY | O_CLOEXEC)) == 0;
}

static bool open_channel(void)
{
	return close(open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC)) == 0;
}

static bool open_list(void)
{
	DIR *list = opendir("/sys/class/infiniband");

	return list && closedir(list) == 0;
}

static bool ask(void)
{
	struct stat status;

	return stat(DEVICE, &status) == 0 && access("/dev/infiniband", R_OK) == 0;
}

static const struct way {
	bool (*go)(void);
} ways[] = {{open_file}, {open_counter}, {open_channel}, {open_list}, {ask}};

static bool found;

static void *go(void *way)
{
	found = ((const struct way *)way)->go();
	return NULL;
}

int main(void)
{
	int failed = 0;

	for (unsigned way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
		const pid_t child = fork();
		int status = -1;

		if (child == 0) {
			pthread_attr_t attributes;
			pthread_t thread;

			pthread_attr_init(&attributes);
			pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
			if (pthread_create(&thread, &attributes, go, (void *)&ways[way]) != 0)
				_exit(2);
			pthread_join(thread, NULL);
			_exit(!found);
		}
		waitpid(child, &status, 0);
		if (status != 0) {
			fprintf(stderr, "way %u: status %#x\n", way, (unsigned)status);
			failed++;
		}
	}
	return failed != 0;
}
