# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""uDAPL, by its own tools. Its provider for rdma_cm takes an interface; loopback has no device before it listens."""
import contextlib
import os

from applications import folder, need
from case_face import ROCE
from harness import expect, wait_until
from registry import case

WORLDS = ["ns-root", "ns-user"]


@contextlib.contextmanager
def adapter(world):
    """The settings by which uDAPL has an interface adapter `ia` on the world's interface."""
    with folder(world) as path:
        registry = os.path.join(path, "dat.conf")
        with open(registry, "w") as file:
            file.write('ia u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "veth0 0" ""\n')
        os.chmod(registry, 0o644)
        yield {"DAT_OVERRIDE": registry}


def start(world, settings, ready, *program):
    """A server that has said it is ready."""
    server = world.start("server", "stdbuf", "-oL", *program, settings=settings)
    wait_until(lambda: ready in server.output or server.ended(), 20 * world.slow, f"it says '{ready}'", server)
    return server


@case("dapl-dtest", worlds=WORLDS, seconds=60, serial=True)
def dtest(world):
    """Sends, Writes and Reads of both ends, which compare what comes."""
    need("dtest", "dapl2-utils")
    size = ["-b", "262144"]
    with adapter(world) as settings:
        for face in ({}, ROCE):
            server = start(world, {**settings, **face}, "Server is waiting", "dtest", "-P", "ia", *size)
            client = world.run("client", "dtest", "-P", "ia", *size, "-h", world.server, settings={**settings, **face})
            world.finish(server, 20, 0, client)
            for end in (client, server):
                expect("DAPL Test Complete. PASSED" in end.output, "not passed", client, server)


@case("dapl-dapltest", worlds=WORLDS, seconds=60, serial=True)
def dapltest(world):
    """Several threads and endpoints, which verify what comes; and the limits of what there may be of each object."""
    need("dapltest", "dapl2-utils")
    with adapter(world) as settings:
        server = start(world, settings, "Service Point Ready", "dapltest", "-T", "S", "-D", "ia")
        to_server = ["-D", "ia", "-s", world.server]
        work = "client SR 256 server RW 4096 server SR 256 client RR 8192 server SR 64".split()
        transactions = world.run("client", "dapltest", "-T", "T", *to_server, "-i", "50", "-t", "2", "-w", "4", "-V", *work,
                                 settings=settings)
        expect("Total RDMA Read" in transactions.output, "no result", transactions, server)
        world.run("client", "dapltest", "-T", "L", "-D", "ia", "-w", "8", "-m", "100", settings=settings)
        world.run("client", "dapltest", "-T", "Q", *to_server, settings=settings)
        world.finish(server, 20, 0)
