/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Calls on descriptors: one table look-up, then the real call for all that are not ours. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdarg.h>
#include <unistd.h>

#include "core.h"

HOOK ssize_t write(int fd, const void *buffer, size_t size)
{
	if (__builtin_expect(is_ours(fd), 0)) {
		int handled;
		const int saved = errno;
		const ssize_t result = loaded_core()->write(fd, buffer, size, &handled);

		if (handled)
			return result;
		errno = saved;
	}
	return real()->write(fd, buffer, size);
}

/* A command is one message, so it has to be in one piece. */
HOOK ssize_t writev(int fd, const struct iovec *parts, int count)
{
	if (__builtin_expect(is_ours(fd), 0) && parts && count > 0) {
		char command[4096];
		size_t size = 0;

		for (int i = 0; i < count; i++) {
			if (parts[i].iov_len > sizeof(command) - size) {
				errno = EINVAL;
				return -1;
			}
			memcpy(command + size, parts[i].iov_base, parts[i].iov_len);
			size += parts[i].iov_len;
		}
		return write(fd, command, size);
	}
	return real()->writev(fd, parts, count);
}

HOOK int close(int fd)
{
	if (__builtin_expect(is_ours(fd), 0))
		loaded_core()->closing(fd);
	return real()->close(fd);
}

/* `copy` is a new descriptor for the same open file as `fd`. */
static void copied(int fd, int copy)
{
	const int saved = errno;

	if (is_ours(copy))
		loaded_core()->closing(copy);
	if (is_ours(fd))
		loaded_core()->dup(fd, copy);
	errno = saved;
}

HOOK int dup(int fd)
{
	const int copy = real()->dup(fd);

	if (copy >= 0 && __builtin_expect(is_ours(fd), 0))
		copied(fd, copy);
	return copy;
}

HOOK int dup2(int fd, int copy)
{
	const int result = real()->dup2(fd, copy);

	if (result >= 0 && fd != copy && __builtin_expect(is_ours(fd) || is_ours(copy), 0))
		copied(fd, copy);
	return result;
}

HOOK int dup3(int fd, int copy, int flags)
{
	const int result = real()->dup3(fd, copy, flags);

	if (result >= 0 && __builtin_expect(is_ours(fd) || is_ours(copy), 0))
		copied(fd, copy);
	return result;
}

static int duplicated(int result, int fd, int command)
{
	if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && result >= 0 && is_ours(fd))
		copied(fd, result);
	return result;
}

HOOK int fcntl(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return duplicated(real()->fcntl(fd, command, argument), fd, command);
}

HOOK int fcntl64(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return duplicated(real()->fcntl64(fd, command, argument), fd, command);
}

static void range_closing(unsigned first, unsigned last)
{
	const struct core *use = loaded_core();

	if (!use)
		return;
	for (unsigned fd = first; fd <= last && fd < UIWARP_VK_FDS; fd++) {
		if (is_ours((int)fd))
			use->closing((int)fd);
	}
}

HOOK int close_range(unsigned first, unsigned last, int flags)
{
	/* The other flag, CLOSE_RANGE_CLOEXEC, closes nothing yet. */
	if (first <= last && (flags & ~CLOSE_RANGE_UNSHARE) == 0)
		range_closing(first, last);
	return real()->close_range(first, last, flags);
}

HOOK void closefrom(int first)
{
	range_closing(first < 0 ? 0 : (unsigned)first, UIWARP_VK_FDS - 1);
	real()->closefrom(first);
}
