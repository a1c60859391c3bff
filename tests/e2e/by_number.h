/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * One end of a connection between two processes, by numbers that they exchange over a socket: a plain verbs program
 * that uses only the public interfaces.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Receives that are posted, and of how many bytes each is. */
enum { MESSAGES = 12, MESSAGE_SIZE = 64 };

struct address {
	union ibv_gid gid;
	uint32_t qp_num, rkey;
	uint64_t start;
};

static struct ibv_context *device;
static struct ibv_qp *qp;
static struct ibv_cq *cq;
static struct ibv_mr *mr;

static inline void step(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	_exit(2);
}

static inline void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	step(list != NULL, "ibv_get_device_list");
	for (struct ibv_device **one = list; *one; one++)
		if (!strcmp(ibv_get_device_name(*one), name))
			device = ibv_open_device(*one);
	step(device != NULL, "ibv_open_device");
	ibv_free_device_list(list);
}

/* Registers the memory, to whose beginning messages come and which the peer may write; returns where the peer is. */
static inline struct address connect_by_number(int fd, int index, void *memory, size_t size, uint8_t timeout)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 2 * MESSAGES, .max_recv_wr = MESSAGES, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_sge beginning = {(uintptr_t)memory, MESSAGE_SIZE, 0};
	struct ibv_recv_wr receive = {.sg_list = &beginning, .num_sge = 1}, *bad;
	struct ibv_pd *pd = ibv_alloc_pd(device);
	struct address own = {.start = (uintptr_t)memory}, peer;

	step(pd && (mr = ibv_reg_mr(pd, memory, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)), "ibv_reg_mr");
	cq = ibv_create_cq(device, 3 * MESSAGES, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	step(cq && (qp = ibv_create_qp(pd, &init)), "ibv_create_qp");
	step(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	beginning.lkey = mr->lkey;
	for (int i = 0; i < MESSAGES; i++)
		step(!ibv_post_recv(qp, &receive, &bad), "ibv_post_recv");
	own.qp_num = qp->qp_num;
	own.rkey = mr->rkey;
	step(!ibv_query_gid(device, 1, index, &own.gid), "ibv_query_gid");
	step(write(fd, &own, sizeof(own)) == sizeof(own) && read(fd, &peer, sizeof(peer)) == sizeof(peer), "exchange");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer.qp_num, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer.gid, .sgid_index = index, .hop_limit = 1}},
	};
	step(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = timeout, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1,
	};
	step(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
	return peer;
}
