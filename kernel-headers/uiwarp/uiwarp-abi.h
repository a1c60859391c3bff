// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the provider (libuiwarp-rdmavNN.so) and the preload library (libuiwarp-preload.so) agree on
 * with libuiwarp.so.0. Private to uiwarp: all three come from one build and say so by
 * UIWARP_ABI_VERSION. Plain C; of libibverbs only the public structures of <infiniband/verbs.h>.
 *
 * Unless said otherwise functions may be called from any thread and return 0 or a positive errno.
 */
#ifndef UIWARP_ABI_H
#define UIWARP_ABI_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UIWARP_ABI_VERSION 17
#define UIWARP_EXPORT __attribute__((visibility("default")))

struct uiwarp_device;
struct uiwarp_context;
struct uiwarp_pd;
struct uiwarp_td;
struct uiwarp_mr;
struct uiwarp_mw;
struct uiwarp_ah;
struct uiwarp_cq;
struct uiwarp_srq;
struct uiwarp_qp;

UIWARP_EXPORT int uiwarp_abi_version(void);

/*
 * What the provider itself refuses, with this error, which is returned: said at the default log level, once for each
 * sentence (printf-like) in a process.
 */
UIWARP_EXPORT int uiwarp_refuse(int error, const char *sentence, ...) __attribute__((format(printf, 2, 3)));
/*
 * The provider's part of an object, of malloc(), which the same thread has just destroyed: freed, or kept for a while so
 * that who uses it all the same can be told so.
 */
UIWARP_EXPORT void uiwarp_object_free(void *object);
/*
 * Tells that `call`, which destroys an object, has waited for a second, since the program got `count` events of it and
 * did not acknowledge them by `function`; or, by a count below 0, that it will wait for ever, since more were
 * acknowledged than it got.
 */
UIWARP_EXPORT void uiwarp_acks_missing(const char *call, const char *function, int32_t count);

/*
 * Told to instruments only, by the stack's own threads or whoever polls: the peer of the queue pair named memory that
 * it may not use, `length` bytes or a segment's (1: that was reported with what is wrong, so that a warning has nothing
 * to add); and a message of the peer has waited that long for a receive, which was posted then, or the connection has
 * ended; for that reason if `gave_up`.
 */
UIWARP_EXPORT int uiwarp_peer_refused(uint32_t qp_num, uint32_t rkey, uint64_t address, uint64_t length);
UIWARP_EXPORT void uiwarp_receive_awaited(uint32_t qp_num, uint64_t nanoseconds, int gave_up);
/*
 * Likewise, while the queue pair is destroyed or moved to RESET: it has taken these receives, of the shared queue if it
 * has one, by their wr_id, and nobody will poll a completion of them.
 */
UIWARP_EXPORT void uiwarp_receives_dropped(uint32_t qp_num, const uint64_t *wr_ids, uint32_t count);
/*
 * Likewise: a datagram that needs that many bytes, those of the GRH included, was dropped, since the oldest receive has
 * fewer; the receive stays. 1: that was reported, so that a warning has nothing to add.
 */
UIWARP_EXPORT int uiwarp_datagram_too_long(uint32_t qp_num, uint64_t wr_id, uint64_t needed);
/*
 * Likewise, before completions are flushed for it: the peer has refused a Write, of which it names a segment's rkey and
 * address, and ended the connection with that Terminate code (RFC 5040 4.8); the Write has completed before. 1: that was
 * reported.
 */
UIWARP_EXPORT int uiwarp_write_refused(uint32_t qp_num, uint32_t rkey, uint64_t address, int code);
/* Likewise, before anything is sent: the queue pair has got its TCP connection, between these addresses. */
UIWARP_EXPORT void uiwarp_connected(uint32_t qp_num, const struct sockaddr_storage *local,
				    const struct sockaddr_storage *peer);
/*
 * Right behind it: by which MPA start-up frames, each without the private data of programs (RFC 5044 7.1.1, the block
 * of RFC 6581 included, else zeros), and since when this end has had the TCP connection and its agreement
 * (CLOCK_MONOTONIC, nanoseconds). Told `again` every now and then before an FPDU, for who does not keep it.
 */
