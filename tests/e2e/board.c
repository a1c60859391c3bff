/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A board that others write on, as an example of atomics and of RDMA Write with immediate.
 *
 *   board serve ADDRESS PORT               lends a board to one client, prints what appears on it
 *   board write ADDRESS PORT LINE...       writes lines on it, then closes it
 *
 * The server says where its board is in the private data of the accepted connection. Then it only waits:
 *
 *   fetch-and-add       draws the number of a free line; however many draw, each gets a number of its own
 *   write + immediate   puts the text there, and tells the server which line it is
 *   compare-and-swap    closes the board, if nobody has closed it before
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 64, LINE = 80, RECEIVES = 16, DEPTH = 4 };

/* Words that atomics work on must be aligned to 8 octets. */
struct board {
	uint64_t next;   /* fetch-and-add */
	uint64_t closed; /* compare-and-swap: 0, or who closed it */
	char lines[LINES][LINE];
};

/* In network byte order, as everything that travels. */
struct lease {
	uint64_t address;
	uint32_t rkey;
	uint32_t unused; /* so that no byte of it is undefined */
};

static void require(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "board: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct rdma_cm_id *endpoint(const char *address, const char *port, int listens)
{
	struct rdma_addrinfo hints = {.ai_flags = listens ? RAI_PASSIVE : 0, .ai_port_space = RDMA_PS_TCP}, *found;
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *id;

	require(!rdma_getaddrinfo(address, port, &hints, &found), "rdma_getaddrinfo");
	require(!rdma_create_ep(&id, found, NULL, &attr), "rdma_create_ep");
	rdma_freeaddrinfo(found);
	return id;
}

/* ---- the server ---- */

/* Immediate data takes one receive, and none of its memory: it needs no SGE. */
static void post_receive(struct rdma_cm_id *id)
{
	struct ibv_recv_wr wr = {0}, *bad;
	int error = ibv_post_recv(id->qp, &wr, &bad);

	errno = error;
	require(!error, "ibv_post_recv");
}

static int serve(const char *address, const char *port)
{
	static struct board board;
	struct rdma_cm_id *listener = endpoint(address, port, 1), *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	require(!rdma_listen(listener, 1), "rdma_listen");
	require(!rdma_get_request(listener, &id), "rdma_get_request");

	/* Atomics change memory, so this right needs the local one, as the right to write does. */
	mr = ibv_reg_mr(id->pd, &board, sizeof(board),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	require(mr != NULL, "ibv_reg_mr");
	for (int i = 0; i < RECEIVES; i++)
		post_receive(id);

	struct lease lease = {.address = htobe64((uintptr_t)&board), .rkey = htobe32(mr->rkey)};
	struct rdma_conn_param param = {
		.private_data = &lease,
		.private_data_len = sizeof(lease),
		.responder_resources = DEPTH, /* Reads and atomics that the client may have outstanding */
		.initiator_depth = 0,
	};
	require(!rdma_accept(id, &param), "rdma_accept");

	/* The Write that came with it is in memory before this completes. */
	while (rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS) {
		uint32_t line;

		require(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && (wc.wc_flags & IBV_WC_WITH_IMM), "a completion");
		line = be32toh(wc.imm_data);
		require(line < LINES, "the number of a line");
		printf("line %" PRIu32 ", %" PRIu32 " octets: %.*s\n", line, wc.byte_len, LINE, board.lines[line]);
		post_receive(id);
	}
	/* Receives that were never used are flushed when the client is gone. */
	printf("%" PRIu64 " lines, closed by %" PRIu64 "\n", board.next, board.closed);

	rdma_disconnect(id);
	ibv_dereg_mr(mr);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
	return board.closed == 0;
}

/* ---- the client ---- */

struct writer {
	struct rdma_cm_id *id;
	struct lease lease; /* in host byte order */
	uint64_t result;    /* where atomics leave what the word was before */
	struct ibv_mr *result_mr;
	char text[LINE];
	struct ibv_mr *text_mr;
};

static void post_and_wait(struct writer *w, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int error = ibv_post_send(w->id->qp, wr, &bad);

	errno = error;
	require(!error, "ibv_post_send");
	require(rdma_get_send_comp(w->id, &wc) == 1, "rdma_get_send_comp");
	if (wc.status == IBV_WC_SUCCESS)
		return;
	fprintf(stderr, "board: %s\n", ibv_wc_status_str(wc.status));
	exit(1);
}

static uint64_t atomic(struct writer *w, enum ibv_wr_opcode opcode, size_t offset, uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge sge = {.addr = (uintptr_t)&w->result, .length = 8, .lkey = w->result_mr->lkey};
	struct ibv_send_wr wr = {
		.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.atomic = {.remote_addr = w->lease.address + offset,
			      .rkey = w->lease.rkey,
			      .compare_add = compare_add,
			      .swap = swap},
	};

	post_and_wait(w, &wr);
	return w->result;
}

static void write_line(struct writer *w, const char *text)
{
	uint64_t line = atomic(w, IBV_WR_ATOMIC_FETCH_AND_ADD, offsetof(struct board, next), 1, 0);
	struct ibv_sge sge = {.addr = (uintptr_t)w->text, .lkey = w->text_mr->lkey};

	if (line >= LINES) {
		fprintf(stderr, "board: it is full\n");
		exit(1);
	}
	snprintf(w->text, sizeof(w->text), "%s", text);
	sge.length = (uint32_t)strlen(w->text);

	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.sg_list = &sge,
		.num_sge = 1,
		.imm_data = htobe32((uint32_t)line),
		.wr.rdma = {.remote_addr = w->lease.address + offsetof(struct board, lines[line]),
			    .rkey = w->lease.rkey},
	};
	post_and_wait(w, &wr);
	printf("wrote line %" PRIu64 "\n", line);
}

static int write_board(const char *address, const char *port, char **lines, int count)
{
	struct writer w = {.id = endpoint(address, port, 0)};
	struct rdma_conn_param param = {.initiator_depth = DEPTH};
	const uint64_t me = 4711, other = 4712;

	require(!rdma_connect(w.id, &param), "rdma_connect");
	require(w.id->event->param.conn.private_data_len >= sizeof(w.lease), "the lease");
	memcpy(&w.lease, w.id->event->param.conn.private_data, sizeof(w.lease));
	w.lease.address = be64toh(w.lease.address);
	w.lease.rkey = be32toh(w.lease.rkey);

	w.result_mr = ibv_reg_mr(w.id->pd, &w.result, sizeof(w.result), IBV_ACCESS_LOCAL_WRITE);
	w.text_mr = ibv_reg_mr(w.id->pd, w.text, sizeof(w.text), 0);
	require(w.result_mr && w.text_mr, "ibv_reg_mr");

	for (int i = 0; i < count; i++)
		write_line(&w, lines[i]);
	/* Each answers with what was there: 0, so the first has closed it; then who was faster. */
	printf("closed, found %" PRIu64 "\n",
	       atomic(&w, IBV_WR_ATOMIC_CMP_AND_SWP, offsetof(struct board, closed), 0, me));
	printf("too late, found %" PRIu64 "\n",
	       atomic(&w, IBV_WR_ATOMIC_CMP_AND_SWP, offsetof(struct board, closed), 0, other));

	rdma_disconnect(w.id);
	ibv_dereg_mr(w.result_mr);
	ibv_dereg_mr(w.text_mr);
	rdma_destroy_ep(w.id);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "serve"))
		return serve(argv[2], argv[3]);
	if (argc >= 4 && !strcmp(argv[1], "write"))
		return write_board(argv[2], argv[3], argv + 4, argc - 4);
	fprintf(stderr, "usage: board serve ADDRESS PORT\n       board write ADDRESS PORT LINE...\n");
	return 2;
}
