/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "watch.h"

const struct uiwarp_watcher *watcher;

__attribute__((visibility("default"))) uiwarp_preload_watch_function uiwarp_preload_watch;

void uiwarp_preload_watch(const struct uiwarp_watcher *told)
{
	__atomic_store_n(&watcher, told, __ATOMIC_RELEASE);
}