struct uiwarp_agreement {
	struct sockaddr_storage local, peer;
	int initiator; /* this end sent the Request */
	int again;
	int64_t began, agreed;
	uint8_t request[24], reply[24];
};
UIWARP_EXPORT void uiwarp_agreed(uint32_t qp_num, const struct uiwarp_agreement *agreement);
/*
 * Where UIWARP_TRACE asks for it: an FPDU whose last byte TCP has taken, or has brought. Of each direction one thread
 * tells, in the order of the stream; of what is sent with the time before TCP took it. `head` has `head_size` bytes of
 * the ULPDU: DDP header, and behind it what the protocol itself says, no payload of programs.
 */
struct uiwarp_fpdu {
	int sent;	   /* or received */
	int64_t time;	   /* CLOCK_MONOTONIC, nanoseconds */
	uint64_t position; /* bytes of its direction before it, from the first FPDU on, markers included */
	uint16_t size;	   /* of the ULPDU, bytes */
	uint16_t head_size;
	uint8_t head[72];
};
UIWARP_EXPORT void uiwarp_fpdu_passed(uint32_t qp_num, const struct uiwarp_fpdu *fpdu);
/* The program has taken an event by ibv_get_async_event(): an enum ibv_event_type, of a queue pair or of none (0). */
UIWARP_EXPORT void uiwarp_async_event_taken(uint32_t qp_num, uint32_t event);

/*
 * rdma_cm, told to instruments only: the program has taken an event of the id that it calls `uid` (librdmacm: the
 * address of its own structure, which begins with a struct rdma_cm_id), an enum
 * rdma_cm_event_type with its status, and it has destroyed that id, of which it has
 * taken `events` in all; librdmacm waits until that many were acknowledged. Called on the thread of the program's call.
 */
UIWARP_EXPORT void uiwarp_cm_event_taken(uint64_t uid, uint32_t event, int status);
UIWARP_EXPORT void uiwarp_cm_id_destroyed(uint64_t uid, uint32_t events);

/*
 * rdma_cm, asked of instruments only: what becomes of a connection that the program begins, with this queue pair of
 * its own, or 0, to this port of the peer. Called on the thread of the program's call.
 */
enum uiwarp_connect_fate {
	UIWARP_CONNECT_GOES_ON,
	UIWARP_CONNECT_REJECTED, /* as by the peer's program */
	UIWARP_CONNECT_UNANSWERED,
	UIWARP_CONNECT_UNREACHABLE, /* EHOSTUNREACH */
};
UIWARP_EXPORT enum uiwarp_connect_fate uiwarp_cm_connecting(uint16_t port, uint32_t qp_num);
/*
 * Likewise of a request for a connection, or for the queue pair behind a service id, that has come between these
 * addresses and that the program does not know of yet. UIWARP_CONNECT_UNREACHABLE is not for it. Called on a thread of
 * the stack's.
 */
UIWARP_EXPORT enum uiwarp_connect_fate uiwarp_cm_accepting(const struct sockaddr_storage *local,
							   const struct sockaddr_storage *peer);

/*
 * Asked of instruments only: what becomes of a datagram that has come for an IBV_QPT_UD queue pair. *delay is looked
 * at of one that is late. Thread: any.
 */
enum uiwarp_datagram_fate {
	UIWARP_DATAGRAM_ARRIVES,
	UIWARP_DATAGRAM_LOST,
	UIWARP_DATAGRAM_TWICE, /* it arrives two times */
	UIWARP_DATAGRAM_OVERTAKEN, /* it arrives behind the next one */
	UIWARP_DATAGRAM_LATE, /* it arrives when *delay nanoseconds have passed, and is lost where too many are late */
};
UIWARP_EXPORT enum uiwarp_datagram_fate uiwarp_datagram_arriving(uint32_t qp_num, uint64_t *delay);

/*
 * For instruments: what did not happen to a device is told as if it had, by IBV_EVENT_* of devices and ports; its port
 * is down until it is let go again; its GIDs move one index up. `device`: its name, or "*", all that there are: a port that is
 * held down both ways is let go both ways. ENODEV: there is none of that name; EINVAL: another event.
 */
UIWARP_EXPORT int uiwarp_device_pretend(const char *device, enum ibv_event_type event);
UIWARP_EXPORT int uiwarp_device_hold_down(const char *device, int down);
UIWARP_EXPORT int uiwarp_device_shift_gids(const char *device);

