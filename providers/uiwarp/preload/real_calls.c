/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "real_calls.h"

#include <dlfcn.h>
#include <errno.h>

struct real_calls real_calls;
int real_calls_known;

void find_real_calls(void)
{
	const int saved = errno;

	/*
	 * dlsym() neither allocates nor opens anything as long as it finds the symbol, and glibc has
	 * had all of these since 2.34: so no hook is entered from here.
	 */
#define UIWARP_FIND(result, name, arguments)                                                       \
	__atomic_store_n(&real_calls.name, (result(*) arguments)dlsym(RTLD_NEXT, #name),           \
			 __ATOMIC_RELAXED);
	UIWARP_REAL_CALLS(UIWARP_FIND)
#undef UIWARP_FIND
	__atomic_store_n(&real_calls_known, 1, __ATOMIC_RELEASE);
	errno = saved;
}

__attribute__((constructor)) static void find_at_start(void) { find_real_calls(); }
