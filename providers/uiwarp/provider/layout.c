/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Which table of operations and which struct verbs_context the loaded libibverbs has. The private ABI's
 * number does not say: rdma-core 62 added operations in the middle of the table of private ABI 59. The same
 * release added functions that programs call, and those can be looked for.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "provider/provider.h"

/* Of two with one number the newer comes first. */
static const struct provider_layout layouts[] = {
	{ .pabi = 34, .since = 34, .context_at = 320 },
	{ .pabi = 57, .since = 34, .context_at = 320 },
	{ .pabi = 59, .since = 62, .context_at = 352, .mark = "ibv_query_port_speed" },
	{ .pabi = 59, .since = 59, .context_at = 344 },
	{ .pabi = 64, .since = 64, .context_at = 368 },
};

const struct provider_layout *provider_layout_of(int pabi, bool (*has)(const char *function))
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); ++i) {
		if (layouts[i].pabi == pabi && (!layouts[i].mark || has(layouts[i].mark)))
			return &layouts[i];
	}
	return NULL;
}

static bool libibverbs_has(const char *function)
{
	/* The one that this provider is bound to: it is loaded, so this only counts its users. */
	void *library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
	bool found = library && dlsym(library, function);

	if (library)
		dlclose(library);
	return found;
}

const struct provider_layout *provider_loaded_layout(void)
{
	return provider_layout_of(UIWARP_PABI, libibverbs_has);
}

size_t provider_operations(const struct provider_layout *layout, const struct verbs_all_ops *all,
			   verbs_other_op table[UIWARP_OPERATIONS_MAX])
{
	static const unsigned char since[UIWARP_OPERATIONS_MAX] = {
#define OURS(release, name, result, arguments) release,
#define OTHER(release, name) release,
		UIWARP_OPERATIONS(OURS, OTHER)
#undef OURS
#undef OTHER
	};
	verbs_other_op ops[UIWARP_OPERATIONS_MAX];
	size_t count = 0;

	static_assert(sizeof(ops) == sizeof(*all), "nothing but pointers");
	memcpy(ops, all, sizeof(ops));
	for (size_t i = 0; i < UIWARP_OPERATIONS_MAX; ++i) {
		if (since[i] <= layout->since)
			table[count++] = ops[i];
	}
	return count;
}