/* ---- devices: valid for the life of the process, also when the network interface has gone ---- */

/* NULL when `ibdev_name` ("uiw_lo") is not one of ours that is there now. */
UIWARP_EXPORT const struct uiwarp_device *uiwarp_device_find(const char *ibdev_name);

/* ---- context: ibv_open_device ---- */

/*
 * Opens a device: starts the engine when it is the first. *async_fd becomes a descriptor that
 * ibv_get_async_event can read (struct ib_uverbs_async_event_desc records); it belongs to the caller,
 * who closes it after uiwarp_context_close(). Errors: ENODEV (NULL, or it has gone), EMFILE, ENOMEM, EPERM
 * (io_uring refused), EINVAL (a wrong UIWARP_* setting, already reported). From then on the descriptor tells what
 * happens to the network interface. What a process opened is dead in its forks: there, making, modifying and posting
 * to queue pairs gives ENODEV. A fork that opens a device itself may use that.
 * Contexts of the same `command` (uiwarp_vk_command) share their protection domains and memory regions, by handle; 0 is
 * that of no other.
 */
UIWARP_EXPORT int uiwarp_context_open(const struct uiwarp_device *device, uint64_t command,
				      struct uiwarp_context **context, int *async_fd);
/* ibv_context.num_comp_vectors: at least 1. */
UIWARP_EXPORT int uiwarp_comp_vectors(void);
/* Every object of the context must be gone. The last context stops the engines. */
UIWARP_EXPORT void uiwarp_context_close(struct uiwarp_context *context);

/*
 * To be called after libibverbs has read a record from an async descriptor or a completion channel of
 * the context: events that found a full pipe may have room now. Costs one load when there are none. `asynchronous`: it
 * was an async descriptor.
 */
UIWARP_EXPORT void uiwarp_context_events_taken(struct uiwarp_context *context, int asynchronous);

/* Fills `attr`, of which the caller knows the first `size` octets. */
UIWARP_EXPORT int uiwarp_query_device(struct uiwarp_context *context, struct ibv_device_attr_ex *attr,
				      size_t size);
/* EINVAL when port is not 1. */
UIWARP_EXPORT int uiwarp_query_port(struct uiwarp_context *context, uint8_t port, struct ibv_port_attr *attr);

/* ---- protection domains and memory ---- */

UIWARP_EXPORT int uiwarp_pd_alloc(struct uiwarp_context *context, struct uiwarp_pd **pd);
/* For instruments: the name of its device, for the life of the process. */
UIWARP_EXPORT const char *uiwarp_pd_device(struct uiwarp_pd *pd);
/*
 * A parent domain: another object for what `pd` stands for, so that memory of either is memory of both. It uses
 * `pd`, and `td` unless that is NULL. EINVAL: of another context; ENOMEM: limit, which protection domains and parent
 * domains share.
 */
UIWARP_EXPORT int uiwarp_pd_alloc_parent(struct uiwarp_context *context, struct uiwarp_pd *pd, struct uiwarp_td *td,
					 struct uiwarp_pd **parent);
/* EBUSY while something uses it, in any context; EINVAL: it was called already, in another one. */
UIWARP_EXPORT int uiwarp_pd_dealloc(struct uiwarp_pd *pd);
/*
 * The handle of what it stands for, which no other object of the process has. Importing makes another object for that,
 * in another context of the same command: EINVAL: there is none that is not deallocated; ENOMEM: limit. Unimporting ends
 * the object and not what it stands for; it goes by itself with the last that uses it.
 */
UIWARP_EXPORT uint32_t uiwarp_pd_handle(struct uiwarp_pd *pd);
UIWARP_EXPORT int uiwarp_pd_import(struct uiwarp_context *context, uint32_t handle, struct uiwarp_pd **pd);
UIWARP_EXPORT void uiwarp_pd_unimport(struct uiwarp_pd *pd);
/* A thread domain: a promise of the program's that nothing is made of. EBUSY while a parent domain uses it. */
UIWARP_EXPORT int uiwarp_td_alloc(struct uiwarp_context *context, struct uiwarp_td **td);
UIWARP_EXPORT int uiwarp_td_dealloc(struct uiwarp_td *td);

