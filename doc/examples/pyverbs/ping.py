# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A text from one end to the other by pyverbs, which rdma-core has for Python (python3-pyverbs).

    ping.py DEVICE GID-INDEX PORT                 the server: prints what comes
    ping.py DEVICE GID-INDEX PORT HOST TEXT       the client
"""
import json
import socket
import sys

from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.enums import IBV_ACCESS_LOCAL_WRITE, IBV_QPT_RC, IBV_SEND_SIGNALED, IBV_WC_SUCCESS, IBV_WR_SEND
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

SIZE = 256


class Peer:
    """The other end, over TCP."""

    def __init__(self, connection):
        self.connection = connection
        self.lines = connection.makefile("r")

    def exchange(self, own):
        """Tells it `own`; what it has told."""
        self.connection.sendall(json.dumps(own).encode() + b"\n")
        return json.loads(self.lines.readline())


def await_completion(cq):
    count = 0
    while count == 0:
        count, completions = cq.poll()
    if completions[0].status != IBV_WC_SUCCESS:
        sys.exit(f"ping.py: completion with status {completions[0].status}, vendor_err {completions[0].vendor_err:#x}")
    return completions[0]


def main():
    if len(sys.argv) not in (4, 6):
        sys.exit(__doc__)
    device, gid_index, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    context = Context(name=device)
    pd = PD(context)
    cq = CQ(context, 4)
    mr = MR(pd, SIZE, IBV_ACCESS_LOCAL_WRITE)
    qp = QP(pd, QPInitAttr(qp_type=IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(max_send_wr=1, max_recv_wr=1)))
    if len(sys.argv) == 6:
        connection = socket.create_connection((sys.argv[4], port))
    else:
        with socket.create_server(("", port)) as listener:
            connection = listener.accept()[0]
    other = Peer(connection)
    peer = other.exchange({"qp": qp.qp_num, "psn": qp.qp_num & 0xffff, "gid": context.query_gid(1, gid_index).gid})

    attr = QPAttr(port_num=1)
    attr.dest_qp_num, attr.rq_psn, attr.sq_psn = peer["qp"], peer["psn"], qp.qp_num & 0xffff
    attr.max_dest_rd_atomic = attr.max_rd_atomic = 1
    attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer = 14, 7, 7, 12
    attr.ah_attr = AHAttr(port_num=1, is_global=1, gr=GlobalRoute(dgid=GID(peer["gid"]), sgid_index=gid_index))
    qp.to_rts(attr)

    if len(sys.argv) == 4:
        qp.post_recv(RecvWR(sg=[SGE(mr.buf, SIZE, mr.lkey)], num_sge=1))
        other.exchange("ready")
        size = await_completion(cq).byte_len
        print(mr.read(size, 0).decode())
        other.exchange("done")
    else:
        text = sys.argv[5].encode()[:SIZE]
        mr.write(text, len(text))
        other.exchange("ready")
        qp.post_send(SendWR(opcode=IBV_WR_SEND, sg=[SGE(mr.buf, len(text), mr.lkey)], num_sge=1,
                            send_flags=IBV_SEND_SIGNALED))
        await_completion(cq)
        other.exchange("done")


if __name__ == "__main__":
    main()
