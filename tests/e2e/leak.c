// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Counts descriptors and threads of this process before and after devices and connections came and
 * went. The first cycle of each kind may take something for good (a library keeps its descriptors);
 * from then on every cycle must give back all it took.
 */
#include "leak.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CYCLES = 20, WAIT_MS = 5000 };

static int entries(const char *path)
{
	DIR *directory = opendir(path);
	int count = 0;

	if (!directory)
		return -1;
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void list_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		char path[300], target[300];
		ssize_t size;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		size = readlink(path, target, sizeof(target) - 1);
		if (size > 0)
			printf("  %s -> %.*s\n", entry->d_name, (int)size, target);
	}
	if (directory)
		closedir(directory);
}

/* A thread's entry may outlive its join by a moment: ask again until it is gone or time is up. */
static int settles(const char *path, int wanted)
{
	const struct timespec pause = { .tv_nsec = 5000000 };

	for (int waited = 0; waited < WAIT_MS; waited += 5) {
		if (entries(path) <= wanted)
			return 1;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/*
 * Numbers that are closed and that the library still takes for its own: the program's next file may have
 * them, and could not be closed.
 */
static int count_stale(void)
{
	void *core = dlopen("libuiwarp.so.0", RTLD_NOW | RTLD_NOLOAD);
	const uint8_t *(*uses)(void) = core ? (const uint8_t *(*)(void))dlsym(core, "uiwarp_vk_fd_flags") : NULL;
	int stale = 0;

	if (!uses)
		return -1;
	for (int fd = 0; fd < 1024; fd++)
		stale += uses()[fd] != 0 && fcntl(fd, F_GETFD) < 0;
	dlclose(core);
	return stale;
}

static int check(const char *name, int (*cycle)(void))
{
	int files, threads;

	if (cycle())
		return 1;
	files = entries("/proc/self/fd");
	threads = entries("/proc/self/task");
	for (int i = 0; i < CYCLES; i++) {
		if (cycle())
			return 1;
	}
	if (!settles("/proc/self/fd", files) || !settles("/proc/self/task", threads)) {
		printf("%s: after %d cycles %d descriptors (%d before), %d threads (%d before)\n", name, CYCLES,
		       entries("/proc/self/fd") - 2, files - 2, entries("/proc/self/task") - 2, threads - 2);
		list_descriptors();
		return 1;
	}
	if (count_stale() != 0) {
		printf("%s: %d closed descriptors are taken for open ones\n", name, count_stale());
		return 1;
	}
	printf("%s: %d cycles, %d descriptors and %d threads before and after\n", name, CYCLES, files - 2, threads - 2);
	return 0;
}

/* Queue pair and friends on one device. */
static int use_device(struct ibv_context *context)
{
	static char buffer[4096];
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_mr *mr = pd ? ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE) : NULL;
	struct ibv_cq *cq = channel ? ibv_create_cq(context, 8, NULL, channel, 0) : NULL;
	struct ibv_qp *qp;
	int bad;

	attr.send_cq = attr.recv_cq = cq;
	qp = pd && cq ? ibv_create_qp(pd, &attr) : NULL;
	bad = !qp || !mr;
	bad |= qp && ibv_destroy_qp(qp);
	bad |= cq && ibv_destroy_cq(cq);
	bad |= mr && ibv_dereg_mr(mr);
	bad |= pd && ibv_dealloc_pd(pd);
	bad |= channel && ibv_destroy_comp_channel(channel);
	return bad;
}

int leak_cycle_device(void)
{
	int count = 0, bad = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	for (int i = 0; i < count && !bad; i++) {
		struct ibv_context *context = ibv_open_device(list[i]);

		bad = !context;
		if (context) {
			bad |= use_device(context);
			bad |= ibv_close_device(context);
		}
	}
	if (list)
		ibv_free_device_list(list);
	if (bad || count == 0) {
		perror("open, use and close every device");
		return 1;
	}
	return 0;
}

int main(void)
{
	int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	failed |= check("open and close a device", leak_cycle_device);
	failed |= check("listen", leak_cycle_listen);
	failed |= check("connect and disconnect", leak_cycle_connect);
	failed |= check("destroy a listener with a pending request", leak_cycle_pending);
	failed |= check("reject with private data", leak_cycle_reject);
	return failed;
}
