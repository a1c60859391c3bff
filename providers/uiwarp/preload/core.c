/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "core.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIBRARY "libuiwarp.so.0"

static uint8_t no_descriptors[UIWARP_VK_FDS];
const uint8_t *descriptor_flags = no_descriptors;

static struct core core;
enum { UNKNOWN, LOADED, UNUSABLE };
static int state = UNKNOWN;

/* The provider looks for this name: without the hooks its devices could not be used. */
__attribute__((visibility("default"))) const int uiwarp_preload_active = UIWARP_ABI_VERSION;

/* One line on standard error, by the system call: write() is one of our hooks. */
__attribute__((format(printf, 1, 2))) static void complain_once(const char *format, ...)
{
	static int done;
	char line[1024];
	va_list arguments;
	int size;

	if (__atomic_exchange_n(&done, 1, __ATOMIC_RELAXED))
		return;
	va_start(arguments, format);
	size = vsnprintf(line, sizeof(line) - 1, format, arguments);
	va_end(arguments);
	if (size < 0)
		return;
	if ((size_t)size > sizeof(line) - 2)
		size = sizeof(line) - 2;
	line[size++] = '\n';
	(void)!syscall(SYS_write, STDERR_FILENO, line, size);
}

/*
 * The path of the library beside this one, so that the three parts of one build stay together. NULL: not known.
 * Not on the stack, of which a thread may have 16 KiB in all: dlopen() needs half of that.
 */
static char *path_beside_us(void)
{
	Dl_info info;
	const char *slash;
	char *path;

	if (!dladdr(no_descriptors, &info) || !info.dli_fname)
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	if (!slash)
		return NULL;
	return asprintf(&path, "%.*s/" LIBRARY, (int)(slash - info.dli_fname), info.dli_fname) < 0 ? NULL : path;
}

static bool find_functions(void *library, struct core *found)
{
	int (*abi_version)(void) = (int (*)(void))dlsym(library, "uiwarp_abi_version");

	if (!abi_version || abi_version() != UIWARP_ABI_VERSION) {
		complain_once("uiwarp: " LIBRARY " and libuiwarp-preload.so are not of the same "
			      "version; install uiwarp again. No RDMA device is offered.");
		return false;
	}
#define FIND(field, name) (*(void **)&found->field = dlsym(library, name))
	if (FIND(redirect, "uiwarp_vk_redirect") && FIND(root_length, "uiwarp_vk_root_length") &&
	    FIND(open, "uiwarp_vk_open") && FIND(fd_flags, "uiwarp_vk_fd_flags") &&
	    FIND(write, "uiwarp_vk_write") && FIND(copy_in, "uiwarp_vk_copy_in") && FIND(socket, "uiwarp_vk_socket") &&
	    FIND(send, "uiwarp_vk_send") && FIND(ioctl, "uiwarp_vk_ioctl") && FIND(keeps, "uiwarp_vk_keeps") &&
	    FIND(closing, "uiwarp_vk_closing") &&
	    FIND(fix_stat, "uiwarp_vk_fix_stat") && FIND(dup, "uiwarp_vk_dup") && FIND(leave, "uiwarp_vk_leave"))
		return true;
#undef FIND
	complain_once("uiwarp: " LIBRARY " is incomplete; install uiwarp again. "
		      "No RDMA device is offered.");
	return false;
}

/*
 * No lock of ours is held: dlopen() takes the loader's, and a constructor that another thread runs
 * under that may come here too. Threads that meet here all find the same.
 */
static void load(void)
{
	char *path = path_beside_us();
	struct core found;
	void *library;

	/* Without a directory in our own name the loader's search path has to do. */
	library = dlopen(path ? path : LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	free(path);
	if (!library) {
		complain_once("uiwarp: cannot load " LIBRARY " (%s); no RDMA device is offered. "
			      "Run `uiwarp doctor` to see what is missing.",
			      dlerror());
	} else if (find_functions(library, &found)) {
		/* Every thread stores the same values, and none reads before one has stored them all. */
#define PUBLISH(field) __atomic_store_n(&core.field, found.field, __ATOMIC_RELAXED)
		PUBLISH(redirect);
		PUBLISH(root_length);
		PUBLISH(open);
		PUBLISH(fd_flags);
		PUBLISH(write);
		PUBLISH(copy_in);
		PUBLISH(socket);
		PUBLISH(send);
		PUBLISH(ioctl);
		PUBLISH(keeps);
		PUBLISH(closing);
		PUBLISH(fix_stat);
		PUBLISH(dup);
		PUBLISH(leave);
#undef PUBLISH
		__atomic_store_n(&descriptor_flags, found.fd_flags(), __ATOMIC_RELEASE);
		__atomic_store_n(&state, LOADED, __ATOMIC_RELEASE);
		return;
	}
	__atomic_store_n(&state, UNUSABLE, __ATOMIC_RELEASE);
}

const struct core *loaded_core(void)
{
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == LOADED ? &core : NULL;
}

const struct core *load_core(void)
{
	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == UNKNOWN) {
		const int saved = errno;
		int cancelled;

		/* A thread that ended within dlopen() would keep the loader's lock. */
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelled);
		load();
		pthread_setcancelstate(cancelled, NULL);
		errno = saved;
	}
	return loaded_core();
}

bool may_lead_to_rdma(const char *path)
{
	const char *at = path;

	while (at[0] && !(at[0] == '/' && (at[1] == '/' || at[1] == '.')))
		at++;
	/* The rest is so that no other program loads the core. */
	return at[0] && (strstr(path, "infiniband") || strstr(path, "rdma_cm")) &&
	       (strstr(path, "sys/") || strstr(path, "dev/"));
}

const char *redirect_into(const char *path, char *buffer)
{
	const struct core *use = load_core();
	const int saved = errno;
	const bool ours = use && use->redirect(path, buffer, PATH_MAX) == 1;

	errno = saved;
	return ours ? buffer : path;
}

/* A program that was started in the tree, and has not named an RDMA path yet, sees where it lies. */
char *as_known(char *place)
{
	const struct core *use = loaded_core();
	const size_t length = use && place ? use->root_length(place) : 0;

	return length > 0 ? memmove(place, place + length, strlen(place + length) + 1) : place;
}
