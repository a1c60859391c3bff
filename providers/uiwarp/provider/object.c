/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Allocation of the objects that libibverbs sees. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "provider/provider.h"

void *provider_new(size_t size)
{
	return calloc(1, size);
}

void provider_wait_for_acks(const char *call, const char *function, uint32_t got, const uint32_t *acknowledged,
			    pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	struct timespec patience;

	clock_gettime(CLOCK_REALTIME, &patience); /* a condition's usual clock */
	++patience.tv_sec;
	while (*acknowledged != got && pthread_cond_timedwait(cond, mutex, &patience) == 0)
		;
	if (*acknowledged != got)
		core_verbs->acks_missing(call, function, (int32_t)(got - *acknowledged));
	while (*acknowledged != got)
		pthread_cond_wait(cond, mutex);
}

void *provider_fail(void *object, int error)
{
	free(object);
	errno = error;
	return NULL;
}
