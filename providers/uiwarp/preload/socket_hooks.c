/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * libibverbs asks netlink for the devices first and reads /sys only when it has no NETLINK_RDMA, so
 * a kernel that has it must look as if it had not.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include "core.h"

static bool uiwarp_answers(void)
{
	static const char class[] = "/sys/class/infiniband";
	char buffer[PATH_MAX];

	return redirect_into(class, buffer) != class;
}

HOOK int socket(int domain, int type, int protocol)
{
	if (__builtin_expect(domain == AF_NETLINK && protocol == NETLINK_RDMA, 0) &&
	    uiwarp_answers()) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return real()->socket(domain, type, protocol);
}
