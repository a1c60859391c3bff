/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Registration with libibverbs, and the devices. Runs while libibverbs loads us. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider/provider.h"

const struct uiwarp_verbs *core_verbs;

static bool match_device(struct verbs_sysfs_dev *found)
{
	/* The prefix first: in a program without uiwarp devices the core is not even started. */
	return strncmp(found->ibdev_name, "uiw_", 4) == 0 && uiwarp_device_find(found->ibdev_name);
}

static struct verbs_device *alloc_device(struct verbs_sysfs_dev *found)
{
	struct provider_device *device = provider_new(sizeof(*device));

	if (!device)
		return NULL;
	/* Not asked for again by name: an interface of the same name that comes later is another device. */
	device->core = uiwarp_device_find(found->ibdev_name);
	return &device->verbs;
}

static void uninit_device(struct verbs_device *device)
{
	free(device);
}

static const struct verbs_match_ent no_table[] = { { .kind = 0 } };

static const struct verbs_device_ops driver = {
	.name = "uiwarp",
	.match_min_abi_version = 0,
	.match_max_abi_version = INT32_MAX,
	.match_table = no_table,
	.match_device = match_device,
	.alloc_context = provider_alloc_context,
	.import_context = provider_import_context,
	.alloc_device = alloc_device,
	.uninit_device = uninit_device,
};

__attribute__((constructor)) static void register_driver(void)
{
	if (uiwarp_abi_version() != UIWARP_ABI_VERSION) {
		fprintf(stderr,
			"uiwarp: libuiwarp.so.0 (interface %d) and libuiwarp-rdmav%d.so (interface %d) come "
			"from different builds; install both from the same one\n",
			uiwarp_abi_version(), UIWARP_PABI, UIWARP_ABI_VERSION);
		return;
	}
	if (!provider_qp_flags_at()) {
		fprintf(stderr,
			"uiwarp: this libibverbs (private ABI %d) lays out its queue pairs in a way that uiwarp does "
			"not know, so its devices are not available; rdma-core up to 64 is supported\n",
			UIWARP_PABI);
		return;
	}
	core_verbs = uiwarp_get_verbs();
	verbs_register_driver(&driver);
}
