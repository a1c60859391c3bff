/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* readlink, realpath, and the extended attributes that `ls -l` asks for. */
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core.h"

HOOK ssize_t readlink(const char *restrict path, char *restrict buffer, size_t size)
{
	return real()->readlink(REDIRECTED(path), buffer, size);
}

HOOK ssize_t readlinkat(int directory, const char *restrict path, char *restrict buffer, size_t size)
{
	return real()->readlinkat(directory, REDIRECTED(path), buffer, size);
}

HOOK ssize_t __readlink_chk(const char *path, char *buffer, size_t size, size_t buffer_size)
{
	return real()->__readlink_chk(REDIRECTED(path), buffer, size, buffer_size);
}

HOOK ssize_t __readlinkat_chk(int directory, const char *path, char *buffer, size_t size,
			      size_t buffer_size)
{
	return real()->__readlinkat_chk(directory, REDIRECTED(path), buffer, size, buffer_size);
}

/*
 * realpath() of a redirected path, as the program knows it: /sys/class/infiniband/..., which also
 * works where no hook is. A device node would lead to /dev/null; it keeps its name.
 */
static char *resolve(const char *redirected, char *resolved)
{
	const size_t length = loaded_core()->root_length(redirected);
	char *found = as_known(real()->realpath(redirected, resolved));

	if (!found || length == 0)
		return found;
	redirected += length;
	if (strcmp(found, "/dev/null") != 0 || !STARTS_WITH(redirected, "/dev/infiniband/"))
		return found;
	if (resolved)
		return strcpy(resolved, redirected);
	free(found);
	return strdup(redirected);
}

/* The same of what is named from the directory where the program is, which may be one of the tree. */
static char *relative(const char *path, char *found)
{
	return found && path[0] != '/' ? as_known(found) : found;
}

HOOK char *realpath(const char *restrict path, char *restrict resolved)
{
	const char *redirected = REDIRECTED(path);

	return redirected == path ? relative(path, real()->realpath(path, resolved)) :
				    resolve(redirected, resolved);
}

HOOK char *__realpath_chk(const char *path, char *resolved, size_t size)
{
	const char *redirected = REDIRECTED(path);

	/* Only a buffer that the fortified check accepts may be written to. */
	if (redirected == path || size < PATH_MAX)
		return relative(redirected, real()->__realpath_chk(redirected, resolved, size));
	return resolve(redirected, resolved);
}

HOOK char *canonicalize_file_name(const char *path)
{
	const char *redirected = REDIRECTED(path);

	return redirected == path ? relative(path, real()->canonicalize_file_name(path)) : resolve(redirected, NULL);
}

HOOK ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
	return real()->getxattr(REDIRECTED(path), name, value, size);
}

HOOK ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	return real()->lgetxattr(REDIRECTED(path), name, value, size);
}
