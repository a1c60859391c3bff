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
	if (__builtin_expect(is_device(fd), 0)) {
		int handled;
		const int saved = errno;
		const ssize_t result = loaded_core()->write(fd, buffer, size, &handled);

		if (handled)
			return result;
		errno = saved;
	}
	return real()->write(fd, buffer, size);
}

ssize_t in_one_piece(const struct iovec *parts, size_t count, char command[LONGEST_COMMAND])
{
	const struct core *use = loaded_core();
	size_t size = 0;

	if (count > IOV_MAX)
		return -EMSGSIZE;
	for (size_t i = 0; i < count; i++) {
		struct iovec part;

		if (use->copy_in(&part, &parts[i], sizeof(part)) != 0)
			return -EFAULT;
		if (part.iov_len > LONGEST_COMMAND - size)
			return -EMSGSIZE;
		if (use->copy_in(command + size, part.iov_base, part.iov_len) != 0)
			return -EFAULT;
		size += part.iov_len;
	}
	return (ssize_t)size;
}

HOOK ssize_t writev(int fd, const struct iovec *parts, int count)
{
	if (__builtin_expect(is_device(fd), 0) && count > 0) {
		char command[LONGEST_COMMAND];
		const int saved = errno;
		const ssize_t size = in_one_piece(parts, (size_t)count, command);
		int handled;
		/* Nothing is no command: it only tells whose the descriptor is. */
		const ssize_t result = loaded_core()->write(fd, command, size < 0 ? 0 : (size_t)size, &handled);

		if (handled && size < 0) {
			errno = size == -EMSGSIZE ? EINVAL : EFAULT;
			return -1;
		}
		if (handled)
			return result;
		errno = saved;
	}
	return real()->writev(fd, parts, count);
}

HOOK int close(int fd)
{
	if (__builtin_expect(is_ours(fd), 0)) {
		if (loaded_core()->keeps(fd)) {
			errno = EBADF; /* as if it was not open */
			return -1;
		}
		loaded_core()->closing(fd);
	}
	return real()->close(fd);
}

/* `copy` is a new descriptor for the same open file as `fd`. */
static void copied(int fd, int copy)
{
	const int saved = errno;

	if (is_ours(copy))
		loaded_core()->closing(copy);
	if (is_device(fd))
		loaded_core()->dup(fd, copy);
	errno = saved;
}

HOOK int dup(int fd)
{
	const int copy = real()->dup(fd);

	if (copy >= 0 && __builtin_expect(is_device(fd), 0))
		copied(fd, copy);
	return copy;
}

/* Whether the stack needs what has this number. */
static bool is_taken(int copy)
{
	if (__builtin_expect(!is_ours(copy), 1) || !loaded_core()->keeps(copy))
		return false;
	errno = EBUSY;
	return true;
}

HOOK int dup2(int fd, int copy)
{
	int result;

	if (fd != copy && is_taken(copy))
		return -1;
	result = real()->dup2(fd, copy);
	if (result >= 0 && fd != copy && __builtin_expect(is_device(fd) || is_ours(copy), 0))
		copied(fd, copy);
	return result;
}

HOOK int dup3(int fd, int copy, int flags)
{
	int result;

	if (is_taken(copy))
		return -1;
	result = real()->dup3(fd, copy, flags);
	if (result >= 0 && __builtin_expect(is_device(fd) || is_ours(copy), 0))
		copied(fd, copy);
	return result;
}

static int duplicated(int result, int fd, int command)
{
	if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && result >= 0 && is_device(fd))
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

HOOK int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (__builtin_expect(is_device(fd), 0)) {
		int handled;
		const int saved = errno;
		const int result = loaded_core()->ioctl(fd, request, argument, &handled);

		if (handled)
			return result;
		errno = saved;
	}
	return real()->ioctl(fd, request, argument);
}

/* Closes the range but for what the stack has opened for itself. 0, or -1 and errno. */
static int close_between(unsigned first, unsigned last, int flags)
{
	const struct core *use = loaded_core();
	unsigned from = first;

	for (unsigned fd = first; use && fd <= last && fd < UIWARP_VK_FDS; fd++) {
		if (!is_ours((int)fd))
			continue;
		if (!use->keeps((int)fd)) {
			use->closing((int)fd);
			continue;
		}
		if (from < fd && real()->close_range(from, fd - 1, flags) != 0)
			return -1;
		from = fd + 1;
	}
	return from <= last ? real()->close_range(from, last, flags) : 0;
}

HOOK int close_range(unsigned first, unsigned last, int flags)
{
	/* The other flag, CLOSE_RANGE_CLOEXEC, closes nothing yet. */
	if (first <= last && (flags & ~CLOSE_RANGE_UNSHARE) == 0)
		return close_between(first, last, flags);
	return real()->close_range(first, last, flags);
}

HOOK void closefrom(int first)
{
	const int saved = errno;

	/* Linux before 5.9 has no close_range(). */
	if (close_between(first < 0 ? 0 : (unsigned)first, ~0U, 0) != 0)
		real()->closefrom(first);
	errno = saved;
}
