/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * dl_iterate_phdr, which names this library last. The runtime of AddressSanitizer, where a program is linked with it
 * as a shared library (gcc's default), ends the program unless it comes first after the program itself
 * (AsanCheckDynamicRTPrereqs() in its asan_linux.cpp). It fears functions that hide its own; ours call the next
 * definition, which is its. The order is nobody's promise: dl_iterate_phdr(3) puts only the program first.
 */
#include <link.h>

#include "core.h"

struct visit {
	int (*callback)(struct dl_phdr_info *, size_t, void *);
	void *data;
	bool us; /* this library only, or all but it */
};

/* The linker's name for the beginning of this library, which is the address that the loader knows it by. */
extern const char __ehdr_start __attribute__((visibility("hidden")));

static int visit_one(struct dl_phdr_info *info, size_t size, void *data)
{
	const struct visit *visit = data;

	if ((info->dlpi_addr == (ElfW(Addr)) & __ehdr_start) != visit->us)
		return 0;
	return visit->callback(info, size, visit->data);
}

HOOK int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data)
{
	struct visit visit = {.callback = callback, .data = data, .us = false};
	int result = real()->dl_iterate_phdr(visit_one, &visit);

	if (result != 0)
		return result;
	visit.us = true;
	return real()->dl_iterate_phdr(visit_one, &visit);
}