/* EFAULT: not mapped with that access; EINVAL: flags, wrap; ENOMEM: limit. */
UIWARP_EXPORT int uiwarp_mr_reg(struct uiwarp_pd *pd, void *addr, size_t length, uint64_t iova, int access,
				struct uiwarp_mr **mr, uint32_t *lkey, uint32_t *rkey);
/*
 * Changes what IBV_REREG_MR_CHANGE_* in `flags` name. The keys stay when nothing but the rights change; else
 * there are new ones. Errors as above, and EBUSY while a memory window is bound to it: nothing has changed then.
 */
UIWARP_EXPORT int uiwarp_mr_rereg(struct uiwarp_mr *mr, int flags, struct uiwarp_pd *pd, void *addr, size_t length,
				  int access, uint32_t *lkey, uint32_t *rkey);
/*
 * Returns when no octet can be placed into the memory any more. EBUSY while a memory window is bound to it; EINVAL, as
 * of mr_rereg: it was called already, in another context.
 */
UIWARP_EXPORT int uiwarp_mr_dereg(struct uiwarp_mr *mr);
/* As those of protection domains. Importing tells the keys and the length; its protection domain stays what it is. */
UIWARP_EXPORT uint32_t uiwarp_mr_handle(struct uiwarp_mr *mr);
UIWARP_EXPORT int uiwarp_mr_import(struct uiwarp_pd *pd, uint32_t handle, struct uiwarp_mr **mr, uint32_t *lkey,
				   uint32_t *rkey, uint64_t *length);
UIWARP_EXPORT void uiwarp_mr_unimport(struct uiwarp_mr *mr);

/*
 * ibv_advise_mr: advice is an enum ibv_advise_mr_advice. EOPNOTSUPP: none that is known; EINVAL: flags, no SGE, or
 * the key of a memory window; ENOENT: no region for paging on demand has this key; EPERM: of another protection
 * domain, or not to be written to; EFAULT: out of the region's bounds, or not mapped.
 */
UIWARP_EXPORT int uiwarp_mr_advise(struct uiwarp_pd *pd, int advice, uint32_t flags, const struct ibv_sge *sges,
				   uint32_t count);

/* type: enum ibv_mw_type. EINVAL: there is no such type; ENOMEM: limit. */
UIWARP_EXPORT int uiwarp_mw_alloc(struct uiwarp_pd *pd, int type, struct uiwarp_mw **mw, uint32_t *rkey);
/* Ends its binding: returns when no octet can be placed through it any more. */
UIWARP_EXPORT int uiwarp_mw_dealloc(struct uiwarp_mw *mw);
/* The key for the next binding of a window whose key is `rkey`: another one, and hard to guess. */
UIWARP_EXPORT int uiwarp_mw_next_rkey(struct uiwarp_mw *mw, uint32_t rkey, uint32_t *next);
/* The ibv_mw that work requests name is the beginning of this. */
struct uiwarp_ibv_mw {
	struct ibv_mw mw;
	struct uiwarp_mw *core;
};

/* ---- address handles ---- */

/*
 * EOPNOTSUPP: devices of this face have none (UIWARP_FACE); EINVAL: port, no GID, no such GID index, a destination that
 * is neither the address of a host nor of a multicast group, or one that the source does not reach; ENETUNREACH,
 * EHOSTUNREACH: no route; ENOMEM: limit.
 */
UIWARP_EXPORT int uiwarp_ah_create(struct uiwarp_pd *pd, const struct ibv_ah_attr *attr, struct uiwarp_ah **ah);
UIWARP_EXPORT int uiwarp_ah_destroy(struct uiwarp_ah *ah);
/* The ibv_ah that work requests name is the beginning of this. */
struct uiwarp_ibv_ah {
	struct ibv_ah ah;
	struct uiwarp_ah *core;
};

/* ---- completion queues ---- */

/*
 * channel_fd: descriptor of the completion channel or -1; parent_domain: one that it uses, or NULL; `user` is the
 * ibv_cq that events name. *actual gets the capacity. Errors: EINVAL (cqe 0 or over the limit, comp_vector,
 * parent_domain is none of the context), ENOMEM, EMFILE.
 */
