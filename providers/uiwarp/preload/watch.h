/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Who is to be told of calls that are none of the verbs: nobody, unless an instrument has asked for it. */
#ifndef UIWARP_PRELOAD_WATCH_H
#define UIWARP_PRELOAD_WATCH_H

#include "uiwarp/uiwarp-watch.h"

extern const struct uiwarp_watcher *watcher;

/* NULL: nobody. */
static inline const struct uiwarp_watcher *watching(void)
{
	return __atomic_load_n(&watcher, __ATOMIC_ACQUIRE);
}

#endif
