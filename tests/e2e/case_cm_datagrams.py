# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Datagrams by rdma_cm, which the RoCE face has: service id resolution and multicast groups."""
import os

from case_face import ROCE
from harness import expect
from registry import LO4, case


@case("datagram-ids", worlds=LO4, seconds=60, reduced=True)
def ids(world):
    """Events and their accounting by librdmacm, without queue pairs."""
    for part in ("resolve", "meet", "groups", "stand-in"):
        tool = world.run("client", os.path.join(world.bin, "uiwarp-datagram-ids"), part, settings=ROCE)
        expect(tool.output.endswith("done\n"), part, tool)