UIWARP_EXPORT int uiwarp_cq_create(struct uiwarp_context *context, int cqe, int channel_fd, int comp_vector,
				   struct uiwarp_pd *parent_domain, void *user, struct uiwarp_cq **cq, int *actual);
/* The program promises that one thread at a time polls it: nobody relies on that but instruments. Before the first poll. */
UIWARP_EXPORT void uiwarp_cq_single_threaded(struct uiwarp_cq *cq);
/* Instead of a number of events: nobody acknowledges any, since this is a fork of the process that made it. */
#define UIWARP_NO_EVENTS UINT32_MAX
/*
 * EBUSY while a QP uses it. On success tells how many completion events and async events naming this CQ
 * the application has read or will read from the descriptors (queued ones are purged): the caller waits
 * until as many were acknowledged.
 */
UIWARP_EXPORT int uiwarp_cq_destroy(struct uiwarp_cq *cq, uint32_t *comp_events, uint32_t *async_events);
UIWARP_EXPORT int uiwarp_cq_resize(struct uiwarp_cq *cq, int cqe, int *actual);
/*
 * Count or -errno. The manual defines src_qp of received datagrams only. Of a request of a send queue of a QP that is
 * connected it tells instruments, should there be any, which one it is: they count from 1 since the QP was created or
 * reset, modulo 2^32.
 */
UIWARP_EXPORT int uiwarp_cq_poll(struct uiwarp_cq *cq, int count, struct ibv_wc *wc);
UIWARP_EXPORT int uiwarp_cq_arm(struct uiwarp_cq *cq, int solicited_only);
/* For instruments: it has overflowed, as far as anybody is told. */
UIWARP_EXPORT void uiwarp_cq_overrun(struct uiwarp_cq *cq);
/* For instruments: the event of a queue that is armed comes although nothing was added. */
UIWARP_EXPORT void uiwarp_cq_wake(struct uiwarp_cq *cq);
/* 0: no; else UIWARP_OVERFLOWED, it has lost a completion, for which it had no room, or UIWARP_OVERRUN. Costs one load. */
enum {
	UIWARP_OVERFLOWED = 1,
	UIWARP_OVERRUN = 2 /* by a rule of --faults */
};
UIWARP_EXPORT int uiwarp_cq_has_overflowed(struct uiwarp_cq *cq);
/* How many completions a poll would find, and how many of them are those of receives that succeeded. */
UIWARP_EXPORT uint32_t uiwarp_cq_waiting(struct uiwarp_cq *cq, uint32_t *messages);
/* Told to instruments only: the program has taken an event of it by ibv_get_cq_event(). Thread: the one that has. */
UIWARP_EXPORT void uiwarp_cq_event_taken(struct uiwarp_cq *cq);

/* ---- shared receive queues ---- */

UIWARP_EXPORT int uiwarp_srq_create(struct uiwarp_pd *pd, struct ibv_srq_attr *attr, void *user,
				    struct uiwarp_srq **srq);
UIWARP_EXPORT int uiwarp_srq_modify(struct uiwarp_srq *srq, struct ibv_srq_attr *attr, int mask);
UIWARP_EXPORT int uiwarp_srq_query(struct uiwarp_srq *srq, struct ibv_srq_attr *attr);
UIWARP_EXPORT int uiwarp_srq_destroy(struct uiwarp_srq *srq, uint32_t *async_events); /* EBUSY */
UIWARP_EXPORT int uiwarp_srq_post_recv(struct uiwarp_srq *srq, struct ibv_recv_wr *wr,
				       struct ibv_recv_wr **bad);
/* For instruments: for how many more receives there is room. */
UIWARP_EXPORT uint32_t uiwarp_srq_room(struct uiwarp_srq *srq);

/* ---- queue pairs ---- */

struct uiwarp_qp_init {
	struct uiwarp_cq *send_cq;
	struct uiwarp_cq *recv_cq;
	struct uiwarp_srq *srq; /* NULL: own receive queue */
	struct ibv_qp_cap cap;  /* in: wanted; out: what it got */
	int qp_type;
	int sq_sig_all;
	void *user; /* the ibv_qp that async events name */
};

/*
 * EOPNOTSUPP: devices of this face have no such type; EINVAL: over the limits; ENOMEM; of IBV_QPT_UD also
 * EADDRINUSE and EMFILE: no port for it.
 */
