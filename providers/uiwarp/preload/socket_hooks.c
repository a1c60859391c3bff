/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * NETLINK_RDMA, which libibverbs, librdmacm and rdma(8) ask for devices. The program gets a netlink
 * socket whose requests are answered in the process; only what sends has to be looked at here, the
 * rest is the kernel's.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include "core.h"

HOOK int socket(int domain, int type, int protocol)
{
	if (__builtin_expect(domain == AF_NETLINK && protocol == NETLINK_RDMA, 0)) {
		const struct core *use = load_core();
		const int saved = errno;
		const int fd = use ? use->socket(type) : -2;

		if (fd != -2)
			return fd;
		errno = saved;
	}
	return real()->socket(domain, type, protocol);
}

/* Whether it was a request to us; *result and errno are then what the call gives. */
static bool is_answered(int fd, const void *buffer, size_t size, const struct sockaddr *address,
			socklen_t address_size, ssize_t *result)
{
	int handled;
	const int saved = errno;

	*result = loaded_core()->send(fd, buffer, size, address, address_size, &handled);
	if (!handled)
		errno = saved;
	return handled;
}

HOOK ssize_t send(int fd, const void *buffer, size_t size, int flags)
{
	ssize_t result;

	if (__builtin_expect(is_device(fd), 0) && is_answered(fd, buffer, size, NULL, 0, &result))
		return result;
	return real()->send(fd, buffer, size, flags);
}

HOOK ssize_t sendto(int fd, const void *buffer, size_t size, int flags,
		    const struct sockaddr *address, socklen_t address_size)
{
	ssize_t result;

	if (__builtin_expect(is_device(fd), 0) &&
	    is_answered(fd, buffer, size, address, address_size, &result))
		return result;
	return real()->sendto(fd, buffer, size, flags, address, address_size);
}

HOOK ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (__builtin_expect(is_device(fd), 0)) {
		char command[LONGEST_COMMAND];
		struct msghdr copy;
		const bool there = loaded_core()->copy_in(&copy, message, sizeof(copy)) == 0;
		const ssize_t size = there ? in_one_piece(copy.msg_iov, copy.msg_iovlen, command) : -EFAULT;
		ssize_t result;

		/* Nothing is no request: it only tells whose the descriptor is. */
		if (is_answered(fd, command, size < 0 ? 0 : (size_t)size, there ? copy.msg_name : NULL,
				there ? copy.msg_namelen : 0, &result)) {
			if (size >= 0)
				return result;
			errno = (int)-size;
			return -1;
		}
	}
	return real()->sendmsg(fd, message, flags);
}
