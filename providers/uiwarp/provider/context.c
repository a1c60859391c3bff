/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* ibv_open_device, ibv_import_device, ibv_close_device, queries, async events. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "provider/provider.h"

static int query_device(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t size)
{
	if (input && input->comp_mask)
		return EINVAL;
	return provider_result(core_verbs->query_device(core_context(context), attr, size));
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	return provider_result(core_verbs->query_port(core_context(context), port, attr));
}

static void async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		core_verbs->async_event_taken(event->element.qp->qp_num, event->event_type);
		break;
	default:
		core_verbs->async_event_taken(0, event->event_type);
	}
	core_verbs->context_events_taken(core_context(context), 1);
}

/* Where the loaded libibverbs has the beginning of our struct verbs_context. */
static size_t verbs_at(const struct provider_layout *layout)
{
	return offsetof(struct provider_context, verbs.context) - layout->context_at;
}

static struct verbs_context *verbs_of(struct provider_context *mine)
{
	return (struct verbs_context *)((char *)mine + verbs_at(mine->layout));
}

static void free_context(struct ibv_context *context)
{
	struct provider_context *mine = context_of(context);

	core_verbs->context_close(mine->core);
	verbs_uninit_context(verbs_of(mine));
	free(mine);
}

static const struct verbs_all_ops ops = {
	.advise_mr = provider_advise_mr,
	.alloc_mw = provider_alloc_mw,
	.alloc_parent_domain = provider_alloc_parent_domain,
	.alloc_pd = provider_alloc_pd,
	.alloc_td = provider_alloc_td,
	.async_event = async_event,
	.attach_mcast = provider_attach_mcast,
	.bind_mw = provider_bind_mw,
	.cq_event = provider_cq_event,
	.create_ah = provider_create_ah,
	.create_cq = provider_create_cq,
	.create_cq_ex = provider_create_cq_ex,
	.create_qp = provider_create_qp,
	.create_qp_ex = provider_create_qp_ex,
	.create_srq = provider_create_srq,
	.dealloc_mw = provider_dealloc_mw,
	.dealloc_pd = provider_dealloc_pd,
	.dealloc_td = provider_dealloc_td,
	.dereg_mr = provider_dereg_mr,
	.destroy_ah = provider_destroy_ah,
	.destroy_cq = provider_destroy_cq,
	.destroy_qp = provider_destroy_qp,
	.destroy_srq = provider_destroy_srq,
	.detach_mcast = provider_detach_mcast,
	.free_context = free_context,
	.import_mr = provider_import_mr,
	.import_pd = provider_import_pd,
	.modify_qp = provider_modify_qp,
	.modify_srq = provider_modify_srq,
	.poll_cq = provider_poll_cq,
	.post_recv = provider_post_recv,
	.post_send = provider_post_send,
	.post_srq_recv = provider_post_srq_recv,
	.query_device_ex = query_device,
	.query_port = query_port,
	.query_qp = provider_query_qp,
	.query_srq = provider_query_srq,
	.reg_mr = provider_reg_mr,
	.req_notify_cq = provider_req_notify_cq,
	.rereg_mr = provider_rereg_mr,
	.resize_cq = provider_resize_cq,
	.unimport_mr = provider_unimport_mr,
	.unimport_pd = provider_unimport_pd,
};

/*
 * Without the preload library a write to the command descriptor would go to /dev/null and "succeed",
 * and libibverbs would take garbage for the descriptor of a completion channel.
 */
static bool virtual_kernel_active(const char *device)
{
	const int *version = dlsym(RTLD_DEFAULT, "uiwarp_preload_active");

	if (version && *version == UIWARP_ABI_VERSION)
		return true;
	fprintf(stderr, "uiwarp: cannot open %s, because %s: start the program with `uiwarp run PROGRAM`\n", device,
		version ? "libuiwarp-preload.so comes from a different build" : "libuiwarp-preload.so is not loaded");
	return false;
}

/* The same for a device that is opened and one that is imported: what they share goes by the descriptor. */
static struct verbs_context *make_context(struct ibv_device *device, int cmd_fd)
{
	const struct provider_layout *layout = provider_loaded_layout();
	verbs_other_op table[UIWARP_OPERATIONS_MAX];
	struct provider_context *mine;
	int error;

	mine = _verbs_init_and_alloc_context(device, cmd_fd, sizeof(*mine), (void *)verbs_at(layout), 0);
	if (!mine)
		return NULL;
	mine->layout = layout;
	error = ENODEV;
	/* The size that libibverbs itself gives its structure: the last word on which layout this is. */
	if (mine->verbs.sz != layout->context_at + sizeof(struct ibv_context))
		fprintf(stderr, "uiwarp: this libibverbs lays out its contexts in a way that uiwarp does not know\n");
	else if (virtual_kernel_active(ibv_get_device_name(device)))
		error = core_verbs->context_open(core_device(device), uiwarp_vk_command(cmd_fd), &mine->core,
						 &mine->verbs.context.async_fd);
	if (error) {
		verbs_uninit_context(verbs_of(mine));
		return provider_fail(mine, error);
	}
	mine->verbs.context.num_comp_vectors = core_verbs->comp_vectors();
	provider_operations(layout, &ops, table);
	verbs_set_ops(verbs_of(mine), table);
	return verbs_of(mine);
}

struct verbs_context *provider_alloc_context(struct ibv_device *device, int cmd_fd, void *private_data)
{
	(void)private_data;
	return make_context(device, cmd_fd);
}

struct verbs_context *provider_import_context(struct ibv_device *device, int cmd_fd)
{
	struct verbs_context *made;
	int error;

	if (!uiwarp_vk_command(cmd_fd)) {
		error = uiwarp_refuse(EOPNOTSUPP,
				      "ibv_import_device: descriptor %d is that of a device which the parent process "
				      "opened; its queue pairs and memory are there, so it cannot be imported here",
				      cmd_fd);
		return provider_fail(NULL, error);
	}
	made = make_context(device, cmd_fd);
	if (made) {
		/* libibverbs asks for a descriptor of asynchronous events next, and forgets the one it is given here. */
		error = uiwarp_vk_give_async(cmd_fd, made->context.async_fd);
		if (error) {
			free_context(&made->context);
			return provider_fail(NULL, error);
		}
	}
	return made;
}