UIWARP_EXPORT int uiwarp_qp_create(struct uiwarp_pd *pd, struct uiwarp_qp_init *init, struct uiwarp_qp **qp,
				   uint32_t *qp_num);
UIWARP_EXPORT int uiwarp_qp_destroy(struct uiwarp_qp *qp, uint32_t *async_events);
UIWARP_EXPORT int uiwarp_qp_modify(struct uiwarp_qp *qp, const struct ibv_qp_attr *attr, int mask);
/*
 * For instruments: the connection that the queue pair has is reset, and fails as if something on the way had done that.
 * Without one nothing happens. Not of IBV_QPT_UD.
 */
UIWARP_EXPORT void uiwarp_qp_break(struct uiwarp_qp *qp);
/*
 * For instruments: from now on, or no more, nothing of its peer arrives at the queue pair, whatever connection it has
 * or gets, and the peer gets no acknowledgement, as with a cable that is pulled; TCP sends it again later. What this
 * end sends goes out. Nothing happens to IBV_QPT_UD. Does not wait for the stack's threads.
 */
UIWARP_EXPORT void uiwarp_qp_deafen(struct uiwarp_qp *qp, int deaf);
/*
 * For instruments: for how many nanoseconds a peer that is to answer may say nothing before the connection has failed.
 * 0: for ever, as of all but IBV_QPT_RC. Does not wait for the stack's threads.
 */
UIWARP_EXPORT int64_t uiwarp_qp_patience(struct uiwarp_qp *qp);
UIWARP_EXPORT int uiwarp_qp_query(struct uiwarp_qp *qp, struct ibv_qp_attr *attr, int mask,
				  struct ibv_qp_init_attr *init);
