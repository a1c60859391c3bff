/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * RTLD_DEEPBIND makes a library call libc's functions rather than ours, and libibverbs would find no device. It is
 * the default flag of some languages' dlopen(). The two libraries that need us are bound as if it was not there.
 */
#include <dlfcn.h>

#include "core.h"

static bool needs_us(const char *file)
{
	const char *slash = strrchr(file, '/');
	const char *name = slash ? slash + 1 : file;

	return STARTS_WITH(name, "libibverbs.so") || STARTS_WITH(name, "librdmacm.so");
}

HOOK void *dlopen(const char *file, int flags)
{
	if ((flags & RTLD_DEEPBIND) && file && needs_us(file))
		flags &= ~RTLD_DEEPBIND;
	/*
	 * Where dlopen() looks depends on who called it, which it tells by its return address: this has to be a
	 * jump, not a call (CMakeLists.txt).
	 */
	return real()->dlopen(file, flags);
}
