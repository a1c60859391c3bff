/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Allocation of the objects that libibverbs sees. */
#include <errno.h>
#include <stdlib.h>

#include "provider/provider.h"

void *provider_new(size_t size)
{
	return calloc(1, size);
}

void *provider_fail(void *object, int error)
{
	free(object);
	errno = error;
	return NULL;
}
