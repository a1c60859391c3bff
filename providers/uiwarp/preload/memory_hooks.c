/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Calls that take memory away, which an instrument may ask to be told of (uiwarp_preload_watch). Without one each
 * costs the load of a pointer. The C library's own, as of free(), come by no hook.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core.h"
#include "watch.h"

static void tell(const void *address, size_t size, const char *call)
{
	const struct uiwarp_watcher *told = watching();
	int saved;

	if (__builtin_expect(told == NULL, 1) || size == 0)
		return;
	saved = errno;
	told->unmapping(address, size, call);
	errno = saved;
}

HOOK int munmap(void *address, size_t size)
{
	tell(address, size, "munmap");
	return real()->munmap(address, size);
}

HOOK void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
	va_list arguments;
	void *target, *result;

	va_start(arguments, flags);
	target = flags & MREMAP_FIXED ? va_arg(arguments, void *) : NULL;
	va_end(arguments);
	if (flags & MREMAP_FIXED) {
		tell(old, old_size, "mremap");
		tell(target, size, "mremap");
	} else if (size > 0) {
		const size_t page = (size_t)sysconf(_SC_PAGESIZE);
		const size_t kept = (size + page - 1) & ~(page - 1);

		if (kept < old_size)
			tell((const char *)old + kept, old_size - kept, "mremap");
	}
	result = real()->mremap(old, old_size, size, flags, target);
	/* Whether it moves is known only now. */
	if (!(flags & MREMAP_FIXED) && result != MAP_FAILED && result != old)
		tell(old, old_size, "mremap");
	return result;
}

static void tell_of_mapping(const void *address, size_t size, int flags)
{
	if ((flags & MAP_FIXED) && !(flags & MAP_FIXED_NOREPLACE))
		tell(address, size, "mmap");
}

HOOK void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	tell_of_mapping(address, size, flags);
	return real()->mmap(address, size, protection, flags, fd, offset);
}

HOOK void *mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	tell_of_mapping(address, size, flags);
	return real()->mmap64(address, size, protection, flags, fd, offset);
}
