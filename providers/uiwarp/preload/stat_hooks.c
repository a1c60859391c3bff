/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* stat and access in all their forms. */
#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core.h"

HOOK int stat(const char *restrict path, struct stat *restrict st)
{
	return real()->stat(REDIRECTED(path), st);
}

HOOK int stat64(const char *restrict path, struct stat64 *restrict st)
{
	return real()->stat64(REDIRECTED(path), st);
}

HOOK int lstat(const char *restrict path, struct stat *restrict st)
{
	return real()->lstat(REDIRECTED(path), st);
}

HOOK int lstat64(const char *restrict path, struct stat64 *restrict st)
{
	return real()->lstat64(REDIRECTED(path), st);
}

/* The descriptor of a virtual device has to look like a character device. */
static int fixed(int result, int fd, void *st)
{
	if (result == 0 && is_device(fd))
		loaded_core()->fix_stat(fd, st);
	return result;
}

HOOK int fstat(int fd, struct stat *st)
{
	return fixed(real()->fstat(fd, st), fd, st);
}

HOOK int fstat64(int fd, struct stat64 *st)
{
	return fixed(real()->fstat64(fd, st), fd, st);
}

/* Whether a descriptor itself is asked about. NULL is as good as "" since Linux 6.11. */
static bool names_descriptor(const char *path, int flags)
{
	__asm__("" : "+r"(path)); /* why: is_rdma_path() */
	return (flags & AT_EMPTY_PATH) && (!path || !path[0]);
}

static int fixed_at(int result, int fd, const char *path, void *st, int flags)
{
	if (names_descriptor(path, flags))
		return fixed(result, fd, st);
	return result;
}

HOOK int fstatat(int directory, const char *restrict path, struct stat *restrict st, int flags)
{
	return fixed_at(real()->fstatat(directory, REDIRECTED(path), st, flags), directory, path, st,
			flags);
}

HOOK int fstatat64(int directory, const char *restrict path, struct stat64 *restrict st, int flags)
{
	return fixed_at(real()->fstatat64(directory, REDIRECTED(path), st, flags), directory, path,
			st, flags);
}

/* What fstat() says of the same descriptor: of one that is no device what is there already. */
static void fix_statx(int fd, struct statx *stx)
{
	const int saved = errno;
	struct stat st;

	if (fstat(fd, &st) == 0) {
		stx->stx_mode = (uint16_t)st.st_mode;
		stx->stx_rdev_major = major(st.st_rdev);
		stx->stx_rdev_minor = minor(st.st_rdev);
		stx->stx_size = (uint64_t)st.st_size;
	}
	errno = saved;
}

HOOK int statx(int directory, const char *restrict path, int flags, unsigned mask,
	       struct statx *restrict st)
{
	const int result = real()->statx(directory, REDIRECTED(path), flags, mask, st);

	if (result == 0 && names_descriptor(path, flags) && is_device(directory))
		fix_statx(directory, st);
	return result;
}

/*
 * What stat() and its kin were called in programs linked against glibc before 2.33. The first
 * argument names the layout of struct stat; there is one per machine, with two numbers on x86-64.
 * They do not go through the hooks above: ThreadSanitizer's fstat() calls __fxstat().
 */
#ifdef __x86_64__
#define NEWEST_LAYOUT 1
#else
#define NEWEST_LAYOUT 0
#endif

#define OLD_STAT(version, call)                                                                    \
	do {                                                                                       \
		if (version < 0 || version > NEWEST_LAYOUT) {                                      \
			errno = EINVAL;                                                            \
			return -1;                                                                 \
		}                                                                                  \
		return call;                                                                       \
	} while (0)

HOOK int __xstat(int version, const char *path, struct stat *st)
{
	OLD_STAT(version, real()->stat(REDIRECTED(path), st));
}

HOOK int __xstat64(int version, const char *path, struct stat64 *st)
{
	OLD_STAT(version, real()->stat64(REDIRECTED(path), st));
}

HOOK int __lxstat(int version, const char *path, struct stat *st)
{
	OLD_STAT(version, real()->lstat(REDIRECTED(path), st));
}

HOOK int __lxstat64(int version, const char *path, struct stat64 *st)
{
	OLD_STAT(version, real()->lstat64(REDIRECTED(path), st));
}

HOOK int __fxstat(int version, int fd, struct stat *st)
{
	OLD_STAT(version, fixed(real()->fstat(fd, st), fd, st));
}

HOOK int __fxstat64(int version, int fd, struct stat64 *st)
{
	OLD_STAT(version, fixed(real()->fstat64(fd, st), fd, st));
}

HOOK int __fxstatat(int version, int directory, const char *path, struct stat *st, int flags)
{
	OLD_STAT(version, fixed_at(real()->fstatat(directory, REDIRECTED(path), st, flags),
				  directory, path, st, flags));
}

HOOK int __fxstatat64(int version, int directory, const char *path, struct stat64 *st, int flags)
{
	OLD_STAT(version, fixed_at(real()->fstatat64(directory, REDIRECTED(path), st, flags),
				  directory, path, st, flags));
}

/* ---- access ---- */

HOOK int access(const char *path, int mode)
{
	return real()->access(REDIRECTED(path), mode);
}

HOOK int faccessat(int directory, const char *path, int mode, int flags)
{
	return real()->faccessat(directory, REDIRECTED(path), mode, flags);
}

HOOK int euidaccess(const char *path, int mode)
{
	return real()->euidaccess(REDIRECTED(path), mode);
}

HOOK int eaccess(const char *path, int mode)
{
	return real()->euidaccess(REDIRECTED(path), mode);
}
