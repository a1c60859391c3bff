# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Programs without mistakes under `uiwarp run --check`: whoever has findings ends with status 66."""
import os
import re

from case_exchange import gid_index, pingpong
from case_perftest import exchange
from case_rping import compared, connect, serve
from harness import expect
from registry import case

CHECK = {"UIWARP_CHECK": "on"}
FACES = [CHECK, {**CHECK, "UIWARP_FACE": "roce"}]


@case("check-pingpong", worlds=["lo4-root"], seconds=90)
def pingpongs(world):
    for settings in FACES:
        for tool in ("ibv_rc_pingpong", "ibv_srq_pingpong"):
            pingpong(world, [tool, "-c"], [(gid_index(world), settings)] * 2, 30)


@case("check-rping", worlds=["lo4-root"], seconds=60)
def rping(world):
    for settings in FACES:
        port = world.port()
        server = serve(world, port, "-C", "10", settings=settings)
        client = connect(world, port, "-C", "10", "-V", "-v", settings=settings)
        world.finish(client, 20, 0, server)
        world.finish(server, 20, 0, client)
        expect(compared(client, 10), "10 pings were not all compared", client, server)


@case("check-perftest", worlds=["lo4-root"], seconds=120, serial=True)
def perftest(world):
    for tool in ("ib_write_bw", "ib_read_lat", "ib_send_lat", "ib_atomic_bw"):
        exchange(world, tool, ["-d", world.device, "-n", "500"], 25, cm=False, settings=CHECK)


@case("check-room", worlds=["lo4-root"], seconds=60)
def room(world):
    """Full queue pairs take at most twice as much of the heap under it."""
    def taken(settings):
        tool = world.run("client", os.path.join(world.bin, "uiwarp-room"), settings=settings)
        return [tuple(map(int, line.split())) for line in tool.output.splitlines() if re.fullmatch(r"\d+ \d+ \d+", line)]
    pairs = list(zip(taken(None), taken(CHECK), strict=True))
    expect(pairs, "uiwarp-room says nothing")
    for (depth, sges, without), (_, _, checked) in pairs:
        print(f"depth {depth}, {sges} SGEs: {without} bytes, {checked} under --check")
        expect(0 < without < checked <= 2 * without, f"depth {depth}, {sges} SGEs: {without} bytes, {checked} under --check")
