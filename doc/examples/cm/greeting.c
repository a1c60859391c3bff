/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two programs that rdma_cm connects: a client sends a name, the server answers with a greeting.
 *
 *   greeting serve ADDRESS PORT
 *   greeting greet ADDRESS PORT NAME
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 256 };

static void require(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "greeting: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* An id with a queue pair, or one that listens and gives each id that it accepts a queue pair. */
static struct rdma_cm_id *endpoint(const char *address, const char *port, int listens)
{
	struct rdma_addrinfo hints = {.ai_flags = listens ? RAI_PASSIVE : 0, .ai_port_space = RDMA_PS_TCP}, *found;
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *id;

	require(!rdma_getaddrinfo(address, port, &hints, &found), "rdma_getaddrinfo");
	require(!rdma_create_ep(&id, found, NULL, &attr), "rdma_create_ep");
	rdma_freeaddrinfo(found);
	return id;
}

static void await_receive(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	require(rdma_get_recv_comp(id, &wc) == 1, "rdma_get_recv_comp");
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "greeting: receive: %s\n", ibv_wc_status_str(wc.status));
		exit(1);
	}
}

static void send_text(struct rdma_cm_id *id, char *text, struct ibv_mr *mr)
{
	struct ibv_wc wc;

	require(!rdma_post_send(id, NULL, text, strlen(text) + 1, mr, 0), "rdma_post_send");
	require(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS, "send");
}

static void serve(const char *address, const char *port)
{
	struct rdma_cm_id *listener = endpoint(address, port, 1), *id;
	static char name[SIZE], text[SIZE + 16];
	struct ibv_mr *name_mr, *text_mr;

	require(!rdma_listen(listener, 1), "rdma_listen");
	require(!rdma_get_request(listener, &id), "rdma_get_request");
	require((name_mr = rdma_reg_msgs(id, name, SIZE)) && (text_mr = rdma_reg_msgs(id, text, sizeof text)),
		"rdma_reg_msgs");
	/* The receive must be there before the client may send, which it may once it is accepted. */
	require(!rdma_post_recv(id, NULL, name, SIZE, name_mr), "rdma_post_recv");
	require(!rdma_accept(id, NULL), "rdma_accept");
	await_receive(id);
	snprintf(text, sizeof text, "Hello, %.*s!", SIZE - 1, name);
	send_text(id, text, text_mr);
	rdma_disconnect(id);
	rdma_dereg_mr(name_mr);
	rdma_dereg_mr(text_mr);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

static void greet(const char *address, const char *port, const char *name)
{
	struct rdma_cm_id *id = endpoint(address, port, 0);
	static char text[SIZE], answer[SIZE + 16];
	struct ibv_mr *text_mr, *answer_mr;

	snprintf(text, sizeof text, "%s", name);
	require((text_mr = rdma_reg_msgs(id, text, SIZE)) && (answer_mr = rdma_reg_msgs(id, answer, sizeof answer)),
		"rdma_reg_msgs");
	require(!rdma_post_recv(id, NULL, answer, sizeof answer, answer_mr), "rdma_post_recv");
	require(!rdma_connect(id, NULL), "rdma_connect");
	send_text(id, text, text_mr);
	await_receive(id);
	printf("%s\n", answer);
	rdma_disconnect(id);
	rdma_dereg_mr(text_mr);
	rdma_dereg_mr(answer_mr);
	rdma_destroy_ep(id);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "serve") == 0) {
		serve(argv[2], argv[3]);
	} else if (argc == 5 && strcmp(argv[1], "greet") == 0) {
		greet(argv[2], argv[3], argv[4]);
	} else {
		fprintf(stderr, "usage: greeting serve ADDRESS PORT | greeting greet ADDRESS PORT NAME\n");
		return 2;
	}
	return 0;
}
