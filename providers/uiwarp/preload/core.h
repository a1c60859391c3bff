/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The way to libuiwarp.so.0, which is loaded when the program first names an RDMA path: a program
 * that never does pays a comparison of a few octets per call and nothing else.
 */
#ifndef UIWARP_CORE_H
#define UIWARP_CORE_H

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "real_calls.h"
#include "uiwarp/uiwarp-abi.h"

/* The entry points of libuiwarp.so.0. */
struct core {
	int (*redirect)(const char *path, char *out, size_t out_size);
	size_t (*root_length)(const char *path);
	int (*open)(const char *path, int flags);
	const uint8_t *(*fd_flags)(void);
	ssize_t (*write)(int fd, const void *buffer, size_t size, int *handled);
	int (*copy_in)(void *to, const void *from, size_t size);
	int (*socket)(int type);
	ssize_t (*send)(int fd, const void *buffer, size_t size, const struct sockaddr *address,
			socklen_t address_size, int *handled);
	int (*ioctl)(int fd, unsigned long request, void *argument, int *handled);
	int (*keeps)(int fd);
	void (*closing)(int fd);
	void (*fix_stat)(int fd, struct stat *st);
	void (*dup)(int fd, int copy);
	void (*leave)(void);
};

/* Loads it if need be; NULL (said once on standard error) when it cannot be loaded. Keeps errno. */
const struct core *load_core(void);
/* Without loading: only for descriptors flagged below, which it has made. */
const struct core *loaded_core(void);

/* UIWARP_VK_FDS octets, non-zero for virtual devices and for what the stack has opened for itself. */
extern const uint8_t *descriptor_flags;

static inline uint8_t descriptor_flag(int fd)
{
	const uint8_t *flags = __atomic_load_n(&descriptor_flags, __ATOMIC_ACQUIRE);

	return (unsigned)fd < UIWARP_VK_FDS ? __atomic_load_n(&flags[fd], __ATOMIC_RELAXED) : 0;
}

/* For what takes a number away: the stack's own are protected too. */
static inline bool is_ours(int fd)
{
	return descriptor_flag(fd) != 0;
}

/*
 * For what reads, writes and copies. Libraries do that for the stack on its own descriptors, while it holds locks
 * that come behind the table's of devices.
 */
static inline bool is_device(int fd)
{
	return descriptor_flag(fd) == UIWARP_VK_FD_DEVICE;
}

#define STARTS_WITH(path, literal) (strncmp(path, literal, sizeof(literal) - 1) == 0)

/* Whether a path has "//", "/." or "/.." on the way to what may be an RDMA path. One scan for those that have not. */
bool may_lead_to_rdma(const char *path);

/* Those that the core has to look at; it says which of them are. */
static inline bool is_rdma_path(const char *path)
{
	/*
	 * libc declares most of these arguments non-null, and a hook must hand on the NULL of a broken
	 * program: without this the compiler would drop the comparison.
	 */
	__asm__("" : "+r"(path));
	if (!path || path[0] != '/')
		return false;
	if (path[1] == 's' &&
	    (STARTS_WITH(path, "/sys/class/infiniband") || STARTS_WITH(path, "/sys/class/misc/rdma_cm")))
		return true;
	if (path[1] == 'd' && STARTS_WITH(path, "/dev/infiniband"))
		return true;
	return may_lead_to_rdma(path);
}

/* A command is one message, so it has to be in one piece. None is longer than this. */
enum { LONGEST_COMMAND = 4096 };

/* The parts of a message in one piece, and its length; or -EMSGSIZE, -EFAULT. */
ssize_t in_one_piece(const struct iovec *parts, size_t count, char command[LONGEST_COMMAND]);

/* `path`, or where it leads, in `buffer` of PATH_MAX octets. Keeps errno. */
const char *redirect_into(const char *path, char *buffer);

/* `place`, which is shortened in place where it lies in the tree, as the program knows it. NULL stays NULL. */
char *as_known(char *place);

/* The path to hand to the real call. Takes stack for the result only when there may be one, and not while it loads. */
#define REDIRECTED(path)                                                                           \
	(is_rdma_path(path) && load_core() ? redirect_into((path), __builtin_alloca(PATH_MAX)) : (path))

#endif
