/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * chdir, getcwd, opendir, scandir and glob. Each names the directory to the kernel inside libc, where no
 * hook is reached; what follows (readdir, relative paths) needs none, since the tree is a real one.
 */
#include <stdlib.h>
#include <unistd.h>

#include "core.h"

HOOK int chdir(const char *path)
{
	return real()->chdir(REDIRECTED(path));
}

HOOK char *getcwd(char *buffer, size_t size)
{
	return as_known(real()->getcwd(buffer, size));
}

HOOK char *__getcwd_chk(char *buffer, size_t size, size_t buffer_size)
{
	return as_known(real()->__getcwd_chk(buffer, size, buffer_size));
}

HOOK char *get_current_dir_name(void)
{
	return as_known(real()->get_current_dir_name());
}

HOOK DIR *opendir(const char *path)
{
	return real()->opendir(REDIRECTED(path));
}

HOOK int scandir(const char *restrict path, struct dirent ***restrict list, scandir_filter *filter,
		 scandir_order *order)
{
	return real()->scandir(REDIRECTED(path), list, filter, order);
}

HOOK int scandir64(const char *restrict path, struct dirent64 ***restrict list,
		   scandir64_filter *filter, scandir64_order *order)
{
	return real()->scandir64(REDIRECTED(path), list, filter, order);
}

/* The paths found, as the program knows them: it will open them. */
static void as_asked(char **paths, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const size_t length = loaded_core()->root_length(paths[i]);

		memmove(paths[i], paths[i] + length, strlen(paths[i] + length) + 1);
	}
}

HOOK int glob(const char *restrict pattern, int flags, glob_error *error, glob_t *restrict found)
{
	const char *redirected = REDIRECTED(pattern);
	int result = real()->glob(redirected, flags, error, found);

	if (result == 0 && redirected != pattern)
		as_asked(found->gl_pathv + (flags & GLOB_DOOFFS ? found->gl_offs : 0),
			 found->gl_pathc);
	return result;
}

HOOK int glob64(const char *restrict pattern, int flags, glob_error *error, glob64_t *restrict found)
{
	const char *redirected = REDIRECTED(pattern);
	int result = real()->glob64(redirected, flags, error, found);

	if (result == 0 && redirected != pattern)
		as_asked(found->gl_pathv + (flags & GLOB_DOOFFS ? found->gl_offs : 0),
			 found->gl_pathc);
	return result;
}
