/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* open, openat and fopen: device nodes become virtual devices, other RDMA paths files of the tree. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "core.h"

enum { NOT_A_DEVICE = -2, REFUSED = -1 };

/* For a path that is_rdma_path(): a descriptor, REFUSED with errno set, or NOT_A_DEVICE. */
static int open_device(const char *path, int flags)
{
	const struct core *use = load_core();

	return use ? use->open(path, flags) : NOT_A_DEVICE;
}

/*
 * For what is no device: NOT_A_DEVICE, then *path is what to open, or REFUSED. What the kernel shows there cannot be
 * written to, not even by root (EACCES), and our tree must not change.
 */
static int look_in_tree(const char **path, int flags, char *buffer)
{
	*path = redirect_into(*path, buffer);
	if (*path == buffer && ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)))) {
		errno = EACCES;
		return REFUSED;
	}
	return NOT_A_DEVICE;
}

#define OPEN_RDMA(path, flags)                                                                     \
	do {                                                                                       \
		if (__builtin_expect(is_rdma_path(path), 0)) {                                     \
			int opened = open_device(path, flags);                                     \
			if (opened == NOT_A_DEVICE)                                                \
				opened = look_in_tree(&path, flags, __builtin_alloca(PATH_MAX));   \
			if (opened != NOT_A_DEVICE)                                                \
				return opened;                                                     \
		}                                                                                  \
	} while (0)

#define MODE_ARGUMENT(mode, flags)                                                                 \
	mode_t mode = 0;                                                                           \
	if (__OPEN_NEEDS_MODE(flags)) {                                                            \
		va_list arguments;                                                                 \
		va_start(arguments, flags);                                                        \
		mode = va_arg(arguments, mode_t);                                                  \
		va_end(arguments);                                                                 \
	}

HOOK int open(const char *path, int flags, ...)
{
	MODE_ARGUMENT(mode, flags)
	OPEN_RDMA(path, flags);
	return real()->open(path, flags, mode);
}

HOOK int open64(const char *path, int flags, ...)
{
	MODE_ARGUMENT(mode, flags)
	OPEN_RDMA(path, flags);
	return real()->open64(path, flags, mode);
}

HOOK int openat(int directory, const char *path, int flags, ...)
{
	MODE_ARGUMENT(mode, flags)
	OPEN_RDMA(path, flags);
	return real()->openat(directory, path, flags, mode);
}

HOOK int openat64(int directory, const char *path, int flags, ...)
{
	MODE_ARGUMENT(mode, flags)
	OPEN_RDMA(path, flags);
	return real()->openat64(directory, path, flags, mode);
}

/* What the fortified headers make of the above. */

HOOK int __open_2(const char *path, int flags)
{
	OPEN_RDMA(path, flags);
	return real()->__open_2(path, flags);
}

HOOK int __open64_2(const char *path, int flags)
{
	OPEN_RDMA(path, flags);
	return real()->__open64_2(path, flags);
}

HOOK int __openat_2(int directory, const char *path, int flags)
{
	OPEN_RDMA(path, flags);
	return real()->__openat_2(directory, path, flags);
}

HOOK int __openat64_2(int directory, const char *path, int flags)
{
	OPEN_RDMA(path, flags);
	return real()->__openat64_2(directory, path, flags);
}

/* ---- stdio ---- */

/* Whether fopen() would open for writing. What follows a comma is not about that ("r,ccs=..."). */
static bool writes(const char *mode)
{
	const char *found = mode ? strpbrk(mode, "wa+,") : NULL;

	return found && *found != ',';
}

/* A counter of a port is made when it is opened; NULL: path is none. */
static FILE *open_counter(const char *path, const char *mode)
{
	const struct core *use;
	FILE *stream;
	int fd;

	if (__builtin_expect(!is_rdma_path(path), 1) || !mode || !strstr(path, "counters/") || writes(mode))
		return NULL;
	use = load_core();
	fd = use ? use->open(path, strchr(mode, 'e') ? O_RDONLY | O_CLOEXEC : O_RDONLY) : NOT_A_DEVICE;
	if (fd < 0)
		return NULL;
	stream = fdopen(fd, mode);
	if (!stream)
		close(fd);
	return stream;
}

/* Reading only, for the reason given at open_rdma(). */
HOOK FILE *fopen(const char *restrict path, const char *restrict mode)
{
	FILE *counter = open_counter(path, mode);
	const char *redirected = REDIRECTED(path);

	if (counter)
		return counter;
	if (redirected != path && writes(mode)) {
		errno = EACCES;
		return NULL;
	}
	return real()->fopen(redirected, mode);
}

HOOK FILE *fopen64(const char *restrict path, const char *restrict mode)
{
	FILE *counter = open_counter(path, mode);
	const char *redirected = REDIRECTED(path);

	if (counter)
		return counter;
	if (redirected != path && writes(mode)) {
		errno = EACCES;
		return NULL;
	}
	return real()->fopen64(redirected, mode);
}

/* A freopen() that fails has closed the stream all the same. */
HOOK FILE *freopen(const char *restrict path, const char *restrict mode, FILE *restrict stream)
{
	const char *redirected = REDIRECTED(path);

	if (redirected != path && writes(mode)) {
		fclose(stream);
		errno = EACCES;
		return NULL;
	}
	return real()->freopen(redirected, mode, stream);
}

HOOK FILE *freopen64(const char *restrict path, const char *restrict mode, FILE *restrict stream)
{
	const char *redirected = REDIRECTED(path);

	if (redirected != path && writes(mode)) {
		fclose(stream);
		errno = EACCES;
		return NULL;
	}
	return real()->freopen64(redirected, mode, stream);
}