UIWARP_EXPORT int uiwarp_qp_post_send(struct uiwarp_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
UIWARP_EXPORT int uiwarp_qp_post_recv(struct uiwarp_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/*
 * ibv_attach_mcast, ibv_detach_mcast. EOPNOTSUPP: devices of this face have no multicast; EINVAL: not a UD queue pair,
 * no group's GID, or not attached; ENOMEM: limit; EMFILE, ENODEV: the interface has gone. Attaching twice is the same
 * as once. An attached queue pair is not destroyed: EBUSY.
 */
UIWARP_EXPORT int uiwarp_qp_attach(struct uiwarp_qp *qp, const union ibv_gid *gid);
UIWARP_EXPORT int uiwarp_qp_detach(struct uiwarp_qp *qp, const union ibv_gid *gid);

/*
 * ibv_wr_start() and its family: work requests that are posted together or not at all. From begin to end
 * the caller alone can post to this queue pair. add() copies what it is given, inline octets included,
 * and fails as uiwarp_qp_post_send() would. end() with publish = 0 forgets all of them; with 1 it posts
 * them, or forgets them and says EINVAL when the queue pair is not connected, or one of them has no address handle
 * though it is a UD queue pair's. address() gives the last one that was added its own, in place of that of its struct
 * ibv_send_wr, which may be NULL; EOPNOTSUPP: not a UD queue pair.
 */
UIWARP_EXPORT void uiwarp_qp_batch_begin(struct uiwarp_qp *qp);
UIWARP_EXPORT int uiwarp_qp_batch_add(struct uiwarp_qp *qp, const struct ibv_send_wr *wr);
UIWARP_EXPORT int uiwarp_qp_batch_address(struct uiwarp_qp *qp, const struct ibv_ah *ah, uint32_t remote_qpn,
					  uint32_t remote_qkey);
UIWARP_EXPORT int uiwarp_qp_batch_end(struct uiwarp_qp *qp, int publish);
/* IBV_QP_EX_WITH_*: what may be asked for in send_ops_flags for a queue pair of that type (enum ibv_qp_type). */
UIWARP_EXPORT uint64_t uiwarp_qp_send_ops(int qp_type);
/* The most octets that a queue pair can be asked to send inline. */
#define UIWARP_MAX_INLINE 1024

/* ---- the virtual kernel: called by the preload library ----
 * These behave like the system call: value, or -1 with errno set, exactly as the real one would. */

/*
 * When `path` names something RDMA that we provide, writes the path to use instead to `out` (PATH_MAX
 * octets) and returns 1; 0: not ours, use it as it is, whatever `out` has. Only called for paths that begin with
 * /sys/class/infiniband, /sys/class/misc/rdma_cm or /dev/infiniband, or may come to lead there by "//" and "/.".
 */
UIWARP_EXPORT int uiwarp_vk_redirect(const char *path, char *out, size_t out_size);

/*
 * How many octets of `path` are the directory that redirected paths begin with, 0: it is no such path.
 * What the application gets to see of one (realpath, glob) must not show them.
 */
UIWARP_EXPORT size_t uiwarp_vk_root_length(const char *path);

/* open() of /dev/infiniband/rdma_cm, /dev/infiniband/uverbsN or a counter of a port; -2 when `path` is none. */
UIWARP_EXPORT int uiwarp_vk_open(const char *path, int flags);

/*
 * Which descriptors are ours: one octet per descriptor number below UIWARP_VK_FDS, UIWARP_VK_FD_DEVICE for a virtual
 * device, another value that is not zero for what the stack has made for itself. The preload library looks here before
 * anything else, so that foreign descriptors cost nothing.
 */
#define UIWARP_VK_FDS 65536
#define UIWARP_VK_FD_DEVICE 1
UIWARP_EXPORT const uint8_t *uiwarp_vk_fd_flags(void);

/* write() to a descriptor flagged as a device. *handled = 0: it is none after all, use the real call. */
UIWARP_EXPORT ssize_t uiwarp_vk_write(int fd, const void *buffer, size_t size, int *handled);
/* Copies memory that the program names, of which not all may be there: 0; -1 and EFAULT. */
UIWARP_EXPORT int uiwarp_vk_copy_in(void *to, const void *from, size_t size);
/* socket(AF_NETLINK, type, NETLINK_RDMA); -2: not ours, use the real call. */
UIWARP_EXPORT int uiwarp_vk_socket(int type);
/*
 * send(), sendto() or sendmsg() on a descriptor flagged as a device; address may be NULL. *handled = 0: it is no
 * socket of ours, use the real call.
 */
UIWARP_EXPORT ssize_t uiwarp_vk_send(int fd, const void *buffer, size_t size, const struct sockaddr *address,
				     socklen_t address_size, int *handled);
/*
 * ioctl() on a descriptor flagged as a device. *handled = 0: use the real call.
 */
UIWARP_EXPORT int uiwarp_vk_ioctl(int fd, unsigned long request, void *argument, int *handled);
/*
 * Called by the provider. The number of the open command file behind `fd`, which copies by dup() share and no other has;
 * 0: it is none that this process has opened.
 */
UIWARP_EXPORT uint64_t uiwarp_vk_command(int fd);
/*
 * The next UVERBS_METHOD_ASYNC_EVENT_ALLOC on that descriptor is to answer async_fd, whose owner does not change.
 * EBADF: it is no command descriptor of this process.
 */
UIWARP_EXPORT int uiwarp_vk_give_async(int fd, int async_fd);
/*
 * 1: the stack has made this flagged descriptor for itself, in this process. The program cannot mean it,
 * so it stays open, whatever closes or replaces numbers. Changes nothing.
 */
UIWARP_EXPORT int uiwarp_vk_keeps(int fd);
/* close() was called, or the descriptor is about to be reused (dup2). Before the real close. */
UIWARP_EXPORT void uiwarp_vk_closing(int fd);
/* fstat() of a descriptor flagged ours succeeded: make it look like the character device. */
struct stat;
UIWARP_EXPORT void uiwarp_vk_fix_stat(int fd, struct stat *st);
/* dup()/dup2()/F_DUPFD made `copy` of a flagged descriptor. */
UIWARP_EXPORT void uiwarp_vk_dup(int fd, int copy);
/*
 * _exit() was called: peers may still ask whether what they have sent has arrived, as they may before a queue pair is
 * destroyed. 200 ms at most, and nothing where no peer is to ask. Does nothing in a child that shares the memory
 * (vfork). Thread: any, and signal handlers.
 */
UIWARP_EXPORT void uiwarp_vk_leave(void);

#ifdef __cplusplus
}
#endif

#endif
