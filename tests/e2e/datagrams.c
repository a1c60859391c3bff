// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * UD queue pairs on devices whose interfaces a test makes and changes. Uses nothing of uiwarp. "done" is the end of
 * each of
 *
 *   datagrams groups GROUP DEVICE ADDRESS DEVICE ADDRESS: what is sent to the group by one device comes to the queue
 *   pairs of that device, on the same host, and to no others.
 *
 *   datagrams mtu DEVICE ADDRESS: a queue pair sends to another one on the device as much as the port's MTU allows: as
 *   it is, once it is 4096, and once it is 1024 again, for which it says "ready" before. A byte more ends it.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { QKEY = 0x1234, GRH = 40, ROOM = 8192, DEPTH = 8, GROUP_QP = 0xffffff };

/* A queue pair in RTS, with a receive that is posted. */
struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *sent, *received;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *memory; /* for what is received; behind it for what is sent */
};

static void must(bool right, const char *what)
{
	if (right)
		return;
	perror(what);
	exit(1);
}

static struct ibv_context *opened(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	must(list, "ibv_get_device_list");
	for (int i = 0; list[i]; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	must(context, name);
	ibv_free_device_list(list);
	return context;
}

/* IPv4 addresses are mapped. */
static union ibv_gid gid_of(const char *text)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	must(inet_pton(AF_INET, text, gid.raw + 12) == 1 || inet_pton(AF_INET6, text, &gid) == 1, text);
	return gid;
}

static void post_receive(struct end *end)
{
	struct ibv_sge sge = {(uintptr_t)end->memory, ROOM, end->mr->lkey};
	struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad;

	must(ibv_post_recv(end->qp, &receive, &bad) == 0, "ibv_post_recv");
}

static struct end new_end(struct ibv_context *context)
{
	struct end end = {.context = context, .pd = ibv_alloc_pd(context), .memory = calloc(2, ROOM)};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

	end.sent = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
	end.received = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
	must(end.pd && end.memory && end.sent && end.received, "making queues");
	end.mr = ibv_reg_mr(end.pd, end.memory, 2 * ROOM, IBV_ACCESS_LOCAL_WRITE);
	must(end.mr, "ibv_reg_mr");
	end.qp = ibv_create_qp(end.pd, &(struct ibv_qp_init_attr){
		.send_cq = end.sent, .recv_cq = end.received, .qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1}});
	must(end.qp, "ibv_create_qp");
	must(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY) == 0, "INIT");
	attr.qp_state = IBV_QPS_RTR;
	must(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE) == 0, "RTR");
	attr.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "RTS");
	post_receive(&end);
	return end;
}

static struct ibv_wc next(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int count;

	while ((count = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	must(count == 1, "ibv_poll_cq");
	return wc;
}

/* The status of a Send of so many bytes from `own` to a host, or a group, and its queue pair. */
static enum ibv_wc_status send_status(struct end *end, const char *own, const char *to, uint32_t qp_num,
				      const char *text, uint32_t length)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid_of(to), .hop_limit = 1}};
	struct ibv_sge sge = {(uintptr_t)end->memory + ROOM, length, end->mr->lkey};
	struct ibv_send_wr send = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
	union ibv_gid wanted = gid_of(own), gid;
	enum ibv_wc_status status;
	int index = 0;

	while (ibv_query_gid(end->context, 1, index, &gid) == 0 && memcmp(&gid, &wanted, sizeof(gid)) != 0)
		must(++index < 256, own);
	attr.grh.sgid_index = index;
	send.wr.ud.ah = ibv_create_ah(end->pd, &attr);
	must(send.wr.ud.ah, "ibv_create_ah");
	send.wr.ud.remote_qpn = qp_num;
	send.wr.ud.remote_qkey = QKEY;
	strcpy(end->memory + ROOM, text);
	must(ibv_post_send(end->qp, &send, &bad) == 0, "ibv_post_send");
	status = next(end->sent).status;
	must(ibv_destroy_ah(send.wr.ud.ah) == 0, "ibv_destroy_ah");
	return status;
}

static void expect_received(struct end *end, const char *text, uint32_t length)
{
	struct ibv_wc wc = next(end->received);

	must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
	if (strcmp(end->memory + GRH, text) != 0 || wc.byte_len != GRH + length) {
		printf("'%s', %u bytes with the GRH, came instead of '%s'\n", end->memory + GRH, wc.byte_len, text);
		exit(1);
	}
	post_receive(end);
}

static void groups(char **names)
{
	union ibv_gid group = gid_of(names[0]);
	struct end senders[2], members[2];
	static const char *const texts[] = {"by the first", "by the second"};

	for (int i = 0; i < 2; i++) {
		struct ibv_context *context = opened(names[1 + 2 * i]);

		senders[i] = new_end(context);
		members[i] = new_end(context);
		must(ibv_attach_mcast(members[i].qp, &group, 0) == 0, "ibv_attach_mcast");
	}
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 2; i++) {
			uint32_t length = strlen(texts[i]) + 1;

			must(send_status(&senders[i], names[2 + 2 * i], names[0], GROUP_QP, texts[i], length) ==
			     IBV_WC_SUCCESS, "Send");
		}
		/* Of more than its own one would be another's. */
		for (int i = 0; i < 2; i++)
			expect_received(&members[i], texts[i], strlen(texts[i]) + 1);
	}
}

static void wait_for_mtu(struct ibv_context *context, enum ibv_mtu wanted)
{
	struct ibv_port_attr port;

	do {
		usleep(1000);
		must(ibv_query_port(context, 1, &port) == 0, "ibv_query_port");
	} while (port.active_mtu != wanted);
}

static void mtu(char **names)
{
	static const enum ibv_mtu mtus[] = {IBV_MTU_1024, IBV_MTU_4096, IBV_MTU_1024};
	struct ibv_context *context = opened(names[0]);
	struct end sender = new_end(context), receiver = new_end(context);

	for (int i = 0; i < 3; i++) {
		uint32_t most = 128u << mtus[i];

		wait_for_mtu(context, mtus[i]);
		must(send_status(&sender, names[1], names[1], receiver.qp->qp_num, "fits", most) == IBV_WC_SUCCESS,
		     "as much as the MTU");
		expect_received(&receiver, "fits", most);
		printf("ready\n");
	}
	must(send_status(&sender, names[1], names[1], receiver.qp->qp_num, "does not", 1025) == IBV_WC_LOC_LEN_ERR,
	     "more than the MTU");
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 7 && strcmp(argv[1], "groups") == 0) {
		groups(argv + 2);
	} else {
		must(argc == 4 && strcmp(argv[1], "mtu") == 0, "datagrams groups|mtu ...");
		mtu(argv + 2);
	}
	printf("done\n");
	return 0;
}
