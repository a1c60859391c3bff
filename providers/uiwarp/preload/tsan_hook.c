/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the runtime of ThreadSanitizer asks a program built with it for, where the program has no answer of its own.
 * libuiwarp.so.0 copies to and from the program's memory at a time that its completions order, as an adapter does
 * without being seen; the runtime sees the copies, not the order, and would report each as a race.
 */
#include "real_calls.h"

HOOK const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
	return "race:libuiwarp.so.0\n";
}
