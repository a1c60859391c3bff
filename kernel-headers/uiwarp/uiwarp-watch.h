/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What libuiwarp-instruments.so may have libuiwarp-preload.so tell it of: calls of the program that are none of the
 * verbs. Private to uiwarp: both come from one build.
 */
#ifndef UIWARP_WATCH_H
#define UIWARP_WATCH_H

#include <stddef.h>

/* Called by the thread that makes the call of that name. */
struct uiwarp_watcher {
	/* `size` bytes at `address`, mapped or not, will not be the memory that they are; of a move it has happened. */
	void (*unmapping)(const void *address, size_t size, const char *call);
	/* By exit(), or since main() has returned. It need not return. */
	void (*exiting)(void);
};
/*
 * In libuiwarp-preload.so, where there is one: uiwarp_preload_watch, to be looked up by its name. Once; what is pointed
 * to stays as it is for the life of the process.
 */
typedef void uiwarp_preload_watch_function(const struct uiwarp_watcher *watcher);

#endif
